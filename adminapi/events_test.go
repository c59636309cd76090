// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"bufio"
	"encoding/json"
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
	resp, err := r.client.request(t.Context(), http.MethodGet, "/admin/events", "text/event-stream")
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
