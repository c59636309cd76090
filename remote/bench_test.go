// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
		options := Options{limits: &limits, Capabilities: Raw("{}")}
		entry := entryOf("s")
		entry.URL = server.URL
		s := newServer(entry, &options)
		r := &runner{&options}
		s.launch, s.mended = r.launch, r.resolvable
		s.begin(entry)
		for b.Loop() {
			if _, err := s.Call(b.Context(), &source.Call{Method: "x"}); err != nil {
				b.Fatal(err)
			}
		}
		s.end(source.Fail(source.ServerStopped, "s", "the end"))
		<-s.done
	})
}
