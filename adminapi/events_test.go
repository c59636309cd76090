// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/garraia/garra/source"
)

func TestASlowFollowerIsCutOff(t *testing.T) {
	events := NewEvents()
	slow, leaveSlow := events.subscribe()
	fast, leaveFast := events.subscribe()
	for i := range eventBacklog + 10 {
		events.Publish(Event{Kind: "state", PID: i})
		if e := <-fast; e.PID != i {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
	n := 0
	for e := range slow { // ends, since it was closed
		if e.PID != n {
			t.Fatalf("event %d is %+v", n, e)
		}
		n++
	}
	if n != eventBacklog {
		t.Errorf("%d events, want %d", n, eventBacklog)
	}
	leaveSlow() // a second end is none
	leaveFast()
	events.Publish(Event{})
	select {
	case e, open := <-fast:
		t.Errorf("after it left: %+v %t", e, open)
	default:
	}
}

func TestEventsAreStreamed(t *testing.T) {
	r := newRig(t, map[string]entry{"one": misbehaving()})
	r.state("one", source.Ready)
	resp, err := r.client.request(t.Context(), http.MethodGet, "/admin/events", "text/event-stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r.ok("POST", "/admin/mcp/one/stop")
	lines := bufio.NewScanner(resp.Body)
	kind := ""
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = value
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind != kind || e.Server != "one" || e.Time.IsZero() {
			t.Errorf("%s: %+v", kind, e)
		}
		if e.State == "stopped" {
			break
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	r.server.Shutdown(t.Context())
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("at the gateway's end: %v", err)
	}
}

// The streams of a token end when it is revoked, and those of others don't.
func TestStreamsEndWithTheirToken(t *testing.T) {
	r := newRig(t, map[string]entry{"one": misbehaving()})
	r.state("one", source.Ready)
	tokens := newTokens(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.server.ServeAddress(l, Options{Tokens: tokens})
	open := func(secret, path string) *bufio.Reader {
		t.Helper()
		req := request(t, http.MethodGet, "http://"+l.Addr().String()+path)
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(err, resp)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return bufio.NewReader(resp.Body)
	}
	stays, other := create(t, tokens, RoleViewer)
	goes, secret := create(t, tokens, RoleViewer)
	left := open(other, "/admin/events")
	revoked := []*bufio.Reader{open(secret, "/admin/events"), open(secret, "/admin/mcp/one/logs")}
	r.server.EndStreams(tokens.Revoked()) // of nobody yet
	if err := tokens.Revoke(goes.ID); err != nil {
		t.Fatal(err)
	}
	r.server.EndStreams(tokens.Revoked())
	for _, stream := range revoked {
		if _, err := io.Copy(io.Discard, stream); err != nil {
			t.Errorf("a stream ends with %v", err)
		}
	}
	r.events.Publish(Event{Kind: "config", Message: "still there"})
	for {
		line, err := left.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream of token %s: %v", stays.ID, err)
		}
		if strings.Contains(line, "still there") {
			return
		}
	}
}
