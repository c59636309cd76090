// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/source"
)

// What a server writes beside its messages costs it nothing.
func TestNoiseOnStandardOutput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flags []string
		noise int // lines, after initialize and two calls
	}{
		"nothing":             {nil, 0},
		"banner":              {[]string{"--banner", "Server started on stdio"}, 1},
		"byte order mark":     {[]string{"--bom"}, 0},
		"mark and banner":     {[]string{"--bom", "--banner", "hi"}, 1},
		"banner that is JSON": {[]string{"--banner", `{"level":"info","msg":"hi"}`}, 1},
		"log lines":           {[]string{"--noise-before-reply"}, 3},
		"a number":            {[]string{"--scalar-line"}, 3},
		"CR LF and blanks":    {[]string{"--crlf"}, 0},
		"everything": {
			[]string{"--bom", "--banner", "v1.2", "--noise-before-reply", "--scalar-line", "--crlf"}, 7,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.only(misbehaving(test.flags...))
			for _, text := range []string{"one", "two"} {
				if got := use(t, s, "echo", args{"text": text}); got != text {
					t.Errorf("echo: %q, want %q", got, text)
				}
			}
			status := s.Status()
			if status.Noise != test.noise || status.Restarts != 0 || status.LastError != nil {
				t.Errorf("noise %d, want %d; %+v", status.Noise, test.noise, status)
			}
		})
	}
}

func TestNoiseIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--banner", "Server started"))
	if r.Saw(`"Server started"`) == "" {
		t.Error("no event quotes the banner")
	}
	for range 2 * lifecycle.MaxTold {
		use(t, s, "null_id_error", nil)
	}
	if got := s.Status().Noise; got != 1+2*lifecycle.MaxTold {
		t.Errorf("noise: %d", got)
	}
	told := 0
	for _, e := range r.Events() {
		if e.Kind == source.EventNoise {
			told++
		}
	}
	if told != lifecycle.MaxTold {
		t.Errorf("%d events of noise, want %d", told, lifecycle.MaxTold)
	}
}

// A line that is no message, right before the answer.
func TestStrayLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	for i, name := range []string{"bad_json", "truncated_line", "array_line", "null_id_error"} {
		if got := use(t, s, name, nil); got != "after a stray line" {
			t.Errorf("%s: %q", name, got)
		}
		if got := s.Status().Noise; got != i+1 {
			t.Errorf("after %s: noise %d, want %d", name, got, i+1)
		}
	}
	// A batch is no noise: what is a message in it counts.
	if notes := r.Heard(); len(notes) != 1 || !strings.HasPrefix(notes[0], "s notifications/x") {
		t.Errorf("notifications: %q", notes)
	}
}

func TestAnswerTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--answer-twice"))
	for _, text := range []string{"one", "two", "three"} {
		if got := use(t, s, "echo", args{"text": text}); got != text {
			t.Errorf("echo: %q, want %q", got, text)
		}
	}
	if got := s.Status().Noise; got != 0 {
		t.Errorf("noise: %d", got)
	}
}

func TestWrongID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--wrong-id"))
	pid := s.Status().PID
	_, err := s.Call(t.Context(), within(300*time.Millisecond, tool("echo", nil)))
	failed(t, err, source.CallTimeout)
	if r.Saw("nobody-asked-with-this") == "" {
		t.Error("no event tells of the id")
	}
	if _, err := s.Call(t.Context(), &source.Call{Method: "ping"}); err != nil {
		t.Errorf("ping: %v", err)
	}
	if got := s.Status(); got.PID != pid || got.Noise != 1 {
		t.Errorf("%+v", got)
	}
}

// Whole answers of any size up to the cap arrive.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--tools", "1", "--tool-desc-bytes", "2000000"))
	for _, size := range []int{100 << 10, 5 << 20, 50 << 20} {
		result, err := s.Call(t.Context(), tool("big", args{"bytes": size}))
		if err != nil || len(result) < size || len(result) > size+100 {
			t.Errorf("%d bytes, want %d and some; %v", len(result), size, err)
		}
	}
	list, err := s.Call(t.Context(), &source.Call{Method: "tools/list"})
	if err != nil || len(list) < 2_000_000 {
		t.Errorf("tools/list: %d bytes, %v", len(list), err)
	}
}

// smallFrames caps messages at 64 KiB.
func smallFrames(o *Options) { o.limits.frame = 64 << 10 }

// An answer over the cap fails its own call and nothing else.
func TestTooLongAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallFrames)
	s := r.only(misbehaving())
	pid := s.Status().PID
	other := make(chan error, 1)
	go func() { // ends with the call; the test waits for it
		_, err := s.Call(t.Context(), tool("sleep", args{"ms": 300}))
		other <- err
	}()
	_, err := s.Call(t.Context(), tool("big", args{"bytes": 100 << 10}))
	f := failed(t, err, source.FrameTooLarge)
	contains(t, f.Error(), "65536 bytes", "ask for less")
	if got := use(t, s, "echo", args{"text": "still here"}); got != "still here" {
		t.Errorf("echo: %q", got)
	}
	if err := <-other; err != nil {
		t.Errorf("the call beside it: %v", err)
	}
	if got := s.Status(); got.PID != pid || got.State != source.Ready {
		t.Errorf("%+v", got)
	}
}

