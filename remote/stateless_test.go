// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// statelessTools are a tool that repeats arguments in headers, and one that a
// client over HTTP must leave out.
const statelessTools = `{"tools":[` +
	`{"name":"good","inputSchema":{"type":"object","properties":{` +
	`"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Num"}}}},` +
	`{"name":"bad","inputSchema":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"a b"}}}},` +
	`{"name":"hang","inputSchema":{"type":"object"}}]}`

// A stateless is a server of the stateless era that knows no other.
type stateless struct {
	t       *testing.T
	running chan struct{} // a call of hang began
	closed  chan struct{} // its client closed the stream
	news    chan string   // what goes out on subscriptions

	mu       sync.Mutex // guards what follows
	requests []string   // methods, and names where there are some
	headers  []http.Header
	refuse   int // how many discoveries are refused with a revision that garra named
}

func newStateless(t *testing.T) *stateless {
	return &stateless{
		t: t, running: make(chan struct{}, 10), closed: make(chan struct{}, 10), news: make(chan string),
	}
}

// ServeHTTP implements http.Handler.
func (s *stateless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	m, err := protocol.Parse(body)
	if r.Method != http.MethodPost || err != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(m.Method+" "+r.Header.Get(protocol.HeaderName)))
	s.headers = append(s.headers, r.Header)
	refused := m.Method == protocol.MethodDiscover && s.refuse > 0
	if refused {
		s.refuse--
	}
	s.mu.Unlock()
	envelope, _ := protocol.ReadEnvelope(m.Params)
	switch {
	case m.Method == protocol.MethodInitialize, envelope == nil, refused:
		data := protocol.Raw(`{"supported":["2026-07-28"]}`)
		s.answer(w, http.StatusBadRequest, protocol.NewError(m.ID,
			protocol.Errorf(protocol.CodeUnsupportedRevision, "unsupported").WithData(data)))
	case m.Method == protocol.MethodListen:
		s.listen(w, r, m)
	default:
		s.serve(w, r, m)
	}
}

func (s *stateless) answer(w http.ResponseWriter, status int, m *protocol.Message) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(m.Append(nil)) // a client that is gone misses nothing
}

