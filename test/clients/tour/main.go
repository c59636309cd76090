// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 what is deprecated still works, and servers have it

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds a step.
const patience = 30 * time.Second

// A step is one thing that the client does.
type step struct {
	Do        string            `json:"do"`
	Name      string            `json:"name,omitempty"`
	URI       string            `json:"uri,omitempty"`
	Arguments json.RawMessage   `json:"arguments,omitempty"`
	Argument  map[string]string `json:"argument,omitempty"`
	Context   map[string]string `json:"context,omitempty"`
	Level     string            `json:"level,omitempty"`
	Await     map[string]int    `json:"await,omitempty"`
	Era       string            `json:"era,omitempty"`
}

// A line is what came of a step.
type line struct {
	Step  step             `json:"step"`
	Got   any              `json:"got"`
	Heard map[string][]any `json:"heard,omitempty"`
}

func main() {
	url := flag.String("url", "", "the endpoint of the server")
	token := flag.String("token", "", "the bearer token, if it wants one")
	era := flag.String("era", "legacy", "legacy or modern")
	prefix := flag.String("prefix", "", "what is before names of tools and prompts")
	file := flag.String("steps", "", "the file with the steps")
	flag.Parse()
	t := &tour{era: *era, prefix: *prefix, ears: newEars()}
	if err := t.run(*url, *token, *file); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

// A tour is one run of the program.
type tour struct {
	era, prefix string
	level       string // of the log, in the modern era a member of each call
	ears        *ears
	session     *mcp.ClientSession
}

func (t *tour) run(url, token, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var steps []step
	if err := json.Unmarshal(text, &steps); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := t.connect(url, token); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	hello := t.session.InitializeResult()
	if err := out.Encode(line{Step: step{Do: "connect"}, Got: map[string]any{
		"protocolVersion": hello.ProtocolVersion, "capabilities": hello.Capabilities,
	}}); err != nil {
		return err
	}
	for _, s := range steps {
		if s.Era != "" && s.Era != t.era {
			continue
		}
		if err := out.Encode(t.make(s)); err != nil {
			return err
		}
	}
	return t.session.Close()
}

func (t *tour) connect(url, token string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	capabilities := &mcp.ClientCapabilities{
		RootsV2: &mcp.RootCapabilities{ListChanged: true},
		Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
		},
	}
	options := t.ears.options()
	options.Capabilities = capabilities
	client := mcp.NewClient(&mcp.Implementation{Name: "tour", Version: "1"}, options)
	client.AddRoots(&mcp.Root{URI: "file:///tour/one", Name: "one"}, &mcp.Root{URI: "file:///tour/two", Name: "two"})
	revision := "2025-11-25"
	if t.era == "modern" {
		revision = "2026-07-28"
	}
	transport := &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}},
	}
	var err error
	t.session, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	return err
}

// A bearer is a way to a server with a token.
type bearer struct{ token string }

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// make makes a step.
func (t *tour) make(s step) line {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t.ears.forget()
	got, err := t.do(ctx, s)
	if err != nil {
		got = failure(err)
	}
	heard := t.ears.await(ctx, s.Await)
	return normal(line{s, got, heard})
}

// failure is an error as the transcript has it.
func failure(err error) any {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return map[string]any{"error": map[string]any{"code": wire.Code, "message": wire.Message}}
	}
	return map[string]any{"error": err.Error()}
}

// variable is what differs from run to run: a time of day, the id of a session.
var variable = regexp.MustCompile(`\d{1,2}:\d{2}:\d{2}( [AP]M)?|for session [-\w]+`)

// normal replaces what differs from run to run, and gives what has no order one.
func normal(l line) line {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	if err := out.Encode(l); err != nil {
		return line{Step: l.Step, Got: map[string]any{"error": err.Error()}}
	}
	var same line
	if err := json.Unmarshal(variable.ReplaceAll(text.Bytes(), []byte("VARIABLE")), &same); err != nil {
		return line{Step: l.Step, Got: map[string]any{"error": err.Error()}}
	}
	for _, kind := range []string{"asked", "updated", "changed"} {
		slices.SortFunc(same.Heard[kind], func(a, b any) int { return bytes.Compare(encoded(a), encoded(b)) })
	}
	for _, kind := range []string{"updated", "changed"} { // how often depends on the time
		if list := same.Heard[kind]; list != nil {
			same.Heard[kind] = slices.CompactFunc(list, equal)
		}
	}
	return same
}

func equal(a, b any) bool { return bytes.Equal(encoded(a), encoded(b)) }

func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
