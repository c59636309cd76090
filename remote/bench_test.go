// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// BenchmarkCall compares a call over a link with a bare POST of as many bytes.
func BenchmarkCall(b *testing.B) {
	fine := &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, `{"fine":true}`) }}
	server := httptest.NewServer(fine)
	defer server.Close()
	b.Run("bare", func(b *testing.B) {
		client := server.Client()
		for b.Loop() {
			res, err := client.Post(server.URL, typeJSON, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	})
	b.Run("link", func(b *testing.B) {
		limits := quick()
		m := New(Options{limits: &limits})
		entry := entryOf("s")
		entry.URL = server.URL
		m.Apply(&mcpconfig.Config{Servers: []*mcpconfig.Server{entry}})
		s := m.Server("s")
		for b.Loop() {
			if _, err := s.Call(b.Context(), &source.Call{Method: "x"}); err != nil {
				b.Fatal(err)
			}
		}
		m.Close(context.Background())
	})
}
