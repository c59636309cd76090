// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/source"
)

// exists reports whether a file is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	marker := filepath.Join(t.TempDir(), "cancelled")
	s := r.only(misbehaving().With("callTimeoutSecs", 0.2).Writing(marker))
	c := tool("sleep", args{"ms": 60_000, "marker": marker})
	c.Timeout = 0 // the entry's
	began := time.Now()
	_, err := s.Call(t.Context(), c)
	f := failed(t, err, source.CallTimeout)
	contains(t, f.Error(), "tools/call", "200ms", "callTimeoutSecs")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("after %v", took)
	}
	eventually(t, "the server is told", func() bool { return exists(marker) })
	if got := use(t, s, "echo", args{"text": "fine"}); got != "fine" {
		t.Errorf("echo: %q", got)
	}
}

// withProgress returns the call as one that asks for progress.
func withProgress(c *source.Call, token protocol.ID) *source.Call {
	params, _ := protocol.ParseObject(c.Params)
	params.Set("_meta", Raw(fmt.Sprintf(`{"a":1,"progressToken":%s,"b":2}`, token)))
	c.Params, c.Progress = params.Raw(), token
	return c
}

func TestProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	t.Run("restarts the time, under the client's token", func(t *testing.T) {
		t.Parallel()
		who := &client{Name: "a"}
		c := within(800*time.Millisecond, tool("progress", args{"n": 8, "ms": 200}))
		c = withProgress(c, protocol.StringID("mine"))
		c.Client = who
		if _, err := s.Call(t.Context(), c); err != nil {
			t.Error(err)
		}
		heard := who.Heard()
		for i, note := range heard {
			want := fmt.Sprintf(
				`notifications/progress {"progressToken":"mine","progress":%d,"total":8,"message":"step %d"}`,
				i+1, i+1)
			if note != want {
				t.Errorf("got  %s\nwant %s", note, want)
			}
		}
		if len(heard) != 8 {
			t.Errorf("%d notifications", len(heard))
		}
	})
	t.Run("up to a maximum", func(t *testing.T) {
		t.Parallel()
		c := within(200*time.Millisecond, tool("progress", args{"n": 1000, "ms": 20}))
		c = withProgress(c, protocol.NumberID(1))
		began := time.Now()
		_, err := s.Call(t.Context(), c)
		contains(t, failed(t, err, source.CallTimeout).Message, "progress", "2.4s")
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("after %v", took)
		}
	})
	t.Run("is not asked for by who doesn't want it", func(t *testing.T) {
		t.Parallel()
		who := &client{Name: "b"}
		c := tool("progress", args{"n": 3, "ms": 1})
		c.Client = who
		if _, err := s.Call(t.Context(), c); err != nil || len(who.Heard()) != 0 {
			t.Errorf("%v; heard %q", err, who.Heard())
		}
	})
	t.Run("of no call is dropped", func(t *testing.T) {
		for _, params := range []string{
			`{"progressToken":4711}`, `{"progressToken":"x"}`, `{"progressToken":{}}`, `{}`, `[]`,
		} {
			use(t, s, "emit", args{"method": protocol.NoteProgress, "params": Raw(params)})
		}
		if notes := r.Heard(); len(notes) != 0 {
			t.Errorf("told elsewhere: %q", notes)
		}
	})
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	folder := t.TempDir()
	s := r.only(misbehaving().Writing(folder + "/any"))
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		marker := filepath.Join(folder, "never")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Call(ctx, tool("sleep", args{"ms": 60_000, "marker": marker}))
		failed(t, err, source.CallCancelled)
		use(t, s, "echo", nil) // which comes after whatever was written for the other
		if exists(marker) {
			t.Error("the server got a request that nobody wanted")
		}
	})
	t.Run("meanwhile", func(t *testing.T) {
		t.Parallel()
		marker := filepath.Join(folder, "cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := running(ctx, t, s, marker)
		beside := make(chan error, 1)
		go func() { // ends with the call; the test waits for it
			_, err := s.Call(t.Context(), tool("sleep", args{"ms": 200}))
			beside <- err
		}()
		why := &source.CancelError{Reason: "user pressed escape"}
		cancel(why)
		err := <-done
		failed(t, err, source.CallCancelled)
		if !errors.Is(err, why) {
			t.Errorf("the reason is lost: %v", err)
		}
		eventually(t, "the server is told", func() bool { return exists(marker) })
		if err := <-beside; err != nil {
			t.Errorf("the call beside it: %v", err)
		}
	})
	t.Run("by a deadline of the client", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.Call(ctx, tool("hang", nil))
		failed(t, err, source.CallTimeout)
	})
}

