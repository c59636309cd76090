// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// Bounds of what one call may ask its client.
const (
	maxRounds    = 16
	maxQuestions = 32 // of each round
)

// needsInput returns a result in which a server of the stateless era asks for
// more instead of answering; nil for any other. It fails for one that can't be
// read, but could be read by another.
func needsInput(result Raw) (*protocol.Object, error) {
	if !mayHold(result, "input_required") {
		return nil, nil
	}
	obj, err := protocol.ParseObject(result)
	if crowded, ok := errors.AsType[*protocol.CrowdedError](err); ok {
		return nil, crowded
	}
	if err != nil {
		return nil, nil // no object is no question
	}
	for _, m := range obj.Members { // of several, a client could read any
		if kind, _ := protocol.Text(m.Value); m.Name == "resultType" && kind == "input_required" {
			return obj, nil
		}
	}
	return nil, nil
}

// complete makes a result of a server of the handshake era one that a client of
// the other can't take for a question.
func complete(result Raw) Raw {
	obj, err := protocol.ParseObject(result)
	if err != nil {
		return Raw(`{"resultType":"complete"}`) // it is no result, or none that can be read
	}
	obj.Delete("resultType")
	obj.Set("resultType", Raw(`"complete"`))
	return obj.Raw()
}

// speaksStateless reports whether a server is of the stateless era.
func speaksStateless(src source.Source) bool {
	hello := src.Status().Hello
	return hello != nil && hello.Revision.Stateless()
}

// rounds makes a call, and answers what a server of the stateless era asks on the
// way by asking a client of the handshake era; a client of its own era is asked
// by the result.
func (u *upstream) rounds(ctx context.Context, x *exchange, call *source.Call) (Raw, error) {
	src, err := u.serving(x.session.holder)
	if err != nil {
		return nil, err
	}
	if !speaksStateless(src) && x.canBeAsked() {
		u.gateway.parleys.makeWay(u, x.session)
	}
	for range maxRounds {
		result, err := src.Call(ctx, call)
		if err != nil {
			return nil, err
		}
		if !speaksStateless(src) {
			if x.envelope != nil {
				result = complete(result)
			}
			return result, nil
		}
		asks, err := needsInput(result)
		if err != nil {
			return nil, source.Fail(source.ServerFailed, u.name, "its result has %v", err)
		}
		if asks == nil {
			return result, nil
		}
		if asks, err = protocol.ParseObjectStrict(result); err != nil {
			return nil, source.Fail(source.ServerFailed, u.name,
				"it asks for input in a way that can't be read: %v", err)
		}
		if err := u.mayAsk(asks); err != nil {
			return nil, err
		}
		if x.envelope != nil {
			return result, nil
		}
		if call.Params, err = u.askAll(ctx, x, call.Params, asks); err != nil {
			return nil, err
		}
	}
	return nil, source.Fail(source.ServerFailed, u.name, "it asked for more input %d times", maxRounds)
}

// mayAsk refuses a question for what the server must not know.
func (u *upstream) mayAsk(asks *protocol.Object) error {
	requests, err := protocol.ParseObject(asks.Get("inputRequests"))
	if err != nil {
		return nil // it asks for nothing but to be called again
	}
	if len(requests.Members) > maxQuestions {
		return source.Fail(source.ServerFailed, u.name, "it asked %d questions at once", len(requests.Members))
	}
	for _, m := range requests.Members {
		if method, _ := inputRequest(m.Value); method == protocol.MethodRootsList && !u.forwardsRoots() {
			return source.Fail(source.ServerFailed, u.name,
				"it asked for the client's roots, which are not forwarded to it")
		}
	}
	return nil
}

// inputRequest reads one question; the method is empty when it is none.
func inputRequest(raw Raw) (method string, params Raw) {
	obj, err := protocol.ParseObject(raw)
	if err != nil {
		return "", nil
	}
	method, _ = protocol.Text(obj.Get("method")) // none is asked of nobody
	return method, obj.Get("params")
}

// askAll asks the client, one question after the other, and returns the params of
// the next round.
func (u *upstream) askAll(ctx context.Context, x *exchange, params Raw, asks *protocol.Object) (Raw, error) {
	answers := protocol.Object{}
	if requests, err := protocol.ParseObject(asks.Get("inputRequests")); err == nil {
		for _, m := range requests.Members {
			method, ask := inputRequest(m.Value)
			answer, err := caller{x, u}.Ask(ctx, method, ask)
			if err != nil {
				return nil, err
			}
			answers.Set(m.Name, answer)
		}
	}
	next, err := protocol.ParseObject(params)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%v", err)
	}
	next.Delete("requestState")
	next.Set("inputResponses", answers.Raw())
	if state := asks.Get("requestState"); state != nil {
		next.Set("requestState", state)
	}
	return next.Raw(), nil
}