// serve answers every other request.
func (s *stateless) serve(w http.ResponseWriter, r *http.Request, m *protocol.Message) {
	result := `{"content":[{"type":"text","text":"ok"}]}`
	switch m.Method {
	case protocol.MethodDiscover:
		result = `{"supportedVersions":["2026-07-28"],"instructions":"be kind",` +
			`"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}`
	case protocol.MethodToolsList:
		result = statelessTools
	case protocol.MethodPromptsGet:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}`))
		return
	case protocol.MethodResourcesRead:
		http.NotFound(w, r)
		return
	case protocol.MethodToolsCall:
		if r.Header.Get(protocol.HeaderName) == "hang" {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush() // it writes nothing that could be lost
			s.running <- struct{}{}
			<-r.Context().Done()
			s.closed <- struct{}{}
			return
		}
	}
	s.answer(w, http.StatusOK, protocol.NewResult(m.ID, protocol.Raw(result)))
}

// listen acknowledges a subscription and then tells the news, until the client
// goes.
func (s *stateless) listen(w http.ResponseWriter, r *http.Request, m *protocol.Message) {
	params, err := protocol.ParseObject(m.Params)
	if err != nil {
		s.t.Error(err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	tell := func(method, params string) {
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":%s}\n\n", method, params)
		_ = http.NewResponseController(w).Flush() // a client that is gone ends the context
	}
	tagged := `{"_meta":{"` + protocol.MetaSubscriptionID + `":` + m.ID.String() + `}`
	tell(protocol.NoteAcknowledged, tagged+`,"notifications":`+string(params.Get("notifications"))+`}`)
	for {
		select {
		case method := <-s.news:
			tell(method, tagged+`}`)
		case <-r.Context().Done():
			return
		}
	}
}

// seen returns the requests so far.
func (s *stateless) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// header returns a header of the last request of a method.
func (s *stateless) header(request, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.requests) - 1; i >= 0; i-- {
		if s.requests[i] == request {
			return s.headers[i].Get(name)
		}
	}
	return "never sent"
}

// A server that knows no handshake is met without one, whether its entry says so
// or not.
func TestServerOfTheStatelessEra(t *testing.T) {
	t.Parallel()
	for _, era := range []mcpconfig.Era{mcpconfig.EraAuto, mcpconfig.EraModern} {
		server := newStateless(t)
		w := serve(t, server)
		s := newRig(t).only(at(w.URL).With("protocolEra", string(era)))
		hello := s.Status().Hello
		if !hello.Revision.Stateless() || hello.Instructions != "be kind" {
			t.Errorf("%s: %+v", era, hello)
		}
		if got := use(t, s, "good", nil); got != "ok" {
			t.Errorf("%s: %q", era, got)
		}
		for name, want := range map[string]string{
			protocol.HeaderRevision: "2026-07-28", protocol.HeaderMethod: "tools/call", protocol.HeaderName: "good",
			headerSession: "",
		} {
			if got := server.header("tools/call good", name); got != want {
				t.Errorf("%s: %s is %q", era, name, got)
			}
		}
		if greeted := slices.Contains(server.seen(), protocol.MethodInitialize); greeted != (era == mcpconfig.EraAuto) {
			t.Errorf("%s: greeted is %v", era, greeted)
		}
	}
}

// Arguments that a schema marks go into headers, and a tool with a mark that is
// none is left out.
func TestMarkedArguments(t *testing.T) {
	t.Parallel()
	server := newStateless(t)
	r := newRig(t)
	s := r.only(at(serve(t, server).URL).With("protocolEra", "modern"))
	list, err := s.Call(t.Context(), &source.Call{Method: protocol.MethodToolsList})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(list); strings.Contains(text, `"bad"`) || !strings.Contains(text, `"good"`) {
		t.Errorf("the list is %s", text)
	}
	if r.Saw(`tool "bad" is left out`) == "" {
		t.Error("nobody was told")
	}
	use(t, s, "good", args{"region": "Zürich", "n": 7})
	for name, want := range map[string]string{"Region": "=?base64?WsO8cmljaA==?=", "Num": "7"} {
		if got := server.header("tools/call good", protocol.HeaderParamFor+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	use(t, s, "good", args{"region": nil})
	if got := server.header("tools/call good", protocol.HeaderParamFor+"Region"); got != "" {
		t.Errorf("null is %q", got)
	}
}

// Closing the response takes a call back in this era; there is no notification
// for it.
func TestCancellationClosesTheResponse(t *testing.T) {
	t.Parallel()
	server := newStateless(t)
	s := newRig(t).only(at(serve(t, server).URL).With("protocolEra", "modern"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the call
		<-server.running
		cancel()
	}()
	_, err := s.Call(ctx, tool("hang", nil))
	failed(t, err, source.CallCancelled)
	<-server.closed
	if got := use(t, s, "good", nil); got != "ok" {
		t.Errorf("the next call gives %q", got)
	}
	if slices.Contains(server.seen(), protocol.NoteCancelled) {
		t.Error("it was told")
	}
}

// What there are no sessions for is heard on subscriptions, of which one stays
// open, and one that ends is made again.
func TestNewsWithoutASession(t *testing.T) {
	t.Parallel()
	server := newStateless(t)
	w := serve(t, server)
	r := newRig(t)
	s := r.only(at(w.URL).With("protocolEra", "modern"))
	heard := func(what string) (n int) {
		for _, note := range r.Heard() {
			if strings.Contains(note, what) {
				n++
			}
		}
		return n
	}
	server.news <- protocol.NoteToolsChanged
	eventually(t, "the list changed", func() bool { return heard(protocol.NoteToolsChanged) == 1 })
	subscribe := &source.Call{Method: protocol.MethodSubscribe, Params: protocol.Raw(`{"uri":"test://kept"}`)}
	if _, err := s.Call(t.Context(), subscribe); err != nil {
		t.Fatal(err)
	}
	w.CloseClientConnections() // what is said until both are open again is lost
	eventually(t, "what may have changed meanwhile did", func() bool {
		return heard(protocol.NoteToolsChanged) == 2 && heard("test://kept") == 1
	})
	for range 2 { // one for each stream
		server.news <- protocol.NoteToolsChanged
	}
	eventually(t, "the list changed again", func() bool { return heard(protocol.NoteToolsChanged) == 4 })
	for _, method := range []string{protocol.MethodSubscribe, protocol.MethodSetLevel, protocol.MethodPing} {
		c := &source.Call{Method: method, Params: protocol.Raw(`{"uri":"test://x","level":"info"}`)}
		if _, err := s.Call(t.Context(), c); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if slices.Contains(server.seen(), method) {
			t.Errorf("%s reached a server that doesn't have it", method)
		}
	}
	if s.Status().State != source.Ready || s.Status().Restarts != 0 {
		t.Errorf("it is %+v", s.Status())
	}
}

// A version that is being rolled out may refuse a revision that it takes a moment
// later.
func TestRefusedRevisionIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := newStateless(t)
	server.refuse = 1
	newRig(t).only(at(serve(t, server).URL).With("protocolEra", "modern"))
}

// A server that always has other tools doesn't fill the memory with their marks.
func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	m := &modern{marks: make(map[string][]protocol.HeaderParam)}
	marks := make([]protocol.HeaderParam, 40)
	for i := range 10_000 {
		m.note(fmt.Sprint(i), marks)
	}
	if kept := len(m.marks) * len(marks); kept > maxMarks || m.count != kept {
		t.Errorf("%d marks are kept, %d counted", kept, m.count)
	}
	if m.marks["9999"] == nil {
		t.Error("the last ones are forgotten")
	}
	m.note("9999", nil)
	if m.marks["9999"] != nil || m.count != len(m.marks)*len(marks) {
		t.Error("a tool that has none any more keeps them")
	}
}

// Without a session a 404 is about what was asked, and nothing else ends with it.
func TestNotFoundWithoutASession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(at(serve(t, newStateless(t)).URL).With("protocolEra", "modern"))
	get := &source.Call{Method: protocol.MethodPromptsGet, Params: protocol.Raw(`{"name":"x"}`)}
	_, err := s.Call(t.Context(), get)
	if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Code != protocol.CodeMethodNotFound {
		t.Errorf("an error without an id: %v", err)
	}
	read := &source.Call{Method: protocol.MethodResourcesRead, Params: protocol.Raw(`{"uri":"x:"}`)}
	_, err = s.Call(t.Context(), read)
	contains(t, failed(t, err, source.ServerFailed).Error(), "404")
	use(t, s, "good", nil)
	if states := r.States("s"); !slices.Equal(states, []source.State{source.Starting, source.Ready}) {
		t.Errorf("it went through %v", states)
	}
}
