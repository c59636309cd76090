// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"strconv"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// isStateless reports whether a POST is of the stateless era. m may be nil.
func isStateless(r *http.Request, m *protocol.Message) bool {
	if protocol.Revision(r.Header.Get(protocol.HeaderRevision)).Stateless() {
		return true
	}
	if m == nil || !m.IsRequest() {
		return false
	}
	envelope, _ := protocol.ReadEnvelope(m.Params) // an incomplete one is of the era, and refused there
	return envelope != nil
}

// stateless answers a POST of the stateless era: it has no session, and ends when
// the client closes the response.
func (h *httpHandler) stateless(w http.ResponseWriter, r *http.Request, m *protocol.Message) {
	if !m.IsRequest() {
		w.WriteHeader(http.StatusAccepted) // no notification of a client concerns anything that is kept
		return
	}
	v := h.gateway.view(r.PathValue("server"))
	if e := h.gateway.checkHeaders(r, m, v); e != nil {
		refuseRequest(w, statusOf(e.Code), m.ID, e)
		return
	}
	oneWay := !accepts(r, "text/event-stream")
	if oneWay && m.Method == protocol.MethodListen {
		refuse(w, http.StatusNotAcceptable, protocol.CodeInvalidRequest,
			"%s needs Accept: text/event-stream", m.Method)
		return
	}
	s := &httpSession{guest: true, backlog: backlog{keep: &h.sessions.kept, ended: true}}
	s.standing = newStream("0", 0, &s.backlog)
	s.Session = h.gateway.guest(v, h.principal(r))
	defer s.close()
	t := newStream("", 1, &s.backlog)
	t.oneWay = oneWay
	t.connected(1)
	defer context.AfterFunc(r.Context(), func() {
		s.end(&source.CancelError{Reason: "the client closed the response"})
	})()
	s.serveOne(w, r, m, t)
}

// guest is a session that is as long as one request: it has said nothing before,
// and hears no news.
func (g *Gateway) guest(v view, principal string) *Session {
	s := g.newSession(v, principal, deaf{})
	s.greeted, s.guest = true, true
	s.holder = holderOf(principal)
	g.keep(s)
	return s
}

// A deaf outlet takes nothing.
type deaf struct{}

func (deaf) push(*protocol.Message) bool { return false }

// statusOf is the HTTP status of an error (MCP 2026-07-28, "Transports").
func statusOf(code int) int {
	switch code {
	case protocol.CodeMethodNotFound:
		return http.StatusNotFound
	case protocol.CodeParse, protocol.CodeInvalidRequest, protocol.CodeInvalidParams, protocol.CodeHeaderMismatch,
		protocol.CodeMissingCapability, protocol.CodeUnsupportedRevision:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// checkHeaders compares the headers of a request with its body.
func (g *Gateway) checkHeaders(r *http.Request, m *protocol.Message, v view) *protocol.Error {
	envelope, _ := protocol.ReadEnvelope(m.Params) // what else it lacks is said where it is read
	said := r.Header.Get(protocol.HeaderRevision)
	switch {
	case said == "":
		return protocol.Errorf(protocol.CodeHeaderMismatch, "no %s header", protocol.HeaderRevision)
	case envelope == nil:
		return protocol.Errorf(protocol.CodeInvalidParams, "_meta has no %q", protocol.MetaRevision)
	case len(r.Header.Values(protocol.HeaderRevision)) > 1, len(r.Header.Values(protocol.HeaderMethod)) > 1,
		len(r.Header.Values(protocol.HeaderName)) > 1:
		return protocol.Errorf(protocol.CodeHeaderMismatch, "a header is there twice")
	case said != string(envelope.Revision):
		return mismatch(protocol.HeaderRevision, said, string(envelope.Revision))
	case r.Header.Get(protocol.HeaderMethod) != m.Method:
		return mismatch(protocol.HeaderMethod, r.Header.Get(protocol.HeaderMethod), m.Method)
	}
	params, err := m.ParamsObject()
	if err != nil {
		return protocol.Errorf(protocol.CodeInvalidParams, "%v", err)
	}
	name, named := protocol.NameOf(m.Method, params)
	if said := protocol.DecodeHeader(r.Header.Get(protocol.HeaderName)); named && said != name {
		return mismatch(protocol.HeaderName, said, name)
	}
	if m.Method == protocol.MethodToolsCall {
		return checkParams(r.Header, params, v.schema(name))
	}
	return nil
}

func mismatch(header, said, body string) *protocol.Error {
	return protocol.Errorf(protocol.CodeHeaderMismatch,
		"the header %s is %.80q, the body says %.80q", header, said, body)
}

// checkParams compares Mcp-Param headers with the arguments that a tool's schema
// names for them with x-mcp-header.
func checkParams(header http.Header, params *protocol.Object, schema Raw) *protocol.Error {
	var arguments *protocol.Object
	marked, _ := protocol.HeaderParams(schema) // clients leave out a tool with a mark that is none
	for _, p := range marked {
		if arguments == nil {
			arguments, _ = protocol.ParseObject(params.Get("arguments")) // none has no members
		}
		value, has := p.Value(arguments)
		name := protocol.HeaderParamFor + p.Header
		said, present := protocol.DecodeHeader(header.Get(name)), len(header.Values(name)) > 0
		if value == "" && has { // which a header that is empty, or isn't there, says as well
			present = true
		}
		if has != present || (has && !sameValue(said, value)) {
			return mismatch(name, said, value)
		}
	}
	return nil
}

// schema implements view.
func (a aggregate) schema(tool string) Raw {
	return schemaOf(a.gateway.catalog.Find(catalog.Tools, tool))
}

// schema implements view.
func (v single) schema(tool string) Raw {
	return schemaOf(v.gateway.catalog.List(v.server, catalog.Tools).Find(tool))
}

// schemaOf is the input schema of a tool, nil when it isn't known.
func schemaOf(item *catalog.Item) Raw {
	if item == nil {
		return nil
	}
	tool, err := protocol.ParseObject(item.Raw)
	if err != nil {
		return nil
	}
	return tool.Get("inputSchema")
}

// sameValue compares a header with an argument: numbers by value, since 5 and 5.0
// are one.
func sameValue(said, value string) bool {
	if said == value {
		return true
	}
	a, errA := strconv.ParseFloat(said, 64)
	b, errB := strconv.ParseFloat(value, 64)
	return errA == nil && errB == nil && a == b
}
