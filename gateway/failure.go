// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// metaError is the key under which a failure of garra's own is described.
const metaError = "garra/error"

// describe is a failure as JSON: code, server, fix.
func describe(f *source.Failure) Raw {
	o := protocol.Object{}
	o.Set("code", protocol.Quote(string(f.Code)))
	o.Set("server", protocol.Quote(f.Server))
	o.Set("fix", protocol.Quote(f.Fix))
	return o.Raw()
}

// failedResult is the result of a tool call that did not reach its end.
func failedResult(f *source.Failure) Raw {
	meta := protocol.Object{}
	meta.Set(metaError, describe(f))
	result := textResult(f.Error())
	result.Set("isError", Raw("true"))
	result.Set("_meta", meta.Raw())
	return result.Raw()
}

// textResult is a result of a tool that says one thing.
func textResult(text string) *protocol.Object {
	content := protocol.Object{}
	content.Set("type", protocol.Quote("text"))
	content.Set("text", protocol.Quote(text))
	result := &protocol.Object{}
	result.Set("content", protocol.Array([]Raw{content.Raw()}))
	return result
}

// A Failed is a request of a client that failed before a view could answer it, or
// whose session ended: what the form of its answer depends on.
type Failed struct {
	ID        protocol.ID
	Method    string
	Stateless bool // it was made in the way of that era
	Identity  Raw  // who answers, where that is said; nil when it is not known
}

// FailedRequest reads what an answer to a request depends on, for a client that sees
// one server, or all when server is empty.
func FailedRequest(m *protocol.Message, server string) Failed {
	// A broken envelope tells the era too.
	envelope, _ := protocol.ReadEnvelope(m.Params)
	r := Failed{ID: m.ID, Method: m.Method, Stateless: envelope != nil}
	if server == "" {
		r.Identity = serverInfo()
	}
	return r
}

// Answer says what went wrong in the form that the request wants: a result that a
// model can read for the call of a tool, else an error.
func (r Failed) Answer(f *source.Failure) *protocol.Message {
	if r.Method != protocol.MethodToolsCall {
		return protocol.NewError(r.ID, asError(f))
	}
	result := failedResult(f)
	if r.Stateless {
		result = protocol.Stamp(result, r.Identity)
	}
	return protocol.NewResult(r.ID, result)
}

// TooLarge is the answer to a message that is too large to be read. What it asked
// for is not known.
func TooLarge(e *protocol.TooLargeError) *protocol.Message {
	f := &source.Failure{Code: source.FrameTooLarge, Message: e.Error(), Fix: "send less at a time"}
	return protocol.NewError(e.ID, asError(f).WithCode(protocol.CodeInvalidRequest))
}

// asError makes a JSON-RPC error of what went wrong: the server's own as it
// was written, a failure with its description as data.
func asError(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	f, ok := errors.AsType[*source.Failure](err)
	if !ok {
		return protocol.Errorf(protocol.CodeInternal, "%v", err)
	}
	data := protocol.Object{}
	data.Set(metaError, describe(f))
	return protocol.Errorf(protocol.CodeInternal, "%s", f.Error()).WithData(data.Raw())
}
