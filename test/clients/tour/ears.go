// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 what is deprecated still works, and servers have it

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Ears keep what a server says and asks by itself. They are safe for concurrent
// use.
type ears struct {
	mu    sync.Mutex // guards all below
	heard map[string][]any
	news  chan struct{}     // closed when there is something new
	first map[string]func() // called once, by kind
	calls int
	token string // of the last call
}

func newEars() *ears {
	return &ears{heard: make(map[string][]any), news: make(chan struct{}), first: make(map[string]func())}
}

func (e *ears) hear(kind string, what any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard[kind] = append(e.heard[kind], what)
	close(e.news)
	e.news = make(chan struct{})
	if act := e.first[kind]; act != nil {
		delete(e.first, kind)
		act()
	}
}

// once has a function called when something of a kind comes.
func (e *ears) once(kind string, act func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.first[kind] = act
}

// listen begins a call, and returns its progress token. What an earlier call still
// reports is not heard.
func (e *ears) listen() (token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	e.token = fmt.Sprintf("tour-%d", e.calls)
	return e.token
}

func (e *ears) listensTo(token any) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return token == e.token
}

// forget begins a step.
func (e *ears) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.heard)
	clear(e.first)
}

// await waits for a number of things of each kind, or the end of ctx, and returns
// what was heard.
func (e *ears) await(ctx context.Context, least map[string]int) map[string][]any {
	for {
		e.mu.Lock()
		missing := false
		for kind, n := range least {
			missing = missing || len(e.heard[kind]) < n
		}
		heard, news := maps.Clone(e.heard), e.news
		e.mu.Unlock()
		if !missing {
			return heard
		}
		select {
		case <-news:
		case <-ctx.Done():
			return heard
		}
	}
}

// options are those of a client that hears everything and answers what it is
// asked.
func (e *ears) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			e.hear("asked", map[string]any{"sampling/createMessage": without(r.Params)})
			return &mcp.CreateMessageResult{
				Role: "assistant", Model: "tour", StopReason: "endTurn", Content: &mcp.TextContent{Text: "sampled"},
			}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked := without(r.Params)
			delete(asked, "elicitationId")
			e.hear("asked", map[string]any{"elicitation/create": asked})
			if r.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: filled(asked["requestedSchema"])}, nil
		},
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { e.hear("changed", "tools") },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { e.hear("changed", "prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			e.hear("changed", "resources")
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			e.hear("updated", r.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			e.hear("log", without(r.Params))
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if e.listensTo(r.Params.ProgressToken) {
				e.hear("progress", without(r.Params))
			}
		},
	}
}

// without returns params without what differs from run to run.
func without(params any) map[string]any {
	o, err := object[any](encoded(params))
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	delete(o, "_meta")
	delete(o, "progressToken")
	return o
}

// filled answers a form: each field with its default, its first choice, or
// something of its type.
func filled(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	form := make(map[string]any)
	for name, p := range properties {
		form[name] = value(p)
	}
	return form
}

func value(schema any) any {
	s, _ := schema.(map[string]any)
	if v, ok := s["default"]; ok {
		return v
	}
	if list, ok := s["enum"].([]any); ok {
		return list[0]
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if list, ok := s[key].([]any); ok {
			choice, _ := list[0].(map[string]any)
			return choice["const"]
		}
	}
	switch s["type"] {
	case "array":
		return []any{value(s["items"])}
	case "boolean":
		return true
	case "integer", "number":
		return 7
	}
	switch s["format"] {
	case "email":
		return "tour@example.com"
	case "uri":
		return "https://example.com/"
	case "date":
		return "2026-11-30"
	}
	return "tour"
}

// object decodes a JSON object; empty when there is none.
func object[T any](raw json.RawMessage) (map[string]T, error) {
	o := make(map[string]T)
	if len(raw) == 0 {
		return o, nil
	}
	return o, json.Unmarshal(raw, &o)
}
