// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

// A rig is a Keeper, and the vault that others write.
type rig struct {
	*Keeper
	t    *testing.T
	path string
	// told are the keys and servers that a change concerned, of those that ask.
	told []string
}

// newRig returns a Keeper for a vault that isn't there yet.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "vault.age")}
	r.Keeper = New(Options{
		Vault: vault.Options{Path: r.path, WorkFactor: 2},
		Rotated: func(changed func(server, key string) bool) []string {
			var restarted []string
			for _, server := range []string{"one", "two", "one.b"} {
				for _, key := range []string{"mcp.one.TOKEN", "mcp.one.b.TOKEN", "mcp.two.TOKEN", "team.key", "op:x"} {
					if changed(server, key) {
						r.told = append(r.told, server+" "+key)
						restarted = append(restarted, server)
					}
				}
			}
			slices.Sort(restarted)
			return slices.Compact(restarted)
		},
	})
	t.Cleanup(r.Close)
	return r
}

func passphrase(t *testing.T, text string) vault.Key {
	t.Helper()
	return vault.Passphrase(seal(t, text))
}

func seal(t *testing.T, text string) *vault.Secret {
	t.Helper()
	s, err := vault.Seal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// create makes the vault.
func (r *rig) create() {
	r.t.Helper()
	v, err := vault.Create(r.options.Vault, passphrase(r.t, "right"))
	if err != nil {
		r.t.Fatal(err)
	}
	v.Close()
}

// write changes the vault as another process does.
func (r *rig) write(change func(*vault.Edit) error) {
	r.t.Helper()
	v, err := vault.Open(r.options.Vault, passphrase(r.t, "right"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer v.Close()
	if err := v.Update(change); err != nil {
		r.t.Fatal(err)
	}
}

// set stores a value that is shared.
func (r *rig) set(key, value string, servers ...string) {
	r.t.Helper()
	secret := seal(r.t, value)
	r.write(func(e *vault.Edit) error {
		return errors.Join(e.Set(key, secret), e.Share(key, servers))
	})
}

// unlock opens the vault, and forgets what was told of that.
func (r *rig) unlock() {
	r.t.Helper()
	if _, err := r.Unlock(passphrase(r.t, "right")); err != nil {
		r.t.Fatal(err)
	}
	r.told = nil
}

// refresh reads the vault again, and wants to tell exactly so much.
func (r *rig) refresh(want ...string) {
	r.t.Helper()
	r.told = nil
	if _, err := r.Refresh(); err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(want, r.told); diff != "" {
		r.t.Errorf("told: %s", diff)
	}
}

// refused wants no secret, and the reason and the advice to say something.
func (r *rig) refused(server, key, message, fix string) {
	r.t.Helper()
	got, err := r.Secret(r.t.Context(), server, key)
	var advised interface{ Advice() string }
	if got != "" || !errors.As(err, &advised) {
		r.t.Fatalf("%s %s: got %q, %v", server, key, got, err)
	}
	if !strings.Contains(err.Error(), message) || !strings.Contains(advised.Advice(), fix) {
		r.t.Errorf("%s %s: %q; %q, want %q; %q", server, key, err, advised.Advice(), message, fix)
	}
	if check := r.Check(server, key); check == nil || check.Error() != err.Error() {
		r.t.Errorf("%s %s: the check says %v", server, key, check)
	}
}

func (r *rig) has(server, key, want string) {
	r.t.Helper()
	got, err := r.Secret(r.t.Context(), server, key)
	if got != want || err != nil || r.Check(server, key) != nil {
		r.t.Errorf("%s %s: got %q, %v, want %q", server, key, got, err, want)
	}
}

func TestWhoMayHaveWhat(t *testing.T) {
	r := newRig(t)
	r.create()
	r.set("mcp.one.TOKEN", "1")
	r.set("mcp.one.b.TOKEN", "1b")
	r.set("mcp.two.TOKEN", "2", "one")
	r.set("team.key", "t", "two")
	r.set("nobodys", "n")
	r.unlock()
	for _, test := range []struct{ server, key, want string }{
		{"one", "mcp.one.TOKEN", "1"},
		{"one.b", "mcp.one.b.TOKEN", "1b"},
		{"two", "mcp.two.TOKEN", "2"},
		{"one", "mcp.two.TOKEN", "2"},
		{"two", "team.key", "t"},
	} {
		r.has(test.server, test.key, test.want)
	}
	for _, test := range []struct{ server, key, message, fix string }{
		{"two", "mcp.one.TOKEN", `belongs to the server "one"`, "garra vault share mcp.one.TOKEN --for two"},
		{"one", "mcp.one.b.TOKEN", `belongs to the server "one.b"`, "garra vault share mcp.one.b.TOKEN --for one"},
		{"one.b", "mcp.one.TOKEN", `belongs to the server "one"`, "--for one.b"},
		{"b", "mcp.one.b.TOKEN", `belongs to the server "one.b"`, "--for b"},
		{"one", "team.key", "is not shared with this server", "garra vault share team.key --for one"},
		{"one", "nobodys", "is not shared with this server", "garra vault share nobodys --for one"},
		{"one", "mcp.one.OTHER", "no such key", "garra vault set mcp.one.OTHER`"},
		{"one", "other", "no such key", "garra vault set other --for one"},
		{"two", "mcp.one.OTHER", "no such key", "garra vault set mcp.one.OTHER --for two"},
		{"ONE", "mcp.one.TOKEN", "belongs", ""},
		{"", "team.key", "not shared", ""},
	} {
		r.refused(test.server, test.key, test.message, test.fix)
	}
}

func TestWhyItIsLocked(t *testing.T) {
	r := newRig(t)
	r.refused("one", "mcp.one.TOKEN", "there is no vault", "garra vault init")
	if err := r.Check("one", "mcp.one.TOKEN"); !errors.Is(err, vault.ErrNoVault) {
		t.Errorf("the cause is lost: %v", err)
	}
	r.create()
	r.refused("one", "mcp.one.TOKEN", "nobody has given its passphrase", "garra vault unlock")
	r.Lock(&Error{Message: "the file with the passphrase is empty", Fix: "write it", Cause: os.ErrPermission})
	r.refused("one", "mcp.one.TOKEN", "the file with the passphrase is empty", "write it")
	if !errors.Is(r.Check("one", "x"), os.ErrPermission) {
		t.Error("the cause is lost")
	}
	if _, err := r.Unlock(passphrase(t, "wrong")); !errors.Is(err, vault.ErrWrongPassphrase) {
		t.Errorf("a wrong passphrase: %v", err)
	}
	r.refused("one", "mcp.one.TOKEN", "the passphrase doesn't open the vault", "garra vault unlock")
	if err := os.WriteFile(r.path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Unlock(passphrase(t, "right")); !errors.Is(err, vault.ErrDamaged) {
		t.Errorf("a damaged file: %v", err)
	}
	r.refused("one", "mcp.one.TOKEN", "could not be opened", "")
	if len(r.told) != 0 {
		t.Errorf("told of nothing: %q", r.told)
	}
}

func TestUnlock(t *testing.T) {
	r := newRig(t)
	r.create()
	r.set("mcp.one.TOKEN", "1")
	restarted, err := r.Unlock(passphrase(t, "right"))
	if err != nil || !slices.Contains(restarted, "one") || slices.Contains(r.told, "two op:x") {
		t.Errorf("whoever waits for the vault is told, and nobody else: %q %q %v", restarted, r.told, err)
	}
	r.has("one", "mcp.one.TOKEN", "1")

	// Once more: nobody's secret has changed.
	r.told = nil
	if restarted, err := r.Unlock(passphrase(t, "right")); len(restarted) != 0 || len(r.told) != 0 || err != nil {
		t.Errorf("%q %q %v", restarted, r.told, err)
	}
	// A wrong passphrase takes nothing from anybody.
	if _, err := r.Unlock(passphrase(t, "wrong")); !errors.Is(err, vault.ErrWrongPassphrase) {
		t.Error(err)
	}
	r.has("one", "mcp.one.TOKEN", "1")
	// What was written meanwhile is told.
	r.set("mcp.one.TOKEN", "other")
	if restarted, err := r.Unlock(passphrase(t, "right")); !slices.Equal(restarted, []string{"one"}) || err != nil {
		t.Errorf("%q %v", restarted, err)
	}
	r.has("one", "mcp.one.TOKEN", "other")
	r.Close()
	r.refused("one", "mcp.one.TOKEN", "", "")
}

func TestRefreshTellsWhatChanged(t *testing.T) {
	r := newRig(t)
	if restarted, err := r.Refresh(); restarted != nil || err != nil {
		t.Errorf("while it is locked: %q %v", restarted, err)
	}
	r.create()
	r.unlock()
	r.refresh()
	r.set("mcp.one.TOKEN", "1")
	r.refresh("one mcp.one.TOKEN")
	r.set("team.key", "t", "one")
	r.refresh("one team.key")
	r.set("team.key", "t", "one", "two")
	r.refresh("two team.key")
	r.set("team.key", "t", "two")
	r.refresh("one team.key")
	r.set("mcp.one.TOKEN", "1", "two")
	r.refresh("two mcp.one.TOKEN") // its owner has it anyway
	r.set("mcp.one.TOKEN", "1", "two")
	r.refresh()
	r.write(func(e *vault.Edit) error { return e.SetPolicy("team.key", vault.PolicyBlock) })
	r.refresh("two team.key") // which is held with the policy from then on
	if !r.Blocked("team.key") || r.Blocked("mcp.one.TOKEN") || r.Blocked("no.such") {
		t.Error("policies are not what was set")
	}
	r.write(func(e *vault.Edit) error { return e.Delete("team.key") })
	r.refresh("two team.key")
	r.has("two", "mcp.one.TOKEN", "1")
}

func TestRefreshOfADamagedFile(t *testing.T) {
	r := newRig(t)
	r.create()
	r.set("mcp.one.TOKEN", "1")
	r.unlock()
	whole, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path, whole[:len(whole)-7], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Refresh(); !errors.Is(err, vault.ErrDamaged) || len(r.told) != 0 {
		t.Errorf("%v, told %q", err, r.told)
	}
	r.has("one", "mcp.one.TOKEN", "1")
	if err := os.WriteFile(r.path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	r.refresh()
}

// A key waits for a vault that is made later.
func TestFollow(t *testing.T) {
	r := newRig(t)
	if _, err := r.Unlock(passphrase(t, "right")); !errors.Is(err, vault.ErrNoVault) {
		t.Fatal(err)
	}
	follow := func(want string) {
		t.Helper()
		r.told = nil
		if err := r.follow(); err != nil || !strings.Contains(strings.Join(r.told, "\n"), want) {
			t.Errorf("%v, told %q, want %q", err, r.told, want)
		}
	}
	follow("")
	if r.told != nil {
		t.Errorf("told %q, and there is no vault", r.told)
	}
	r.create()
	follow("one mcp.one.TOKEN")
	r.set("mcp.one.TOKEN", "1")
	follow("one mcp.one.TOKEN")
	r.has("one", "mcp.one.TOKEN", "1")

	// What goes wrong is told once for each state of the file.
	if err := os.WriteFile(r.path, []byte("no vault"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.follow(); !errors.Is(err, vault.ErrDamaged) {
		t.Error(err)
	}
	follow("")
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := r.follow(); err == nil {
		t.Error("nothing is said of a vault that went")
	}
	follow("")
	r.has("one", "mcp.one.TOKEN", "1")
}

// Without a key nothing is opened.
func TestFollowWithoutAKey(t *testing.T) {
	r := newRig(t)
	r.create()
	if err := r.follow(); err != nil || r.told != nil {
		t.Errorf("%v %q", err, r.told)
	}
	r.refused("one", "mcp.one.TOKEN", "nobody has given its passphrase", "")
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.create()
		r.unlock()
		ctx, cancel := context.WithCancel(t.Context())
		trouble := make(chan error, 8)
		done := make(chan struct{})
		go func() { // ends with ctx; it is waited for
			defer close(done)
			r.Watch(ctx, func(err error) { trouble <- err })
		}()
		if err := os.WriteFile(r.path, []byte("no vault"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * look) // of the bubble's clock
		synctest.Wait()
		cancel()
		<-done
		close(trouble)
		var said []error
		for err := range trouble {
			said = append(said, err)
		}
		if len(said) != 1 || !errors.Is(said[0], vault.ErrDamaged) {
			t.Errorf("said %v", said)
		}
	})
}

func TestStores(t *testing.T) {
	r := newRig(t)
	if got := r.Stores(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	r.Configure([]mcpconfig.Store{
		{Name: "op", Command: []string{"/bin/echo", "kept-{key}"}, Timeout: time.Minute},
		{Name: "gone", Command: []string{"/no/such/program"}, Timeout: time.Minute},
	})
	if diff := cmp.Diff([]string{"gone", "op"}, r.Stores()); diff != "" {
		t.Error(diff)
	}
	r.has("whoever", "op://Private/x", "kept-//Private/x")
	r.refused("one", "other:x", `there is no store "other"`, "section secrets")
	if got, err := r.Secret(t.Context(), "one", "gone:x"); got != "" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := r.Check("one", "gone:x"); err != nil {
		t.Errorf("a check asks the store: %v", err)
	}
	// One that went is no text from then on.
	if changed := r.Configure(nil); !slices.Equal(changed, []string{"gone", "op"}) {
		t.Errorf("changed: %q", changed)
	}
	r.refused("one", "op:x", `the store "op" is no longer in config.yml`, "take the reference out")
	broken := []mcpconfig.Store{{Name: "op", Invalid: true}}
	if changed := r.Configure(broken); !slices.Equal(changed, []string{"op"}) {
		t.Errorf("changed: %q", changed)
	}
	r.refused("one", "op:x", "is not valid in config.yml", "garra config check")
	if changed := r.Configure(broken); len(changed) != 0 {
		t.Errorf("changed: %q", changed)
	}
}

// Everything at once, for the race detector: who reads gets one of the values.
func TestConcurrentUse(t *testing.T) {
	r := newRig(t)
	r.options.Rotated = func(changed func(server, key string) bool) []string {
		changed("one", "mcp.one.TOKEN")
		return nil
	}
	r.create()
	r.set("mcp.one.TOKEN", "value 0")
	r.unlock()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				got, err := r.Secret(t.Context(), "one", "mcp.one.TOKEN")
				if err != nil || !strings.HasPrefix(got, "value ") {
					t.Errorf("%q, %v", got, err)
				}
				r.Blocked("mcp.one.TOKEN")
			}
		})
	}
	all.Go(func() {
		for range 20 {
			if err := r.follow(); err != nil {
				t.Error(err)
			}
			r.Configure([]mcpconfig.Store{{Name: "op", Command: []string{"/bin/true"}}})
			r.Stores()
		}
	})
	for i := range 5 {
		r.set("mcp.one.TOKEN", fmt.Sprint("value ", i))
		if _, err := r.Refresh(); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	r.has("one", "mcp.one.TOKEN", "value 4")
}

// Who wrote the vault learns whom that concerned, also if the watch noticed it before.
func TestRefreshAfterTheWatch(t *testing.T) {
	r := newRig(t)
	r.create()
	r.set("mcp.one.TOKEN", "1")
	r.unlock()
	asked := func(want ...string) {
		t.Helper()
		restarted, err := r.Refresh()
		if err != nil || !slices.Equal(restarted, want) {
			t.Errorf("%q, %v; want %q", restarted, err, want)
		}
	}
	r.set("mcp.one.TOKEN", "2")
	if err := r.follow(); err != nil {
		t.Fatal(err)
	}
	asked("one")
	asked() // it is told once
	r.set("mcp.one.TOKEN", "3")
	if err := r.follow(); err != nil {
		t.Fatal(err)
	}
	r.set("team.key", "t", "two") // what came of the state before is no answer to who wrote this
	asked("two")
}
