// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/source"
)

func TestApplyTouchesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	edited, kept := misbehaving(), misbehaving("--banner", "kept")
	r.apply(map[string]fields{"edited": edited, "kept": kept, "gone": misbehaving()})
	r.ready("edited", "kept", "gone")
	kpid, epid := r.Server("kept").Status().PID, r.Server("edited").Status().PID
	inFlight := make(chan error, 1)
	go func() { // ends with the call; the test waits for it
		_, err := r.Server("kept").Call(t.Context(), tool("sleep", args{"ms": 1000}))
		inFlight <- err
	}()

	// What doesn't concern the process leaves it alone.
	tools := edited.With("allowedTools", []string{"echo"})
	r.apply(map[string]fields{"edited": tools, "kept": kept, "gone": misbehaving()})
	if got := r.Server("edited").Status(); got.PID != epid || got.State != source.Ready {
		t.Errorf("%+v", got)
	}
	r.apply(map[string]fields{"edited": edited.With("env", args{"NEW": "1"}), "kept": kept, "new": misbehaving()})
	r.ready("edited", "new")
	if r.Server("gone") != nil || r.Server("edited").Status().PID == epid {
		t.Errorf("gone: %v, edited: %+v", r.Server("gone"), r.Server("edited").Status())
	}
	contains(t, use(t, r.Server("edited"), "env", nil), "NEW=1")
	if err := <-inFlight; err != nil {
		t.Errorf("the call during it: %v", err)
	}
	if got := r.Server("kept").Status(); got.PID != kpid {
		t.Errorf("was %d: %+v", kpid, got)
	}
	if got, want := strings.Join(r.Names(), " "), "edited kept new"; got != want {
		t.Errorf("names %q", got)
	}
}

// A server of another name is another one, which doesn't wait.
func TestRename(t *testing.T) {
	t.Parallel()
	needProc(t)
	r := newRig(t)
	r.apply(map[string]fields{"old": misbehaving()})
	r.ready("old")
	old := r.Server("old")
	pid := old.Status().PID
	r.apply(map[string]fields{"new": misbehaving()})
	if r.Server("old") != nil {
		t.Error("the old name is there")
	}
	r.ready("new")
	eventually(t, "the old process is gone", func() bool { return !alive(pid) })
	contains(t, failed(t, old.Restart(t.Context()), source.ServerUnknown).Error(), "out of the configuration")
	_, err := old.Call(t.Context(), tool("echo", nil))
	failed(t, err, source.ServerUnknown)
}

