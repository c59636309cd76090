// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// callTool is the one path of a tool call, once its server and its name there
// are known: policy decides, the source runs it.
func (u *upstream) callTool(ctx context.Context, x *exchange, params *protocol.Object, name string) (Raw, error) {
	item, err := u.findTool(ctx, x, name)
	if err != nil {
		return outcome(nil, err)
	}
	if item == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "server %q has no tool %q%s",
			u.name, name, u.meant(name))
	}
	if d := u.tool(item); !d.Allowed {
		return nil, denied(u.name, name, d.Reason, d.Rule)
	}
	params.Set("name", protocol.Quote(name))
	return outcome(u.forward(ctx, x, params.Raw()))
}

// meant names the tool that somebody who wrote another name most likely meant, of
// those that may be called; empty when none is near.
func (u *upstream) meant(name string) string {
	list := u.gateway.catalog.List(u.name, catalog.Tools)
	if list == nil {
		return ""
	}
	var known []string
	for _, item := range list.Items {
		if u.tool(item).Allowed {
			known = append(known, item.Name)
		}
	}
	if nearest := mcpconfig.Nearest(name, known); nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}

// denied is the answer to a call that policy doesn't allow.
func denied(server, tool, reason, rule string) error {
	text := reason
	if rule != "" {
		text += " (" + rule + ")"
	}
	data := protocol.Object{}
	data.Set(metaError, describe(&source.Failure{
		Code: source.PolicyDenied, Server: server, Fix: "change the tool lists of this server's entry",
	}))
	return protocol.Errorf(protocol.CodeInvalidParams, "tool %q of server %q is not allowed: %s",
		tool, server, text).WithData(data.Raw())
}

// outcome turns a failure of garra's own into a result that a model can read.
// An error that the server answered, and a cancellation, stay what they are.
func outcome(result Raw, err error) (Raw, error) {
	f, ok := errors.AsType[*source.Failure](err)
	if !ok || f.Code == source.CallCancelled {
		return result, err
	}
	return failedResult(f), nil
}

// exposed finds the item behind a name that clients of all servers use. A server
// whose items aren't known yet is waited for, or woken, if the name may be one of
// its.
func (g *Gateway) exposed(ctx context.Context, x *exchange, kind catalog.Kind, name string) (*catalog.Item, error) {
	if item := g.catalog.Find(kind, name); item != nil {
		return item, nil
	}
	var failure error
	for _, u := range g.all() {
		if g.catalog.List(u.name, kind) != nil || !catalog.MayBelong(u.name, name) {
			continue
		}
		limit, cancel := u.within(ctx, x)
		if err := u.known(limit, kind); err != nil {
			failure = err
		}
		cancel()
	}
	if item := g.catalog.Find(kind, name); item != nil {
		return item, nil
	}
	return nil, failure
}

// known waits until the server was asked for its lists of some kinds.
func (u *upstream) known(ctx context.Context, kinds ...catalog.Kind) error {
	if _, err := u.src.Hello(ctx); err != nil {
		return err
	}
	for {
		changed := u.gateway.changed.wait()
		if u.settled(kinds) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return source.Fail(source.CallTimeout, u.name, "its %s could not be listed in time", kinds[0])
		}
	}
}
