// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/garraia/garra/adminapi"
)

// The messages of a client.
const (
	helloLine       = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// statelessCall is one of the stateless era.
const statelessCall = `{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"x","_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

func callLine(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, id)
}

func resultLine(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }

// A peer is one end of a conversation in lines.
type peer struct {
	t *testing.T
	io.Writer
	lines *bufio.Reader
	close func() error
}

func (p *peer) say(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.Writer, line+"\n"); err != nil {
			p.t.Fatalf("saying %s: %v", line, err)
		}
	}
}

// hear wants the next lines to have these parts.
func (p *peer) hear(parts ...string) {
	p.t.Helper()
	for _, part := range parts {
		line, err := p.lines.ReadString('\n')
		if err != nil || !strings.Contains(line, part) {
			p.t.Fatalf("heard %q, %v; want %q", line, err, part)
		}
	}
}

func (p *peer) hearEnd() {
	p.t.Helper()
	if line, err := p.lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		p.t.Fatalf("heard %q, %v; want the end", line, err)
	}
}

// A fakeGateway answers as adminapi's server does, and then says what the test
// says.
type fakeGateway struct {
	net.Listener
	t     *testing.T
	pipes chan *peer
}

// newFakeGateway listens on a socket. With refusal, that is the answer to whoever
// asks for a pipe.
func newFakeGateway(t *testing.T, path, refusal string) *fakeGateway {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	g := &fakeGateway{Listener: l, t: t, pipes: make(chan *peer, 10)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.greet(conn, refusal)
		}
	}()
	return g
}

// greet takes one connection; the first one of a client asks for nothing.
func (g *fakeGateway) greet(conn net.Conn, refusal string) {
	in := bufio.NewReader(conn)
	if _, err := http.ReadRequest(in); err != nil {
		conn.Close()
		return
	}
	if refusal != "" {
		fmt.Fprintf(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s", len(refusal), refusal)
		conn.Close()
		return
	}
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: mcp-stdio\r\nConnection: Upgrade\r\n\r\n")
	g.pipes <- &peer{t: g.t, Writer: conn, lines: in, close: conn.Close}
}

// next returns the next pipe that a client has opened.
func (g *fakeGateway) next() *peer {
	g.t.Helper()
	select {
	case p := <-g.pipes:
		return p
	case <-time.After(10 * time.Second):
		g.t.Fatal("nobody came")
		return nil
	}
}

// kill ends the gateway with a pipe of it.
func (g *fakeGateway) kill(p *peer) {
	g.Close()
	p.close()
}

// startBridge runs a bridge to a socket, and returns the client's end and the
// bridge's outcome.
func startBridge(t *testing.T, path string, patience time.Duration) (*bridge, *peer, <-chan error) {
	t.Helper()
	c, err := adminapi.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	b := newBridge(c, "", zerolog.Nop())
	b.patience = patience
	fromClient, toBridge := io.Pipe()
	fromBridge, toClient := io.Pipe()
	outcome := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		outcome <- b.run(ctx, fromClient, toClient)
		toClient.Close()
	}()
	return b, &peer{t: t, Writer: toBridge, lines: bufio.NewReader(fromBridge), close: toBridge.Close}, outcome
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }

func TestBridgeOutlivesItsGateway(t *testing.T) {
	path := socketPath(t)
	first := newFakeGateway(t, path, "")
	b, client, outcome := startBridge(t, path, time.Minute)
	gateway := first.next()
	client.say(helloLine)
	gateway.hear(helloLine)
	gateway.say(resultLine(1))
	client.hear(`"id":1,"result"`)
	client.say(initializedLine, callLine(2), callLine(3))
	gateway.hear(initializedLine, `"id":2`, `"id":3`)
	gateway.say(resultLine(3))
	client.hear(`"id":3,"result"`)

	// What is in flight is answered once; what is answered is not.
	first.kill(gateway)
	client.hear(`"id":2,"result":{"content":[{"type":"text","text":"the gateway ended during the call`)
	const away = `"garra/error":{"code":"gateway.away","server":"","fix":"call again once it is back; ` +
		"`garra serve` starts it" + `"}`
	client.say(callLine(4))
	client.hear(`"isError":true,"_meta":{` + away + `}}`)
	client.say(`{"jsonrpc":"2.0","id":40,"method":"tools/list"}`)
	client.hear(`"id":40,"error":{"code":-32603,"message":"the gateway is away; garra tries to reach it again; `)
	client.say(`{"jsonrpc":"2.0","id":40,"method":"tools/list"}`)
	client.hear(`"data":{` + away + `}}`)
	client.say(statelessCall)
	client.hear(`"_meta":{` + away + `,"io.modelcontextprotocol/serverInfo":{"name":"garra"`)

	// The next one is greeted unseen, and hears nothing before that.
	gateway = newFakeGateway(t, path, "").next()
	gateway.hear(helloLine)
	client.say(callLine(5))
	for held := 0; held == 0; runtime.Gosched() {
		b.mu.Lock()
		held = len(b.held)
		b.mu.Unlock()
	}
	gateway.say(resultLine(1))
	gateway.hear(initializedLine, `"id":5`)
	gateway.say(resultLine(5))
	client.hear(`"id":5,"result"`)

	// The client closes its side, and still gets what it asked for.
	client.say(callLine(6))
	gateway.hear(`"id":6`)
	client.close()
	gateway.hearEnd()
	gateway.say(resultLine(6))
	client.hear(`"id":6,"result"`)
	gateway.close()
	client.hearEnd()
	if err := <-outcome; err != nil {
		t.Errorf("the bridge ended with %v", err)
	}
}

// A gateway that can't take the client back, since its server does not run, is
// asked again with the client's next request.
func TestBridgeIsNotWelcomeAtOnce(t *testing.T) {
	path := socketPath(t)
	first := newFakeGateway(t, path, "")
	b, client, _ := startBridge(t, path, time.Minute)
	gateway := first.next()
	client.say(helloLine)
	gateway.hear(helloLine)
	gateway.say(resultLine(1))
	client.hear(`"id":1,"result"`)

	first.kill(gateway)
	gateway = newFakeGateway(t, path, "").next()
	gateway.hear(helloLine)
	gateway.say(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it is parked"}}`)
	for refused := false; !refused; runtime.Gosched() {
		b.mu.Lock()
		refused = b.unknown
		b.mu.Unlock()
	}
	client.say(callLine(2))
	gateway.hear(helloLine)
	gateway.say(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"server \"a\": it is parked; wait",` +
		`"data":{"garra/error":{"code":"server.parked","server":"a","fix":"wait"}}}}`)
	client.hear(`"id":2,"result":{"content":[{"type":"text","text":"server \"a\": it is parked; wait"}],` +
		`"isError":true,` +
		`"_meta":{"garra/error":{"code":"server.parked","server":"a","fix":"wait"}}}`)
	client.say(callLine(22))
	gateway.hear(helloLine)
	gateway.say(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"the server's own word"}}`)
	client.hear(`"id":22,"error":{"code":-32000,"message":"the server's own word"}`)
	client.say(callLine(3))
	gateway.hear(helloLine)
	gateway.say(resultLine(1))
	gateway.hear(initializedLine, `"id":3`)
	gateway.say(resultLine(3))
	client.hear(`"id":3,"result"`)
}

// A gateway that reads nothing more before its answers are read gets them read.
func TestBridgeReadsWhileItIsNotHeard(t *testing.T) {
	path := socketPath(t)
	first := newFakeGateway(t, path, "")
	_, client, _ := startBridge(t, path, time.Minute)
	gateway := first.next()
	client.say(helloLine)
	gateway.hear(helloLine)
	gateway.say(resultLine(1))
	client.hear(`"id":1,"result"`)
	long := strings.Repeat("x", 1<<20) // more than a socket holds
	for id := range 4 {
		client.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"x":%q}}`, id+2, long))
	}
	gateway.say(resultLine(2))
	client.hear(`"id":2,"result"`)
	for id := range 4 {
		gateway.hear(fmt.Sprintf(`"id":%d`, id+2))
	}
}

func TestBridgeGivesUp(t *testing.T) {
	path := socketPath(t)
	g := newFakeGateway(t, path, "")
	_, _, outcome := startBridge(t, path, 20*time.Millisecond)
	g.kill(g.next())
	if err := <-outcome; !errors.Is(err, adminapi.ErrNotRunning) || !strings.Contains(err.Error(), "within 20ms") {
		t.Errorf("the bridge ended with %v", err)
	}
}

func TestBridgeEndsWithItsClientWhileTheGatewayIsAway(t *testing.T) {
	path := socketPath(t)
	g := newFakeGateway(t, path, "")
	_, client, outcome := startBridge(t, path, time.Hour)
	pipe := g.next()
	client.say(callLine(1))
	pipe.hear(`"id":1`)
	g.kill(pipe)
	client.hear(`"id":1,"result":{"content":[`)
	client.close()
	if err := <-outcome; err != nil {
		t.Errorf("the bridge ended with %v", err)
	}
}

func TestBridgeIsRefused(t *testing.T) {
	path := socketPath(t)
	newFakeGateway(t, path, `{"error":{"code":"server.unknown","message":"there is no server \"x\"","fix":""}}`)
	_, _, outcome := startBridge(t, path, time.Hour)
	err := <-outcome
	e, ok := errors.AsType[*adminapi.Error](err)
	if !ok || e.Code != "server.unknown" || e.Status != http.StatusNotFound {
		t.Errorf("the bridge ended with %v", err)
	}
}

// A server that the gateway no longer has after its restart is no reason to wait.
func TestBridgeIsRefusedLater(t *testing.T) {
	path := socketPath(t)
	g := newFakeGateway(t, path, "")
	_, _, outcome := startBridge(t, path, time.Hour)
	pipe := g.next()
	g.Close()
	newFakeGateway(t, path, `{"error":{"code":"server.unknown","message":"gone","fix":""}}`)
	pipe.close()
	if e, ok := errors.AsType[*adminapi.Error](<-outcome); !ok || e.Code != "server.unknown" {
		t.Errorf("the bridge ended with %v", e)
	}
}

func TestBridgeEndsWhenInterrupted(t *testing.T) {
	path := socketPath(t)
	g := newFakeGateway(t, path, "")
	c, err := adminapi.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	in, _ := io.Pipe()
	outcome := make(chan error, 1)
	go func() { outcome <- newBridge(c, "", zerolog.Nop()).run(ctx, in, io.Discard) }()
	pipe := g.next()
	cancel(errInterrupted)
	pipe.hearEnd()
	if err := <-outcome; exitCode(err) != exitInterrupted {
		t.Errorf("the bridge ended with %v", err)
	}
}
