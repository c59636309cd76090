// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// requestLine is a request of a client.
func requestLine(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// hearRequest wants the next line to be a request of the bridge's own, and
// answers it.
func (p *peer) hearRequest(method, params string) {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	id := regexp.MustCompile(`"id":("garra-[A-Z0-9]+-[0-9]+")`).FindStringSubmatch(line)
	if err != nil || id == nil || !strings.Contains(line, `"method":"`+method+`","params":`+params+`}`) {
		p.t.Fatalf("heard %q, %v; want %s %s", line, err, method, params)
	}
	p.say(`{"jsonrpc":"2.0","id":` + id[1] + `,"result":{}}`)
}

// A gateway that comes back hears what the last one knew of the client, and the
// client hears of nothing but lists that may have changed.
func TestBridgeRemembers(t *testing.T) {
	path := socketPath(t)
	first := newFakeGateway(t, path, "")
	_, client, _ := startBridge(t, path, time.Minute)
	gateway := first.next()
	client.say(helloLine)
	gateway.hear(helloLine)
	gateway.say(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{"listChanged":true},"prompts":{},` +
		`"resources":{"listChanged":true,"subscribe":true}}}}`)
	client.hear(`"id":1,"result"`)
	client.say(initializedLine)
	gateway.hear(initializedLine)
	for i, request := range []string{
		requestLine(10, "logging/setLevel", `{"level":"error"}`),
		requestLine(11, "logging/setLevel", `{"level":"debug"}`),
		requestLine(12, "resources/subscribe", `{"uri":"x://b"}`),
		requestLine(13, "resources/subscribe", `{"uri":"x://gone"}`),
		requestLine(14, "resources/subscribe", `{"uri":"x://a"}`),
		requestLine(15, "resources/unsubscribe", `{"uri":"x://gone"}`),
	} {
		client.say(request)
		gateway.hear(request)
		gateway.say(resultLine(10 + i))
		client.hear(fmt.Sprintf(`"id":%d`, 10+i))
	}

	for range 2 { // and again
		first.kill(gateway)
		first = newFakeGateway(t, path, "")
		gateway = first.next()
		gateway.hear(helloLine)
		gateway.say(resultLine(1))
		gateway.hear(initializedLine)
		gateway.hearRequest("logging/setLevel", `{"level":"debug"}`)
		gateway.hearRequest("resources/subscribe", `{"uri":"x://a"}`)
		gateway.hearRequest("resources/subscribe", `{"uri":"x://b"}`)
		client.hear(`"method":"notifications/tools/list_changed"`, `"method":"notifications/resources/list_changed"`)
		client.say(callLine(2))
		gateway.hear(callLine(2))
		gateway.say(resultLine(2))
		client.hear(`"id":2,"result"`)
	}
}

// A client whose handshake was not answered begins anew, and is told nothing
// before that.
func TestBridgeForgetsAnUnansweredHandshake(t *testing.T) {
	path := socketPath(t)
	first := newFakeGateway(t, path, "")
	b, client, _ := startBridge(t, path, time.Minute)
	gateway := first.next()
	client.say(helloLine)
	gateway.hear(helloLine)
	first.kill(gateway)
	client.hear(`"id":1,"error"`)
	gateway = newFakeGateway(t, path, "").next()
	for back := false; !back; runtime.Gosched() {
		b.mu.Lock()
		back = b.conn != nil
		b.mu.Unlock()
	}
	client.say(helloLine)
	gateway.hear(helloLine)
	gateway.say(resultLine(1))
	client.hear(`"id":1,"result"`)
}

// What the client has cancelled, nobody answers.
func TestBridgeForgetsWhatWasCancelled(t *testing.T) {
	path := socketPath(t)
	first := newFakeGateway(t, path, "")
	b, client, _ := startBridge(t, path, time.Minute)
	gateway := first.next()
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":100}}`
	client.say(callLine(100), callLine(101), cancelled)
	gateway.hear(callLine(100), callLine(101), cancelled)
	b.mu.Lock()
	if n := len(b.running); n != 1 {
		t.Errorf("%d requests run, want 1", n)
	}
	b.mu.Unlock()
	first.kill(gateway)
	client.hear(`"id":101,"result"`)
	client.say(callLine(102))
	client.hear(`"id":102,"result"`)
}

// The requests of a batch are answered when the gateway goes, each.
func TestBridgeKnowsBatches(t *testing.T) {
	path := socketPath(t)
	first := newFakeGateway(t, path, "")
	b, client, _ := startBridge(t, path, time.Minute)
	gateway := first.next()
	batch := "[" + callLine(1) + "," + initializedLine + "," + callLine(2) + "," + callLine(3) + "]"
	client.say(batch)
	gateway.hear(batch)
	gateway.say(resultLine(2))
	client.hear(`"id":2,"result"`)
	first.kill(gateway)
	for range 2 {
		client.hear(`"result":{"content":[{"type":"text","text":"the gateway ended during the call`)
	}
	client.say(batch)
	client.hear(`"id":1,"result":{"content":[{"type":"text","text":"the gateway is away`,
		`"id":2,"result"`, `"id":3,"result"`)
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.running); n != 0 {
		t.Errorf("%d requests run, want none", n)
	}
}
