// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A modern is what a link to a server of the stateless era has (MCP 2026-07-28):
// there is no session, so each request says in headers what it is. It is safe for
// concurrent use.
type modern struct {
	ear *eras.Ear

	mu    sync.RWMutex                      // guards the next two
	marks map[string][]protocol.HeaderParam // by tool; of those that have some
	count int                               // of marks
}

// maxMarks bounds what is kept of a server that always has other tools. Past it
// what was learnt before is forgotten, until it is listed again.
const maxMarks = 20_000

// discover asks what the server offers, in the stateless era. Why it doesn't say
// that is a mishap.
func (l *link) discover(ctx Context, timeout time.Duration) (*source.Hello, *mishap) {
	m := &modern{marks: make(map[string][]protocol.HeaderParam)}
	m.ear = eras.NewEar(l.asEarUsesIt())
	l.modern.Store(m)
	l.wire.greeted(protocol.LatestStateless)
	call := &source.Call{Method: protocol.MethodDiscover, Params: eras.DiscoverParams()}
	result, failed := l.introduced(ctx, call, from(timeout))
	if failed != nil && failed.again { // it may have been of a version that is being rolled out
		result, failed = l.introduced(ctx, call, from(timeout))
	}
	if failed != nil {
		return nil, failed
	}
	hello, err := eras.ReadDiscovery(l.server, result)
	if err != nil {
		return nil, &mishap{failure: source.AsFailure(err, source.ServerFailed, l.server), lasting: true}
	}
	m.ear.HearLists(hello.Capabilities)
	return hello, nil
}

// hearing returns the Ear of a link to a server of the stateless era, else nil.
func (l *link) hearing() *eras.Ear {
	if m := l.modern.Load(); m != nil {
		return m.ear
	}
	return nil
}

// headers are what a request says of itself beside its body. A server of the
// handshake era wants none.
func (m *modern) headers(method string, params Raw) http.Header {
	if m == nil {
		return nil
	}
	h := http.Header{}
	h.Set(protocol.HeaderMethod, method)
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return h
	}
	name, named := protocol.NameOf(method, obj)
	if !named {
		return h
	}
	h.Set(protocol.HeaderName, protocol.EncodeHeader(name))
	if method != protocol.MethodToolsCall {
		return h
	}
	arguments, _ := protocol.ParseObject(obj.Get("arguments")) // none has no members
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, p := range m.marks[name] {
		if value, has := p.Value(arguments); has {
			h.Set(protocol.HeaderParamFor+p.Header, protocol.EncodeHeader(value))
		}
	}
	return h
}

// learn reads in a list of tools which arguments are repeated in headers, and
// takes out the tools that a client over HTTP must not use. What is no list stays.
func (l *link) learn(result Raw) Raw {
	m := l.modern.Load()
	list, err := protocol.ParseObject(result)
	if m == nil || err != nil {
		return result
	}
	tools, err := protocol.Elements(list.Get("tools"))
	if err != nil {
		return result
	}
	kept := tools[:0:0]
	for _, raw := range tools {
		tool, err := protocol.ParseObject(raw)
		if err != nil {
			kept = append(kept, raw)
			continue
		}
		name, _ := protocol.Text(tool.Get("name")) // without one it can't be called
		marks, err := protocol.HeaderParams(tool.Get("inputSchema"))
		if err != nil {
			l.trouble(fmt.Sprintf("tool %.100q is left out: %v", name, err))
			continue
		}
		m.note(name, marks)
		kept = append(kept, raw)
	}
	if len(kept) == len(tools) {
		return result
	}
	list.Set("tools", protocol.Array(kept))
	return list.Raw()
}

// note keeps the marks of a tool.
func (m *modern) note(tool string, marks []protocol.HeaderParam) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count += len(marks) - len(m.marks[tool])
	if len(marks) == 0 {
		delete(m.marks, tool)
		return
	}
	if m.count > maxMarks {
		m.marks, m.count = make(map[string][]protocol.HeaderParam), len(marks)
	}
	m.marks[tool] = marks
}

// asEarUsesIt is the link as an Ear of it uses it.
func (l *link) asEarUsesIt() eras.Link {
	return eras.Link{
		Server: l.server, Life: l.life, Trouble: l.trouble,
		Told: func(m *protocol.Message) { l.told(m, nil) },
		Request: func(ctx context.Context, method string, params Raw) (Raw, error) {
			r := l.exchange(ctx, &source.Call{Method: method, Params: params}, from(eras.Forever))
			return r.result, r.err
		},
	}
}

// introduced makes a request by which a server introduces itself. Why it doesn't
// is a mishap.
func (l *link) introduced(ctx Context, call *source.Call, b budget) (Raw, *mishap) {
	r := l.exchange(ctx, call, b)
	switch e, refused := errors.AsType[*protocol.Error](r.err); {
	case r.err == nil:
		return r.result, nil
	case refused:
		text := l.scrub(fmt.Sprintf("the server refused %s: %.500s", call.Method, e))
		f := source.Fail(source.ServerFailed, l.server, "%s", text)
		return nil, &mishap{failure: f, lasting: true, refused: true, again: eras.OffersRetry(e)}
	case l.life.Err() != nil:
		return nil, l.asMishap()
	case r.mishap != nil:
		return nil, r.mishap
	}
	return nil, &mishap{failure: source.AsFailure(r.err, source.ServerFailed, l.server)}
}
