// SPDX-License-Identifier: Apache-2.0

//go:build unix

package handover

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const patience = 30 * time.Second

// pair returns two ends of a connection.
func pair(t *testing.T) (one, other *net.UnixConn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dialled.Close()
		accepted.Close()
	})
	return dialled.(*net.UnixConn), accepted.(*net.UnixConn)
}

// estate is one of three files and two listeners.
func estate(t *testing.T) *Estate {
	t.Helper()
	open := func(name string) *os.File {
		file, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	address, err := FileOf(l, "address")
	if err != nil {
		t.Fatal(err)
	}
	return &Estate{Lock: open("lock"), Socket: open("socket"), Addresses: []*os.File{address}, Path: "/run.sock"}
}

func TestHandover(t *testing.T) {
	ours, theirs := pair(t)
	given := estate(t)
	done := make(chan error, 1)
	go func() {
		g, err := Give(ours, ours)
		if err == nil && g.Request != (Request{PID: 7, RunDir: "/r", TLS: true}) {
			err = errors.New("the request is another")
		}
		if err == nil {
			err = g.Offer(given, patience)
		}
		if err == nil {
			g.Done()
		}
		done <- err
	}()
	taking, err := Take(theirs, Request{PID: 7, RunDir: "/r", TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer taking.Close()
	if taking.Estate.Path != "/run.sock" {
		t.Errorf("the socket is at %s", taking.Estate.Path)
	}
	for i, file := range taking.Estate.files() {
		ours, err := given.files()[i].Stat()
		theirs, theirErr := file.Stat()
		if err != nil || theirErr != nil || !os.SameFile(ours, theirs) {
			t.Errorf("descriptor %d is another file: %v %v", i, err, theirErr)
		}
	}
	l, err := net.FileListener(taking.Estate.Addresses[0])
	if err != nil {
		t.Fatalf("what was handed over takes no connections: %v", err)
	}
	l.Close()
	taking.Estate.Close()
	if err := taking.Ready(); err != nil {
		t.Errorf("the successor: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("the gateway: %v", err)
	}
}

func TestASuccessorThatEnds(t *testing.T) {
	ours, theirs := pair(t)
	done := make(chan error, 1)
	given := estate(t)
	go func() {
		g, err := Give(ours, ours)
		if err == nil {
			err = g.Offer(given, patience)
		}
		done <- err
	}()
	taking, err := Take(theirs, Request{})
	if err != nil {
		t.Fatal(err)
	}
	taking.Estate.Close()
	taking.Close()
	if err := <-done; !errors.Is(err, errGone) {
		t.Errorf("the gateway hears of it as %v", err)
	}
}

func TestAGatewayThatDoesNotHandOver(t *testing.T) {
	ours, theirs := pair(t)
	go func() {
		if g, err := Give(ours, ours); err == nil {
			g.Refuse(errors.New("it is Sunday"))
		}
	}()
	if _, err := Take(theirs, Request{}); err == nil || !strings.Contains(err.Error(), "it is Sunday") {
		t.Errorf("got %v", err)
	}
}

// A gateway that ends while its successor starts leaves everything to it; one that says
// no goes on.
func TestAGatewayThatEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		heard func(g *Giving)
		wants string
	}{
		{"ends", func(g *Giving) { g.conn.Close() }, ""},
		{"goes on", func(g *Giving) { g.Refuse(errors.New("it was told to stop")) }, "told to stop"},
		{"is confused", func(g *Giving) { io.WriteString(g.conn, "{}\n") }, "something else"},
	} {
		ours, theirs := pair(t)
		given := estate(t)
		go func() {
			if g, err := Give(ours, ours); err == nil && g.Offer(given, patience) == nil {
				c.heard(g)
			}
		}()
		taking, err := Take(theirs, Request{})
		if err != nil {
			t.Fatal(err)
		}
		taking.Estate.Close()
		err = taking.Ready()
		if (err == nil) != (c.wants == "") || err != nil && !strings.Contains(err.Error(), c.wants) {
			t.Errorf("a gateway that %s: %v", c.name, err)
		}
	}
}