// An answer that comes when nobody waits any more goes to nobody.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	// It doesn't read that it is cancelled while it sleeps, so it does answer.
	_, err := s.Call(t.Context(), within(100*time.Millisecond, tool("sleep_serial", args{"ms": 300})))
	failed(t, err, source.CallTimeout)
	if got := use(t, s, "echo", args{"text": "mine"}); got != "mine" {
		t.Errorf("echo: %q", got)
	}
	if got := s.Status(); got.Noise != 0 || got.Restarts != 0 {
		t.Errorf("%+v", got)
	}
}

// Calls run beside each other, and each gets its own answer.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	began := time.Now()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			text := fmt.Sprintf("number %d", i)
			if i%2 == 0 {
				if got := use(t, s, "echo", args{"text": text}); got != text {
					t.Errorf("echo %q: %q", text, got)
				}
				return
			}
			if got := use(t, s, "sleep", args{"ms": 1000 - 10*i}); got != "slept" {
				t.Errorf("sleep: %q", got)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 10*time.Second { // one after the other they would take 25 s
		t.Errorf("%v", took)
	}
}

// The server's own error is the caller's, as it was written.
func TestServersError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	_, err := s.Call(t.Context(), &source.Call{Method: "no/such"})
	e, ok := errors.AsType[*protocol.Error](err)
	if !ok || string(e.Raw()) != `{"code":-32601,"message":"Method not found: no/such"}` {
		t.Errorf("%v", err)
	}
}

// A server that doesn't read makes its callers wait as long as they want to,
// and nobody else. The pipe takes 64 KiB and each request is a megabyte.
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(map[string]fields{"deaf": misbehaving("--stop-reading-stdin"), "s": misbehaving()})
	r.ready("deaf", "s")
	deaf, s := r.Server("deaf"), r.Server("s")
	long := args{"text": strings.Repeat("x", 1<<20)}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if i%2 == 0 {
				_, err := deaf.Call(t.Context(), within(300*time.Millisecond, tool("echo", long)))
				failed(t, err, source.CallTimeout)
				return
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, &source.CancelError{})
			defer cancel()
			_, err := deaf.Call(ctx, tool("echo", long))
			failed(t, err, source.CallCancelled)
		})
	}
	all.Go(func() {
		if got := use(t, s, "echo", long); len(got) != 1<<20 {
			t.Errorf("the other server: %d bytes", len(got))
		}
	})
	all.Wait()
	deaf.Notify("notifications/x", nil)
	eventually(t, "an event of the lost notification", func() bool {
		return r.Saw("did not take notifications/x") != ""
	})
	if got := deaf.Status(); got.Noise != 0 || got.State != source.Ready {
		t.Errorf("%+v", got)
	}
	if err := deaf.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// Who notifies a server that doesn't read doesn't wait for it.
func TestNotifyingAServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	deaf := r.only(misbehaving("--stop-reading-stdin"))
	deaf.Notify("notifications/long", Raw(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`)) // fills the pipe
	for range maxNotes + 1 {
		deaf.Notify("notifications/x", nil) // the last one finds the queue full, if nobody waited
	}
	if r.Saw("did not get notifications/x: 64 messages wait") == "" {
		t.Error("no event tells that there were too many")
	}
	if err := deaf.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A request that is refused while something else is written is answered after that: its
// server would wait for ever.
func TestRefusingWhileTheWriterIsBusy(t *testing.T) {
	t.Parallel()
	toServer, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll([]*os.File{toServer, in, out, fromServer}) })
	l := newLink(wiring{in: in, out: out, limits: &limits{note: time.Minute}, redact: new(redact.Set)})
	<-l.writer.slot // as one who writes has it
	l.refuse(protocol.StringID("ask-1"), "it holds a secret")
	if err := l.writer.finish(nil); err != nil {
		t.Fatal(err)
	}
	line, err := protocol.NewReader(toServer, 0).Next()
	if err != nil || !strings.Contains(string(line), `"id":"ask-1","error":`) {
		t.Errorf("got %s, %v", line, err)
	}
}

// The last words of a server that answers and exits are heard, also when much is
// read before them.
func TestAnswerRightBeforeTheExit(t *testing.T) {
	t.Parallel()
	needProc(t)
	var pid atomic.Int64
	r := newRig(t, func(o *Options) {
		told := o.Hooks.Event
		o.Hooks.Event = func(e source.Event) {
			told(e)
			if p := int(pid.Load()); e.Kind == source.EventNoise && p != 0 {
				eventually(t, "the process is gone", func() bool { return !alive(p) })
				<-time.After(50 * time.Millisecond)
			}
		}
	})
	s := r.only(misbehaving("--noise-before-reply"))
	for range 3 {
		pid.Store(int64(s.Status().PID))
		if got := use(t, s, "answer_and_exit", args{"code": 3}); got != "bye" {
			t.Errorf("%q", got)
		}
		pid.Store(0)
		r.state("s", source.Backoff)
		if err := s.Restart(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A call that was answered isn't cancelled, and initialize never is ("Lifecycle"
// and "Cancellation" in the specification).
func TestNoNeedlessCancellation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--slow-init", "200ms"))
	_, err := s.Call(t.Context(), &source.Call{Method: protocol.MethodInitialize, Timeout: 50 * time.Millisecond})
	failed(t, err, source.CallTimeout)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := s.Call(ctx, tool("echo", nil)); err != nil {
			t.Error(err)
		}
		cancel()
	}
	s.Notify(protocol.NoteCancelled, Raw(`{"requestId":"last"}`)) // the server has heard all before it
	eventually(t, "the server has read all", func() bool { return len(linesOf(r, "s")) > 0 })
	if got := linesOf(r, "s"); len(got) != 1 || !strings.Contains(got[0], `"last"`) {
		t.Errorf("%q", got)
	}
}

func TestCallOfAServerThatStarts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(map[string]fields{"s": misbehaving("--slow-init", "500ms"), "never": misbehaving("--never-init")})
	if got := use(t, r.Server("s"), "echo", args{"text": "worth it"}); got != "worth it" {
		t.Errorf("%q", got)
	}
	_, err := r.Server("never").Call(t.Context(), within(200*time.Millisecond, tool("echo", nil)))
	contains(t, failed(t, err, source.CallTimeout).Message, "the server is in state starting")
}

// An entry's own call timeout is over when it was spent on waiting.
func TestWaitingCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(map[string]fields{"s": misbehaving("--slow-init", "1500ms")})
	began := time.Now()
	_, err := r.Server("s").Call(t.Context(), within(2*time.Second, tool("hang", nil)))
	failed(t, err, source.CallTimeout)
	if took := time.Since(began); took < 2*time.Second || took > 3400*time.Millisecond {
		t.Errorf("%v", took)
	}
}

// A pipe that is full, and what becomes of a frame that was begun.
func TestPipeWriter(t *testing.T) {
	t.Parallel()
	newPipe := func(t *testing.T) (*pipeWriter, *os.File, *[]error) {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeAll([]*os.File{in, out}) })
		var broken []error
		return newPipeWriter(out, func(err error) { broken = append(broken, err) }), in, &broken
	}
	frame := func(c string, n int) []byte { return []byte(strings.Repeat(c, n-1) + "\n") }
	t.Run("frames stay whole", func(t *testing.T) {
		t.Parallel()
		w, in, broken := newPipe(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if begun, err := w.write(ctx, frame("a", 200_000)); !begun || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a frame that doesn't fit: begun %v, %v", begun, err)
		}
		if begun, err := w.write(ctx, frame("b", 10)); begun || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one behind it: begun %v, %v", begun, err)
		}
		done := make(chan error, 1)
		go func() { // ends when the frame is written; the test waits for it
			_, err := w.write(t.Context(), frame("c", 10))
			done <- err
		}()
		frames := protocol.NewReader(in, 0)
		for _, want := range []string{strings.Repeat("a", 199_999), strings.Repeat("c", 9)} {
			if got, err := frames.Next(); string(got) != want || err != nil {
				t.Errorf("got %d bytes %.10q, %v", len(got), got, err)
			}
		}
		if err := <-done; err != nil || len(*broken) != 0 {
			t.Errorf("%v, %v", err, *broken)
		}
	})
	t.Run("nobody reads any more", func(t *testing.T) {
		t.Parallel()
		w, in, broken := newPipe(t)
		in.Close()
		if _, err := w.write(t.Context(), frame("a", 10)); !errors.Is(err, errInputClosed) {
			t.Errorf("%v", err)
		}
		if len(*broken) != 1 {
			t.Errorf("told %v", *broken)
		}
	})
	t.Run("the reader goes while a frame waits", func(t *testing.T) {
		t.Parallel()
		w, in, _ := newPipe(t)
		time.AfterFunc(50*time.Millisecond, func() { in.Close() })
		if begun, err := w.write(t.Context(), frame("a", 200_000)); !begun || !errors.Is(err, errInputClosed) {
			t.Errorf("begun %v, %v", begun, err)
		}
	})
}
