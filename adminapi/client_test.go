// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/source"
)

// talkative is a server that writes a line to standard error when it starts.
func talkative() entry {
	path, args := misbehave.Command()
	script := append([]string{"-c", `echo hello >&2; exec "$0" "$@"`, path}, args...)
	return entry{"command": "sh", "args": script}
}

func TestLogs(t *testing.T) {
	r := newRig(t, map[string]entry{"one": talkative()})
	r.state("one", source.Ready)
	var lines []LogLine
	collect := func(l LogLine) error {
		lines = append(lines, l)
		return nil
	}
	if err := r.client.Logs(t.Context(), "one", false, collect); err != nil || len(lines) != 1 {
		t.Fatalf("%+v %v", lines, err)
	}
	l := lines[0]
	if l.Server != "one" || l.Line != "hello" || l.Seq != 1 || time.Since(l.Time) > patience {
		t.Errorf("got %+v", l)
	}
	for _, follow := range []bool{false, true} {
		err := r.client.Logs(t.Context(), "nobody", follow, collect)
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusNotFound {
			t.Errorf("an unknown server: %v", err)
		}
	}
	enough := errors.New("enough")
	if err := r.client.Logs(t.Context(), "one", false, func(LogLine) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// Following shows what there was and what comes, over a restart, and ends with
// the gateway.
func TestLogsFollow(t *testing.T) {
	r := newRig(t, map[string]entry{"one": talkative()})
	r.state("one", source.Ready)
	seen := make(chan LogLine)
	ended := make(chan error, 1)
	go func() {
		ended <- r.client.Logs(t.Context(), "one", true, func(l LogLine) error {
			seen <- l
			return nil
		})
	}()
	if l := <-seen; l.Seq != 1 {
		t.Errorf("first %+v", l)
	}
	r.ok("POST", "/admin/mcp/one/restart")
	if l := <-seen; l.Seq != 2 || !l.Note || !strings.HasPrefix(l.Line, "the server was stopped") {
		t.Errorf("then %+v", l)
	}
	if l := <-seen; l.Seq != 3 || l.Line != "hello" {
		t.Errorf("then %+v", l)
	}
	began := time.Now()
	r.server.Shutdown(t.Context())
	if err := <-ended; err != nil {
		t.Errorf("at the gateway's end: %v", err)
	}
	if took := time.Since(began); took > shutdownGrace {
		t.Errorf("a follower held up the end for %s", took)
	}
}

func TestLogsFollowEndsWithItsContext(t *testing.T) {
	r := newRig(t, map[string]entry{"one": talkative()})
	r.state("one", source.Ready)
	ctx, cancel := context.WithCancel(t.Context())
	err := r.client.Logs(ctx, "one", true, func(LogLine) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A client that comes back says what it has seen, and gets the rest.
func TestLogsResume(t *testing.T) {
	r := newRig(t, map[string]entry{"one": talkative()})
	r.state("one", source.Ready)
	r.ok("POST", "/admin/mcp/one/restart")
	req := request(t, http.MethodGet, "http://localhost/admin/mcp/one/logs")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-Id", "1")
	resp, err := r.client.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			if id != "2" {
				t.Errorf("began with %s", id)
			}
			return
		}
	}
	t.Errorf("no event: %v", lines.Err())
}

func TestAttach(t *testing.T) {
	r := newRig(t, map[string]entry{"one": misbehaving()})
	r.state("one", source.Ready)
	conn, in, err := r.client.Attach(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{`+
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil || !strings.Contains(line, `"id":7,"result":`) || !strings.Contains(line, `"name":"misbehave"`) {
		t.Errorf("%s %v", line, err)
	}
	if _, _, err := r.client.Attach(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("an unknown server: %v", err)
	}
	r.server.Shutdown(t.Context())
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the gateway's end: %v", err)
	}
	if _, _, err := r.client.Attach(t.Context(), "one"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without a gateway: %v", err)
	}
}
