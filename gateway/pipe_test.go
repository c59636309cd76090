// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/hangup"
	"github.com/garraia/garra/protocol"
)

// A halfPipe is a client that says something and closes its side.
type halfPipe struct {
	in    io.WriteCloser
	out   *os.File
	ended chan error
}

// halfPipe serves a client over pipes of the system, which can be closed one by one.
func (r *rig) halfPipe() *halfPipe {
	r.t.Helper()
	in, say := io.Pipe()
	hear, out, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	h := &halfPipe{say, hear, make(chan error, 1)}
	go func() { // ends with the pipe
		h.ended <- r.gateway.ServePipe(context.Background(), in, out, gateway.PipeClient{
			Principal: "test", Gone: hangup.Of(out),
		})
		out.Close()
	}()
	r.t.Cleanup(func() { hear.Close() })
	return h
}

// say sends a handshake and a call, and closes the side of the client.
func (h *halfPipe) say(capabilities, tool, arguments string) {
	fmt.Fprintf(h.in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`+"\n", capabilities)
	fmt.Fprintf(h.in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":%s}`+"\n", callParams(tool, arguments))
	h.in.Close()
}

// answer reads until the answer to the call.
func (h *halfPipe) answer(t *testing.T) string {
	t.Helper()
	frames := protocol.NewReader(h.out, 0)
	for {
		frame, err := frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(frame), `"id":2,`) {
			return string(frame)
		}
	}
}

// A server that asks a client which says nothing more is told so at once; its call
// would wait for that.
func TestAClientThatClosedItsSideIsNotAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	h := r.halfPipe()
	h.say(`{"sampling":{}}`, "a__ask_sampling", `{"text":"?"}`)
	if answer := h.answer(t); !strings.Contains(answer, "closed its side") {
		t.Errorf("the answer is %s", answer)
	}
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
}

// A client that takes its time to read gets all of a large answer.
func TestASlowClientThatClosedItsSideGetsItsAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	h := r.halfPipe()
	h.say(`{}`, "a__big", `{"bytes":3000000}`)
	select {
	case err := <-h.ended:
		t.Fatalf("the pipe ended before the answer was read: %v", err)
	case <-time.After(3 * time.Second):
	}
	if answer := h.answer(t); len(answer) < 3000000 {
		t.Errorf("only %d bytes came", len(answer))
	}
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
}

func TestAClientThatIsGoneEndsItsCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	h := r.halfPipe()
	go h.say(`{}`, "a__hang", `{}`) // ends when it is heard
	h.out.Close()
	select {
	case <-h.ended:
	case <-time.After(patience / 2):
		t.Error("a client that is gone is waited for")
	}
}
