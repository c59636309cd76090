// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// newForked starts a server of which each client has one, played by stages, in
// the fake time of testing/synctest.
func newForked(entry *mcpconfig.Server) (s *stage, forked func(holder string) *stage) {
	stages := make(map[string]*stage)
	s = newStage(entry, func(o *Options) {
		o.Fork = func(entry *mcpconfig.Server, holder string) *Server {
			f := &stage{}
			f.Server = New(entry, f, Options{Holder: holder})
			stages[holder] = f
			return f.Server
		}
	})
	return s, func(holder string) *stage { return stages[holder] }
}

// call makes a call for a holder, whose server becomes ready if it isn't.
func call(t *testing.T, s *stage, forked func(string) *stage, holder string) *source.Failure {
	t.Helper()
	src, failure := s.Fork(holder)
	if failure != nil {
		return failure
	}
	synctest.Wait()
	if f := forked(holder); f.Status().State == source.Starting {
		f.ready()
	}
	if _, err := src.Call(t.Context(), sourcetest.Tool("x", nil)); err != nil {
		t.Fatalf("%s: %v", holder, err)
	}
	return nil
}

// One that wasn't used for a minute makes room for another client; one that was
// used just now does not.
func TestForksAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, forked := newForked(plain())
		defer s.close(t)
		defer s.forks.end("the test ends", true)
		for i := range maxForks {
			if f := call(t, s, forked, fmt.Sprint(i)); f != nil {
				t.Fatal(f)
			}
			time.Sleep(time.Millisecond)
		}
		failure := call(t, s, forked, "one more")
		if failure == nil || failure.Code != source.ServerBusy {
			t.Fatalf("one more: %v", failure)
		}
		time.Sleep(evictable)
		if f := call(t, s, forked, "7"); f != nil {
			t.Fatal(f)
		}
		if f := call(t, s, forked, "one more"); f != nil {
			t.Fatal(f)
		}
		if s.Held("0") != nil || s.Held("7") == nil || len(s.Holders()) != maxForks {
			t.Errorf("holders are %v", s.Holders())
		}
	})
}

// A fork that is used stays, one that isn't ends after the time of its entry.
func TestIdleForksEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, forked := newForked(plain())
		defer s.close(t)
		defer s.forks.end("the test ends", true)
		for range 3 {
			if f := call(t, s, forked, "ann"); f != nil {
				t.Fatal(f)
			}
			time.Sleep(forkIdle - time.Second)
			synctest.Wait()
			if s.Held("ann") == nil {
				t.Fatal("one that is used has ended")
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.Held("ann") != nil {
			t.Error("one that isn't used is still there")
		}
		first := forked("ann")
		if f := call(t, s, forked, "ann"); f != nil || forked("ann") == first {
			t.Errorf("its client gets no other: %v", f)
		}
	})
}

// A server that is not to run has none for its clients, and those that there are
// end with it.
func TestForksEndWithTheirServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, forked := newForked(plain())
		if f := call(t, s, forked, "ann"); f != nil {
			t.Fatal(f)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !isClosed(forked("ann").done) {
			t.Error("Stop didn't wait for it")
		}
		if _, failure := s.Fork("ann"); failure == nil || failure.Code != source.ServerStopped {
			t.Errorf("a stopped server gives %v", failure)
		}
		go func() { _ = s.Start(context.WithoutCancel(t.Context())) }() // ends with close
		synctest.Wait()
		if f := call(t, s, forked, "bob"); f != nil {
			t.Fatal(f)
		}
		left := s.goes(source.Fail(source.ServerStopped, "s", "garra is stopping"))
		for _, server := range left {
			<-server.done
		}
		if len(left) != 2 {
			t.Errorf("%d servers ended", len(left))
		}
		if _, failure := s.Fork("eve"); failure == nil {
			t.Error("one is made after the end")
		}
		synctest.Wait()
	})
}
