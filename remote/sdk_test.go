// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// input is what the tools of the SDK's server take.
type input struct {
	Text string `json:"text,omitempty"`
	N    int    `json:"n,omitempty"`
}

// An sdk is a server on the official SDK, and what its tools saw.
type sdk struct {
	*mcp.Server
	running   chan string // waits that began
	cancelled chan string // waits that were cancelled
	release   chan struct{}
	let       func() // closes release
}

// newSDK makes a server with tools for every direction of the protocol. Its
// sessions end with the test.
func newSDK(t *testing.T) *sdk {
	t.Helper()
	s := &sdk{
		running: make(chan string, 10), cancelled: make(chan string, 10), release: make(chan struct{}),
	}
	s.let = sync.OnceFunc(func() { close(s.release) })
	s.Server = mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"},
		&mcp.ServerOptions{Instructions: "be kind"})
	t.Cleanup(func() {
		s.let()
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	add := func(name string, do func(ctx context.Context, r *mcp.CallToolRequest, in input) (string, error)) {
		mcp.AddTool(s.Server, &mcp.Tool{Name: name},
			func(ctx context.Context, r *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
				text, err := do(ctx, r, in)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
			})
	}
	add("echo", func(_ context.Context, _ *mcp.CallToolRequest, in input) (string, error) {
		return in.Text, nil
	})
	add("session", func(_ context.Context, r *mcp.CallToolRequest, _ input) (string, error) {
		return r.Session.ID(), nil
	})
	add("big", func(_ context.Context, _ *mcp.CallToolRequest, in input) (string, error) {
		return strings.Repeat("x", in.N), nil
	})
	add("wait", s.wait)
	add("steps", steps)
	add("ask", func(ctx context.Context, r *mcp.CallToolRequest, in input) (string, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text})
		if err != nil {
			return "", err
		}
		return answer.Action, nil
	})
	add("later", func(_ context.Context, r *mcp.CallToolRequest, in input) (string, error) {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: time.Millisecond})
		return in.Text, nil
	})
	add("more", func(_ context.Context, _ *mcp.CallToolRequest, in input) (string, error) {
		s.AddTool(&mcp.Tool{Name: in.Text, InputSchema: map[string]any{"type": "object"}}, nil)
		return "added", nil
	})
	return s
}

// wait waits until it is released or cancelled.
func (s *sdk) wait(ctx context.Context, _ *mcp.CallToolRequest, in input) (string, error) {
	s.running <- in.Text
	select {
	case <-s.release:
		return "released", nil
	case <-ctx.Done():
		s.cancelled <- in.Text
		return "", ctx.Err()
	}
}

// steps reports progress n times, 40 ms apart.
func steps(ctx context.Context, r *mcp.CallToolRequest, in input) (string, error) {
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for i := range in.N {
		<-tick.C
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Message: in.Text,
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d steps", in.N), nil
}

// streamed serves it over streamable HTTP.
func (s *sdk) streamed(options *mcp.StreamableHTTPOptions) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, options)
}

// older serves it over HTTP+SSE.
func (s *sdk) older() http.Handler {
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s.Server }, nil)
}

// A kind is a way to serve the SDK's server.
type kind struct {
	name  string
	serve func(*sdk) http.Handler
	entry func(url string) fields
}

// kinds are all ways, for what must hold over each.
func kinds() []kind {
	today := func(url string) fields { return at(url).With("type", "http") }
	return []kind{
		{"streams", func(s *sdk) http.Handler { return s.streamed(nil) }, today},
		{"json", func(s *sdk) http.Handler {
			return s.streamed(&mcp.StreamableHTTPOptions{JSONResponse: true})
		}, today},
		{"resumable", func(s *sdk) http.Handler {
			return s.streamed(&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
		}, today},
		{"sse", (*sdk).older, func(url string) fields { return at(url).With("type", "sse") }},
	}
}

// every runs a test over each way to serve the SDK's server.
func every(t *testing.T, test func(t *testing.T, r *rig, s *Server, real *sdk)) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			real := newSDK(t)
			w := serve(t, k.serve(real))
			r := newRig(t)
			test(t, r, r.only(k.entry(w.URL)), real)
		})
	}
}
