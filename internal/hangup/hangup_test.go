// SPDX-License-Identifier: Apache-2.0

package hangup_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/garraia/garra/internal/hangup"
)

func TestOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("can't be told here")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ours, theirs := socketPair(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pipe, socket := hangup.Of(w), hangup.Of(ours)
	if pipe() || socket() || hangup.Of(file)() || hangup.Of(nil)() {
		t.Error("an end that is there counts as gone")
	}
	if err := theirs.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if socket() {
		t.Error("a socket that was half-closed counts as gone")
	}
	r.Close()
	theirs.Close()
	if !pipe() || !socket() {
		t.Errorf("gone: pipe %v, socket %v; want both", pipe(), socket())
	}
}

func TestWait(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("can't be told here")
	}
	ours, theirs := socketPair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, c := range map[string]struct{ ours, theirs io.Closer }{
		"socket": {ours, theirs}, "pipe": {w, r},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan bool, 2)
		wait := func() { told <- hangup.Wait(ctx, c.ours) }
		go wait() // ends with ctx, which told awaits
		cancel()
		if <-told {
			t.Errorf("%s: gone, although only the waiting ended", name)
		}
		ctx = t.Context()
		go wait() // ends with the other end, which told awaits
		c.theirs.Close()
		if !<-told {
			t.Errorf("%s: not gone, although it was closed", name)
		}
		if !hangup.Wait(t.Context(), c.ours) {
			t.Errorf("%s: not gone any more", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if hangup.Wait(ended, nil) {
		t.Error("what is no stream counts as gone")
	}
}

// socketPair returns the ends of a connection.
func socketPair(t *testing.T) (ours, theirs *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if theirs, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	if ours, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	return ours, theirs
}
