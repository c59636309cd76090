// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, r *rig, s *Server, _ *sdk) {
		hello, err := s.Hello(t.Context())
		if err != nil || hello.Instructions != "be kind" || hello.Generation != 1 || !hello.Declares("tools") {
			t.Errorf("%+v, %v", hello, err)
		}
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() {
				want := strings.Repeat("é", i)
				if got := use(t, s, "echo", args{"text": want}); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
		calls.Wait()
		result, err := s.Call(t.Context(), &source.Call{Method: protocol.MethodToolsList, Timeout: time.Minute})
		if err != nil || !strings.Contains(string(result), `"echo"`) {
			t.Errorf("%.200s, %v", result, err)
		}
		_, err = s.Call(t.Context(), tool("no such tool", nil))
		if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Code != protocol.CodeInvalidParams {
			t.Errorf("%v", err)
		}
		if got := r.States("s"); len(got) != 2 || got[0] != source.Starting || got[1] != source.Ready {
			t.Errorf("%v", got)
		}
	})
}

func TestLargeResults(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, _ *rig, s *Server, _ *sdk) {
		for _, n := range []int{100_000, 9 << 20} {
			if got := use(t, s, "big", args{"n": n}); len(got) != n {
				t.Errorf("%d bytes, want %d", len(got), n)
			}
		}
	})
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, _ *rig, s *Server, real *sdk) {
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { // ends with the call, which the test waits for
			_, err := s.Call(ctx, tool("wait", args{"text": "a"}))
			result <- err
		}()
		if got := use(t, s, "echo", args{"text": "beside it"}); got != "beside it" {
			t.Errorf("%q", got)
		}
		<-real.running
		cancel(&source.CancelError{Reason: "enough"})
		failed(t, <-result, source.CallCancelled)
		if got := <-real.cancelled; got != "a" {
			t.Errorf("cancelled %q", got)
		}
		_, err := s.Call(t.Context(), within(300*time.Millisecond, tool("wait", args{"text": "b"})))
		f := failed(t, err, source.CallTimeout)
		contains(t, f.Error(), "300ms", "callTimeoutSecs")
		if got := <-real.cancelled; got != "b" {
			t.Errorf("cancelled %q", got)
		}
		if got := use(t, s, "echo", args{"text": "still there"}); got != "still there" {
			t.Errorf("%q", got)
		}
	})
}
