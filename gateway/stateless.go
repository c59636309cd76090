// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// stateless answers a request of the stateless era, which depends on nothing
// that was said before (MCP 2026-07-28).
func (s *Session) stateless(ctx context.Context, x *exchange) (Raw, error) {
	if err := checkEnvelope(x); err != nil {
		return nil, err
	}
	switch x.method {
	case protocol.MethodInitialize, protocol.MethodPing, protocol.MethodSetLevel,
		protocol.MethodSubscribe, protocol.MethodUnsubscribe:
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "method not found: %s (revision %s has none)",
			x.method, x.envelope.Revision)
	case protocol.MethodDiscover:
		result, err := s.view.discover(ctx)
		return s.stamped(x, result), err
	case protocol.MethodListen:
		return s.listen(ctx, x)
	}
	result, err := s.converse(ctx, x)
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Code == protocol.CodeResourceNotFound {
		return nil, e.WithCode(protocol.CodeInvalidParams)
	}
	if err != nil {
		return nil, err
	}
	return s.stamped(x, result), nil
}

// checkEnvelope refuses a request whose envelope is incomplete, or of a revision
// that garra doesn't speak.
func checkEnvelope(x *exchange) error {
	if !slices.Contains(protocol.Revisions(), x.envelope.Revision) {
		return unsupported(x.envelope.Revision)
	}
	if x.envelope.Capabilities.Kind() != '{' {
		return protocol.Errorf(protocol.CodeInvalidParams, "_meta has no object %q", protocol.MetaCapabilities)
	}
	if level := x.envelope.LogLevel; level != "" && severity(level) < 0 {
		return protocol.Errorf(protocol.CodeInvalidParams, "%q in _meta is no log level: %.40q",
			protocol.MetaLogLevel, level)
	}
	return nil
}

// unsupported is the answer to a revision that garra doesn't speak.
func unsupported(requested protocol.Revision) *protocol.Error {
	data := protocol.Object{}
	data.Set("supported", revisions())
	data.Set("requested", protocol.Quote(string(requested)))
	return protocol.Errorf(protocol.CodeUnsupportedRevision, "unsupported protocol version %.40q",
		string(requested)).WithData(data.Raw())
}

// revisions are all that garra speaks, as a JSON array.
func revisions() Raw {
	var list []Raw
	for _, r := range protocol.Revisions() {
		list = append(list, protocol.Quote(string(r)))
	}
	return protocol.Array(list)
}

// stamped makes a result that of the era: with its type, how long it may be
// kept, and who answers. What a server of that era said stays.
func (s *Session) stamped(x *exchange, result Raw) Raw {
	if result == nil {
		return nil
	}
	if cacheable(x.method) {
		if obj, err := protocol.ParseObject(result); err == nil && obj.Get("ttlMs") == nil {
			obj.Set("ttlMs", Raw("0"))
			obj.Set("cacheScope", Raw(`"private"`))
			result = obj.Raw()
		}
	}
	return protocol.Stamp(result, s.view.identity())
}

// cacheable reports whether results of the method say how long they may be kept.
func cacheable(method string) bool {
	switch method {
	case protocol.MethodDiscover, protocol.MethodToolsList, protocol.MethodPromptsList,
		protocol.MethodResourcesList, protocol.MethodTemplatesList, protocol.MethodResourcesRead:
		return true
	}
	return false
}

// discover implements view.
func (a aggregate) discover(context.Context) (Raw, error) {
	o := protocol.Object{}
	o.Set("supportedVersions", revisions())
	o.Set("capabilities", Raw(allCapabilities))
	if text := a.instructions(); text != "" {
		o.Set("instructions", protocol.Quote(text))
	}
	o.Set("_meta", a.gateway.signature())
	return o.Raw(), nil
}

// identity implements view.
func (a aggregate) identity() Raw { return serverInfo() }

// discover implements view: what the server said of itself, in whichever era.
func (v single) discover(ctx context.Context) (Raw, error) {
	u, err := v.upstream()
	if err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, u.current.Load().entry.Timeout)
	defer cancel()
	hello, err := u.src.Hello(limit)
	if err != nil {
		return nil, err
	}
	result, err := protocol.ParseObject(hello.Result)
	if err != nil {
		return nil, err
	}
	if !hello.Revision.Stateless() {
		result.Delete("protocolVersion")
		result.Delete("serverInfo") // which is told in _meta
	}
	result.Set("supportedVersions", revisions())
	return result.Raw(), nil
}

// identity implements view.
func (v single) identity() Raw {
	u, err := v.upstream()
	if err != nil {
		return nil
	}
	hello := u.src.Status().Hello
	if hello == nil {
		return nil
	}
	return hello.ServerInfo()
}

// can reports whether the client of the request declared a capability.
func (x *exchange) can(capability string) bool {
	if x.envelope == nil {
		return x.session.can(capability)
	}
	return hasMember(x.envelope.Capabilities, capability)
}

// canBeAsked reports whether the client can be asked anything.
func (x *exchange) canBeAsked() bool { return slices.ContainsFunc(askables(), x.can) }

// hasMember reports whether an object has a member that is not null.
func hasMember(raw Raw, name string) bool {
	obj, err := protocol.ParseObject(raw)
	if err != nil {
		return false
	}
	v := obj.Get(name)
	return v != nil && v.Kind() != 'n'
}

// wantsLog reports whether the client of the request wants a log message of a
// server. In the stateless era a client that names no level wants none.
func (x *exchange) wantsLog(params Raw) bool {
	if x.envelope == nil {
		return x.session.wantsLog("", severityOf(params))
	}
	return x.envelope.LogLevel != "" && severityOf(params) >= severity(x.envelope.LogLevel)
}

// asked is what a source is to know of who asks.
func (x *exchange) asker(u *upstream) source.Asker {
	caps := x.session.capabilities()
	if x.envelope != nil {
		caps = x.envelope.Capabilities
	}
	if !u.forwardsRoots() && bytes.Contains(caps, []byte("roots")) {
		if obj, err := protocol.ParseObject(caps); err == nil && obj.Get("roots") != nil {
			obj.Delete("roots")
			caps = obj.Raw()
		}
	}
	a := source.Asker{Capabilities: caps, Stateless: x.envelope != nil}
	if x.envelope != nil {
		a.LogLevel = x.envelope.LogLevel
	} else {
		a.LogLevel = x.session.logLevel()
	}
	return a
}