// A name that comes back waits until its last process is gone: two processes of
// one server would meet in its files. Nobody else waits.
func TestRemoveAndAddAgain(t *testing.T) {
	t.Parallel()
	needProc(t)
	r := newRig(t, func(o *Options) { o.limits.eof = 1500 * time.Millisecond })
	stubborn := misbehaving("--ignore-eof", "--ignore-term")
	s := r.only(stubborn)
	pid := s.Status().PID
	began := time.Now()
	r.apply(nil)
	r.apply(map[string]fields{"s": stubborn, "other": misbehaving()})
	if took := time.Since(began); took > time.Second {
		t.Errorf("the changes took %v", took)
	}
	next := r.Server("s")
	if got := next.Status(); next == s || got.State != source.Starting || got.PID != 0 {
		t.Errorf("%+v", got)
	}
	eventually(t, "it runs again", func() bool {
		now := next.Status().PID
		if now != 0 && alive(pid) {
			t.Fatalf("%d runs beside %d", now, pid)
		}
		return now != 0
	})
	r.ready("s", "other")

	// And a stop while it waits is at once.
	r.apply(nil)
	r.apply(map[string]fields{"s": stubborn})
	began = time.Now()
	if err := r.Server("s").Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// Fifty servers, of which half are broken in every way: the others don't wait.
func TestManyServers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	servers := make(map[string]fields)
	broken := []fields{
		misbehaving("--exit-at-start"), misbehaving("--never-init"),
		{"command": "no-such-command-anywhere"},
		misbehaving("--traceback"), misbehaving("--slow-init", "1h"),
	}
	var good []string
	for i := range 50 {
		name := fmt.Sprintf("s%02d", i)
		if i%2 == 0 {
			servers[name] = broken[i/2%len(broken)]
			continue
		}
		servers[name] = misbehaving()
		good = append(good, name)
	}
	began := time.Now()
	r.apply(servers)
	if took := time.Since(began); took > time.Second {
		t.Errorf("applying took %v", took)
	}
	r.ready(good...)
	var all sync.WaitGroup
	for _, name := range good {
		all.Go(func() {
			if got := use(t, r.Server(name), "echo", args{"text": name}); got != name {
				t.Errorf("%s: %q", name, got)
			}
		})
	}
	all.Wait()
	for name := range servers {
		if got := r.Server(name).Status(); slices.Contains(good, name) == (got.State != source.Ready) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(map[string]fields{
		"stubborn": misbehaving("--ignore-eof", "--ignore-term"), "s": misbehaving(),
		"gone": misbehaving("--ignore-eof", "--ignore-term"),
	})
	r.ready("stubborn", "s", "gone")
	r.apply(map[string]fields{"stubborn": misbehaving("--ignore-eof", "--ignore-term"), "s": misbehaving()})
	s := r.Server("s")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	left := r.Close(ctx)
	if !slices.Contains(left, "stubborn") || !slices.Contains(left, "gone") {
		t.Errorf("left: %q", left)
	}
	if left := r.Close(t.Context()); len(left) != 0 {
		t.Errorf("left in the end: %q", left)
	}
	_, err := s.Call(t.Context(), tool("echo", nil))
	contains(t, failed(t, err, source.ServerStopped).Error(), "garra is stopping")

	r.apply(map[string]fields{"late": misbehaving()})
	if len(r.Names()) != 0 || len(r.States("late")) != 0 {
		t.Error("a server was started after the end")
	}
}

// An entry with a url is another package's.
func TestRemoteEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(map[string]fields{"s": {"url": "https://example.com/mcp"}, "own": misbehaving()})
	r.ready("own")
	if r.Server("s") != nil || len(r.Names()) != 1 {
		t.Errorf("servers: %v", r.Names())
	}
	r.apply(map[string]fields{"own": {"url": "https://example.com/mcp"}})
	if r.Server("own") != nil {
		t.Error("a server whose entry has a url now is still there")
	}
}

// secrets are a vault that may be locked.
type secrets struct {
	mu   sync.Mutex // guards what follows
	open bool
	text string
}

// Stores implements envbuild.Secrets.
func (*secrets) Stores() []string { return nil }

func (s *secrets) Secret(_ context.Context, server, key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return "", fmt.Errorf("the vault is locked")
	}
	return s.text + server + key, nil
}

func (s *secrets) rotate(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}

func (s *secrets) unlock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
}

// A server whose environment can't be built says why, and starts by itself when
// it can.
func TestEnvironmentsThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	t.Run("no vault", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.apply(map[string]fields{"s": misbehaving().With("env", args{"TOKEN": "vault:KEY"}), "other": misbehaving()})
		f := failed(t, r.state("s", source.Failed).LastError, source.SecretMissing)
		contains(t, f.Error(), `server "s"`, "env.TOKEN", "mcp.json:", "KEY")
		_, err := r.Server("s").Call(t.Context(), tool("echo", nil))
		answer := failed(t, err, source.SecretMissing)
		if answer.Fix == "" || strings.Count(answer.Error(), answer.Fix) != 1 {
			t.Errorf("the fix isn't there once: %v", answer)
		}
		r.ready("other")
	})
	t.Run("a vault that is unlocked", func(t *testing.T) {
		t.Parallel()
		vault := &secrets{text: "s3cr3t-"}
		r := newRig(t, func(o *Options) { o.Secrets = vault })
		r.apply(map[string]fields{"s": misbehaving().With("env", args{"TOKEN": "vault:KEY"})})
		failure := failed(t, r.state("s", source.Failed).LastError, source.SecretMissing)
		contains(t, failure.Error(), "the vault is locked")
		vault.unlock()
		r.ready("s")
		contains(t, use(t, r.Server("s"), "env", nil), "TOKEN=[redacted:KEY]")
		if got := use(t, r.Server("s"), "backwards_env", args{"name": "TOKEN"}); got != "YEKs-t3rc3s" {
			t.Errorf("backwards, the value is %q", got)
		}
		if got := r.Server("s").Status().Env.From["TOKEN"]; got != "vault" {
			t.Errorf("TOKEN is from %q", got)
		}
		nowhere(t, r, "s3cr3t-")
	})
	t.Run("a file that appears", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.apply(map[string]fields{"s": misbehaving().With("envFile", "settings.env")})
		contains(t, failed(t, r.state("s", source.Failed).LastError, source.ServerFailed).Error(), "settings.env")
		if err := os.WriteFile(filepath.Join(r.dir, "settings.env"), []byte("COLOUR=blue\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.ready("s")
		contains(t, use(t, r.Server("s"), "env", nil), "COLOUR=blue")
	})
	t.Run("a variable that isn't set", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.apply(map[string]fields{"s": misbehaving().With("env", args{"A": "${NOT_SET}", "B": "${NOR_THIS}"})})
		f := failed(t, r.state("s", source.Failed).LastError, source.ServerFailed)
		contains(t, f.Error(), "NOT_SET", "NOR_THIS", "env.A", "env.B")
		r.apply(map[string]fields{"s": misbehaving().With("env", args{"A": "${NOT_SET:-green}"})})
		r.ready("s")
		contains(t, use(t, r.Server("s"), "env", nil), "A=green")
	})
}