// What isn't an answer and over the cap is dropped, and told.
func TestTooLongNotification(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallFrames)
	s := r.only(misbehaving())
	got := use(t, s, "emit", args{"method": "notifications/x", "params": args{"text": strings.Repeat("x", 60<<10)}})
	if got != "sent" || s.Status().Noise != 0 {
		t.Errorf("under the cap: %q, noise %d", got, s.Status().Noise)
	}
	// The request is as long as the notification: it is only the answers that the cap is for.
	got = use(t, s, "emit", args{"method": "notifications/x", "params": args{"text": strings.Repeat("x", 70<<10)}})
	if got != "sent" || s.Status().Noise != 1 || r.Saw("over the limit") == "" {
		t.Errorf("over the cap: %q, noise %d", got, s.Status().Noise)
	}
}

// A line without an end is none: its server is started again.
func TestRunawayLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, smallFrames)
	s := r.only(misbehaving("--no-newline-flood", "-1"))
	pid := s.Status().PID
	_, err := s.Call(t.Context(), tool("echo", nil))
	f := failed(t, err, source.ServerCrashed)
	contains(t, f.Message, "broke its standard output", "line without an end")
	if _, err := s.Call(t.Context(), &source.Call{Method: "ping"}); err != nil {
		t.Errorf("ping: %v", err)
	}
	if got := s.Status(); got.PID == pid || got.Restarts != 1 {
		t.Errorf("was %d: %+v", pid, got)
	}
}

// A server that ends in the middle of an answer has crashed, whatever it said so far.
func TestHalfAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	_, err := s.Call(t.Context(), tool("half_answer", args{"code": 4}))
	contains(t, failed(t, err, source.ServerCrashed).Message, "exit status 4")
}

// A line that lost its end takes the next message with it, and no more.
func TestLostLineEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--no-newline-flood", "1000"))
	_, err := s.Call(t.Context(), within(200*time.Millisecond, tool("echo", nil)))
	failed(t, err, source.CallTimeout)
	_, err = s.Call(t.Context(), &source.Call{Method: "ping"})
	failed(t, err, source.ServerFailed) // its answer is at the end of that line
	if _, err := s.Call(t.Context(), &source.Call{Method: "ping"}); err != nil {
		t.Errorf("ping: %v", err)
	}
	if got := s.Status().Restarts; got != 0 {
		t.Errorf("%d restarts", got)
	}
}

// Standard error is read while an answer is waited for, however much there is.
func TestStandardErrorNeverBlocks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--stderr-before-reply", "1048576"))
	if got := use(t, s, "echo", args{"text": "here"}); got != "here" {
		t.Errorf("echo: %q", got)
	}
	for _, line := range r.Stderr() {
		if !strings.HasPrefix(line, "s: ") {
			t.Fatalf("a line without its server: %q", line)
		}
	}
	if n := len(r.Stderr()); n < 10_000 {
		t.Errorf("%d lines", n)
	}
}

// The lines of two chatty servers don't mix.
func TestStandardErrorOfTwo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(map[string]fields{
		"a": misbehaving("--stderr-flood", "100000"),
		"b": misbehaving("--stderr-flood", "200000"),
	})
	r.ready("a", "b")
	eventually(t, "all is read", func() bool {
		return len(linesOf(r, "a")) >= 1562 && len(linesOf(r, "b")) >= 3125
	})
	for _, name := range []string{"a", "b"} {
		for _, line := range linesOf(r, name) {
			if !strings.HasPrefix("the quick brown fox jumps over the lazy dog; nobody reads this.", line) {
				t.Fatalf("%s wrote %q", name, line)
			}
		}
	}
}

func linesOf(r *rig, server string) []string {
	var lines []string
	for _, line := range r.Stderr() {
		if text, ok := strings.CutPrefix(line, server+": "); ok {
			lines = append(lines, text)
		}
	}
	return lines
}

// Results that were handed over are not kept. It measures the heap, so nothing
// runs beside it.
func TestResultsAreNotKept(t *testing.T) {
	r := newRig(t)
	s := r.only(misbehaving())
	for range 10 {
		result, err := s.Call(t.Context(), tool("big", args{"bytes": 10 << 20}))
		if err != nil || len(result) < 10<<20 {
			t.Fatalf("%d bytes, %v", len(result), err)
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 64<<20 {
		t.Errorf("%d MiB on the heap after 100 MiB of results", m.HeapAlloc>>20)
	}
}
