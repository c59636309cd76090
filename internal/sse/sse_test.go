// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEvents(t *testing.T) {
	w := httptest.NewRecorder()
	s, err := Begin(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []func() error{
		func() error { return s.Event("message", "1-2", []byte(`{"a":1}`)) },
		func() error { return s.Event("", "1-0", nil) },
		s.Comment,
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	want := "event: message\nid: 1-2\ndata: {\"a\":1}\n\nid: 1-0\ndata: \n\n: still here\n\n"
	if got := w.Body.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("X-Accel-Buffering") != "no" {
		t.Errorf("header %v", w.Header())
	}
}

func TestWritersLearnThatTheClientIsGone(t *testing.T) {
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		out, err := Begin(w)
		for err == nil {
			err = out.Event("message", "", make([]byte, 1<<16))
		}
	}))
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-ended
}