// A server gets the secrets of its entry as they are when it starts, and starts again
// when they change.
func TestSecretsOfAServer(t *testing.T) {
	t.Parallel()
	t.Run("a secret that changes", func(t *testing.T) {
		t.Parallel()
		vault := &secrets{text: "s3cr3t-"}
		vault.unlock()
		r := newRig(t, func(o *Options) { o.Secrets = vault })
		r.apply(map[string]fields{
			"s": misbehaving().With("env", args{"TOKEN": "vault:KEY"}), "other": misbehaving(),
		})
		r.ready("s")
		r.ready("other")
		s, other := r.Server("s").Status().PID, r.Server("other").Status().PID
		vault.rotate("changed-")
		r.Rotate(func(_, key string) bool { return key == "KEY" })
		eventually(t, "the server runs with the new value", func() bool {
			now := r.Server("s").Status()
			return now.State == source.Ready && now.PID != s
		})
		if got := use(t, r.Server("s"), "backwards_env", args{"name": "TOKEN"}); got != "YEKs-degnahc" {
			t.Errorf("backwards, the value is %q", got)
		}
		if now := r.Server("other").Status(); now.PID != other || now.Restarts != 0 {
			t.Errorf("the other server was touched: %+v", now)
		}
	})
	t.Run("a secret in a file", func(t *testing.T) {
		t.Parallel()
		vault := &secrets{text: "s3cr3t-"}
		vault.unlock()
		r := newRig(t, func(o *Options) { o.Secrets = vault })
		r.apply(map[string]fields{"s": misbehaving().With("env", args{"KEY_FILE": "vaultfile:KEY"})})
		r.ready("s")
		_, path, _ := strings.Cut(use(t, r.Server("s"), "env", nil), "KEY_FILE=")
		path = regexp.MustCompile(`^[A-Za-z0-9/_.-]+`).FindString(path)
		if text, err := os.ReadFile(path); err != nil || string(text) != "s3cr3t-sKEY" {
			t.Errorf("the file %q holds %q, %v", path, text, err)
		}
		if err := r.Server("s").Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
	})
}

// A failure that names a line names the right one after lines have moved, and
// nothing else happens then.
func TestFailureOfAMovedEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.limits.recheck = time.Hour })
	unset := misbehaving().With("env", args{"A": "${NOT_SET}"})
	r.apply(map[string]fields{"s": unset})
	first := r.state("s", source.Failed).LastError.Message
	r.apply(map[string]fields{"before": misbehaving(), "s": unset})
	eventually(t, "the line is another", func() bool {
		return r.Server("s").Status().LastError.Message != first
	})
	config := sourcetest.Load(t, r.dir, map[string]fields{"before": misbehaving(), "s": unset})
	contains(t, r.Server("s").Status().LastError.Message, config.Servers[1].Position("env.A").String(), "NOT_SET")
	if got := r.States("s"); !slices.Equal(got, []source.State{source.Starting, source.Failed}) {
		t.Errorf("%q", got)
	}
}
