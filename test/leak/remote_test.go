// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newRemote starts an MCP server over HTTP that says all it is told, and returns its
// host and port. What it hears is recorded: all of it has left garra.
func newRemote(t *testing.T, r *record) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.add("the server at the url", heard(request)+"\n")
		answerRemotely(w, request, body)
	})
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, request *http.Request) {
		r.add("the server that refuses", heard(request)+"\n")
		w.Header().Set("X-Echo", request.Header.Get("Authorization"))
		http.Error(w, "no: "+heard(request), http.StatusForbidden)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// heard is the head of a request, in which secrets are.
func heard(request *http.Request) string { return fmt.Sprintf("%s %v", request.URL, request.Header) }

// answerRemotely answers one message.
func answerRemotely(w http.ResponseWriter, request *http.Request, body []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name            string
			ProtocolVersion string
			Arguments       struct{ Text string }
		}
	}
	if err := json.Unmarshal(body, &m); err != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var result any
	switch m.Method {
	case "initialize":
		result = map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]string{"name": heard(request), "version": "1"}, "instructions": heard(request),
		}
	case "tools/list":
		object := map[string]string{"type": "object"}
		result = map[string]any{"tools": []any{
			map[string]any{"name": "echo", "description": heard(request), "inputSchema": object},
			map[string]any{"name": "fail", "inputSchema": object},
		}}
	case "tools/call":
		if m.Params.Name == "fail" {
			http.Error(w, "failed with "+heard(request), http.StatusInternalServerError)
			return
		}
		text := m.Params.Arguments.Text + " " + heard(request)
		result = map[string]any{
			"content":           []any{map[string]string{"type": "text", "text": text}},
			"structuredContent": map[string]string{text: text},
		}
	default:
		fail(w, m.ID, heard(request))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that is gone is none of the server's business.
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// fail answers with an error that holds a text.
func fail(w http.ResponseWriter, id json.RawMessage, text string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // see answerRemotely
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32601, "message": text, "data": text},
	})
}
