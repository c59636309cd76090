// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// defaultCaps says what the server can do, all of it.
const defaultCaps = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},` +
	`"prompts":{"listChanged":true},"logging":{},"completions":{}}`

// Error codes of JSON-RPC 2.0, section 5.1.
const (
	methodNotFound = -32601
	invalidParams  = -32602

	unsupportedRevision = -32022
)

// A message is any JSON-RPC message. Values stay as they were written.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// A server is one client's server. The goroutine of serve owns what has no
// comment; calls run in goroutines of their own.
type server struct {
	opts  *options
	in    *bufio.Reader
	out   *output
	tools []*tool
	grown int // tools that grow added

	mu      sync.Mutex              // guards what follows; nothing else is locked under it
	running map[string]*call        // by id
	asked   map[string]chan message // requests to the client, by id
	nextID  int
	count   int
	user    string
	heard   []string                        // methods of requests
	waiting map[string]chan json.RawMessage // for the client's progress, by token
	ballast [][]byte                        // what alloc keeps
	files   []*os.File                      // what open_files keeps
}

func newServer(opts *options, in io.Reader, out, stderr io.Writer) *server {
	return &server{
		opts:    opts,
		in:      bufio.NewReader(in),
		out:     &output{opts: opts, stdout: out, stderr: stderr},
		tools:   toolList(opts),
		running: make(map[string]*call),
		asked:   make(map[string]chan message),
		waiting: make(map[string]chan json.RawMessage),
	}
}

// serve answers until the input ends.
func (s *server) serve() {
	s.keep(s.opts.alloc)
	if s.opts.leak > 0 {
		go s.leak() // ends with the process, which nobody is to wait for
	}
	s.out.begin()
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			s.out.note(fmt.Sprintf("a line that is no message: %.80q", line))
			continue
		}
		s.receive(&m)
	}
}

// receive handles one message of any kind.
func (s *server) receive(m *message) {
	switch {
	case m.Method == "":
		s.answered(m)
	case m.ID == nil && s.opts.callWithoutID && m.Method == "tools/call":
		m.ID = json.RawMessage("null")
		s.callTool(m)
	case m.ID == nil:
		switch m.Method {
		case "notifications/cancelled":
			s.cancel(m.Params)
		case "notifications/progress":
			s.progressed(m.Params)
		}
	case m.Method == "initialize":
		s.initialize(m)
	case m.Method == "tools/call":
		s.callTool(m)
	default:
		s.request(m)
	}
}

// request answers what needs no more than a look at the parameters.
func (s *server) request(m *message) {
	if m.Method == "server/discover" && s.opts.noHandshake {
		s.out.reply(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+
			s.opts.caps+`,"ttlMs":0,"cacheScope":"private"}`)
		return
	}
	s.mu.Lock()
	s.heard = append(s.heard, m.Method)
	s.mu.Unlock()
	if m.Method == s.opts.hangOn {
		return
	}
	if handle, ok := requests()[m.Method]; ok {
		if result, err := handle(s, m.Params); err != nil {
			s.out.fail(m.ID, invalidParams, err.Error())
		} else {
			s.out.reply(m.ID, result)
		}
		return
	}
	switch {
	case s.opts.exitOnUnknown:
		s.out.note("unknown method " + m.Method)
		exit(1)
	case !s.opts.silentOnUnknown:
		s.out.fail(m.ID, methodNotFound, "Method not found: "+m.Method)
	}
}

// requests are the methods that work without knowing anything of the caller.
// Each returns its result as JSON, or an error about the parameters.
func requests() map[string]func(*server, json.RawMessage) (string, error) {
	return map[string]func(*server, json.RawMessage) (string, error){
		"ping":                     nothing,
		"tools/list":               (*server).listTools,
		"resources/list":           listResources,
		"resources/templates/list": listTemplates,
		"resources/read":           readResource,
		"resources/subscribe":      nothing,
		"resources/unsubscribe":    nothing,
		"prompts/list":             listPrompts,
		"prompts/get":              getPrompt,
		"logging/setLevel":         nothing,
		"completion/complete":      complete,
	}
}

func nothing(*server, json.RawMessage) (string, error) { return `{}`, nil }

// initialize is the handshake.
func (s *server) initialize(m *message) {
	switch {
	case s.opts.neverInit:
		return
	case s.opts.noHandshake:
		s.out.fail(m.ID, unsupportedRevision, "Unsupported protocol version")
		return
	}
	time.Sleep(s.opts.slowInit)
	var params struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(m.Params, &params) // no version, then, which is an unknown one
	result := struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ServerInfo      any             `json:"serverInfo"`
		Instructions    string          `json:"instructions,omitempty"`
	}{
		ProtocolVersion: s.revision(params.ProtocolVersion),
		Capabilities:    json.RawMessage(s.opts.caps),
		ServerInfo:      map[string]string{"name": "misbehave", "version": "1.0"},
		Instructions:    s.opts.instructions,
	}
	s.out.reply(m.ID, encode(result))
	go s.out.storm(s.opts.storm, s.opts.stormParams, s.opts.askStorm) // ends with the process, likewise
	if s.opts.stopReading {
		forever()
	}
}

// revision picks the revision to speak.
func (s *server) revision(offered string) string {
	if s.opts.protocol != "" {
		return s.opts.protocol
	}
	switch offered {
	case "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25":
		return offered
	}
	return "2025-11-25"
}

// keep takes memory, touches it, and keeps it.
func (s *server) keep(megabytes int) {
	if megabytes <= 0 {
		return
	}
	block := make([]byte, megabytes<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ballast = append(s.ballast, block)
}

// leak takes memory without end.
func (s *server) leak() {
	for {
		s.keep(s.opts.leak)
		time.Sleep(10 * time.Millisecond)
	}
}
