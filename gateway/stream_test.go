// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
)

// answer is the answer to request id, of about so many bytes.
func answer(id uint64, size int) *protocol.Message {
	return protocol.NewResult(protocol.NumberID(id), Raw(`{"text":"`+strings.Repeat("x", size)+`"}`))
}

// A client that asks and leaves, again and again, makes garra hold so much and
// no more.
func TestAnswersToClientsThatLeftAreBounded(t *testing.T) {
	g := New(Options{})
	defer g.Close()
	s := newHTTPSessions(g).open(aggregate{g}, "ann")
	const size = backlogBytes / 8
	for i := range uint64(100) {
		s.newStream(1, false).push(answer(i, size))
		if held := s.backlog.load(); held > backlogBytes {
			t.Fatalf("%d bytes are held after %d answers", held, i+1)
		}
	}
	newest := s.streams[s.order[len(s.order)-1]]
	if newest.bytes < size {
		t.Error("the newest answer is not there")
	}

	// Requests that run meanwhile get their answers, but not all of them in full.
	var running []*stream
	for range 20 {
		running = append(running, s.newStream(1, false))
	}
	for i, t := range running {
		t.push(answer(uint64(i), size))
	}
	if held := s.backlog.load(); held > backlogBytes+1<<20 {
		t.Errorf("%d bytes are held", held)
	}
	last := running[len(running)-1].events
	if len(last) != 1 || !bytes.Contains(bytes.Join(last[0].pieces, nil), []byte("was dropped: its client has gone")) {
		t.Errorf("the last one: %+v", last)
	}

	// A client that is there gets everything.
	there := s.newStream(1, false)
	there.connected(1)
	there.push(answer(1, backlogBytes+1))
	if there.bytes < backlogBytes {
		t.Errorf("%d bytes", there.bytes)
	}
}

// A slowView answers a request when it is told to.
type slowView struct {
	view
	answers chan Raw
}

func (v slowView) request(context.Context, *exchange) (Raw, error) { return <-v.answers, nil }

// The same over HTTP, where a call goes on when its client has gone.
func TestCallsOfClientsThatLeftAreBounded(t *testing.T) {
	g := New(Options{})
	defer g.Close()
	v := slowView{aggregate{g}, make(chan Raw)}
	s := newHTTPSessions(g).open(v, "ann")
	s.greeted = true
	big := Raw(`{"text":"` + strings.Repeat("x", backlogBytes/8) + `"}`)
	var all sync.WaitGroup
	const calls = 20
	for id := range uint64(calls) {
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil).WithContext(ctx)
		m := protocol.NewRequest(protocol.NumberID(id), protocol.MethodToolsList, nil)
		all.Go(func() { s.exchange(httptest.NewRecorder(), r, []*protocol.Message{m}, false) })
		leave()
	}
	for left := 0; left < calls; runtime.Gosched() {
		left = 0
		s.mu.Lock()
		for _, t := range s.streams {
			if t != s.standing && !t.isRead() {
				left++
			}
		}
		s.mu.Unlock()
	}
	for range calls {
		v.answers <- big
	}
	all.Wait()
	if held := s.backlog.load(); held > backlogBytes+1<<20 {
		t.Errorf("%d bytes are held", held)
	}
}

// A session that reads no stream of its own keeps little of what is told to all.
func TestNewsForNobodyAreBounded(t *testing.T) {
	g := New(Options{})
	defer g.Close()
	s := newHTTPSessions(g).open(aggregate{g}, "ann")
	news := protocol.NewNotification("notifications/x", nil)
	for range 100_000 {
		s.standing.push(news)
	}
	if held := s.backlog.load(); held > unreadBytes || held < unreadBytes/2 {
		t.Errorf("%d bytes are held", held)
	}
	s.standing.connected(1)
	if !s.standing.push(news) {
		t.Error("a client that is there hears no more")
	}
}

// What is said of a server whose every list has new faults in it has an end.
func TestWarningsAreBounded(t *testing.T) {
	said := 0
	g := New(Options{Warn: func(string, string) { said++ }})
	defer g.Close()
	u := &upstream{name: "a", gateway: g, reported: make(map[string]bool)}
	for i := range 10 * maxWarnings {
		u.warn(strings.Repeat("x", i))
	}
	if said != maxWarnings || len(u.reported) != maxWarnings {
		t.Errorf("%d warnings, %d kept", said, len(u.reported))
	}
}

// A client on a pipe that asks and doesn't read is no longer heard.
func TestAPipeClientThatDoesNotReadIsNotHeard(t *testing.T) {
	in, out := io.Pipe()
	o := newPipeOutlet(out)
	o.awaitRoom()
	o.push(answer(1, pipeQueueBytes/2))
	o.push(answer(2, pipeQueueBytes))
	if o.push(protocol.NewNotification("notifications/x", nil)) {
		t.Error("a notification is taken beyond the bound")
	}
	heard := make(chan struct{})
	go func() { // ends when there is room
		o.awaitRoom()
		close(heard)
	}()
	select {
	case <-heard:
		t.Error("there is no room, and the client may ask")
	case <-time.After(20 * time.Millisecond):
	}
	go io.Copy(io.Discard, in) // ends with the pipe
	<-heard
	o.close()
	in.Close()
}
