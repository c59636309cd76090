// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
)

func TestCreateAndOpen(t *testing.T) {
	o := options(t)
	if there, err := Exists(o.Path); there || err != nil {
		t.Fatal(there, err)
	}
	want := map[string]string{"mcp.a.TOKEN": "one", "shared": "two\n\"\\ü\x00", "empty": "", "binary": "\xff\x00\xfe"}
	v := create(t, o, phrase(t), want)
	if there, err := Exists(o.Path); !there || err != nil {
		t.Fatal(there, err)
	}
	again := open(t, o, phrase(t))
	for _, v := range []*Vault{v, again} {
		if diff := cmp.Diff(want, values(t, v)); diff != "" {
			t.Error(diff)
		}
	}
	if v.ID() == "" || v.ID() != again.ID() || v.Generation() != 2 || again.Generation() != 2 {
		t.Errorf("%q %d, then %q %d", v.ID(), v.Generation(), again.ID(), again.Generation())
	}
	_, err := Create(o, phrase(t))
	wantKind(t, err, ErrExists, o.Path)
}

// In ordinary memory a vault is no other, and each mode opens values of the other.
func TestModesOfMemory(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), map[string]string{"a": "1"})
	inBothModes(t, func(t *testing.T) {
		set(t, v, map[string]string{"b": t.Name()})
		want := map[string]string{"a": "1", "b": t.Name()}
		for _, v := range []*Vault{v, open(t, o, phrase(t))} {
			if diff := cmp.Diff(want, values(t, v)); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestCreateMakesItsFolder(t *testing.T) {
	o := options(t)
	o.Path = filepath.Join(filepath.Dir(o.Path), "new", "er", "vault.age")
	create(t, o, phrase(t), nil)
	open(t, o, phrase(t))
}

func TestNoVault(t *testing.T) {
	o := options(t)
	_, err := Open(o, phrase(t))
	wantKind(t, err, ErrNoVault, "garra vault init")
	o.Path = filepath.Join(filepath.Dir(o.Path), "no", "folder", "vault.age")
	_, err = Open(o, phrase(t))
	wantKind(t, err, ErrNoVault)
	v := create(t, o, phrase(t), nil)
	if err := os.Remove(o.Path); err != nil {
		t.Fatal(err)
	}
	wantKind(t, v.Update(func(*Edit) error { return nil }), ErrNoVault)
	_, err = v.Reload()
	wantKind(t, err, ErrNoVault)
}

func TestWrongKeys(t *testing.T) {
	o := options(t)
	create(t, o, phrase(t), nil)
	_, err := Open(o, Passphrase(newSecret(t, "battery staple")))
	wantKind(t, err, ErrWrongPassphrase, "doesn't open")
	_, err = Open(o, Passphrase(newSecret(t, "")))
	wantKind(t, err, ErrWrongPassphrase, "empty")
	_, err = Open(o, Key{})
	if !errors.Is(err, errNoKey) {
		t.Errorf("got %v", err)
	}
	_, err = Open(o, newIdentity(t).key)
	wantKind(t, err, ErrWrongPassphrase, "encrypted by a passphrase")
	_, err = Create(options(t), Passphrase(newSecret(t, "")))
	wantKind(t, err, ErrWrongPassphrase, "empty")
}

// A cut or changed file is damage, wherever it is, but where the passphrase's own
// lines are changed: that can't be told from a wrong one.
func TestDamage(t *testing.T) {
	o := options(t)
	create(t, o, phrase(t), map[string]string{"a": "b"})
	good, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	mac := bytes.Index(good, []byte("\n--- ")) + 1
	header := mac + bytes.IndexByte(good[mac:], '\n') + 1
	try := func(file []byte) error {
		if err := os.WriteFile(o.Path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(o, phrase(t))
		return err
	}
	for n := 0; n < len(good); n += 3 {
		wantKind(t, try(good[:n]), ErrDamaged)
	}
	for n := range good {
		changed := bytes.Clone(good)
		changed[n] ^= 1
		err := try(changed)
		inStanza := n > bytes.Index(good, []byte("-> ")) && n < mac
		if inStanza && (errors.Is(err, ErrWrongPassphrase) || errors.Is(err, ErrWorkFactor)) {
			continue
		}
		wantKind(t, err, ErrDamaged)
	}
	wantKind(t, try(append(bytes.Clone(good), 'x')), ErrDamaged)
	wantKind(t, try(append(bytes.Clone(good[:header]), good[header+1:]...)), ErrDamaged)
	wantKind(t, try(make([]byte, maxSize+1)), ErrDamaged, "too large")
	if err := try(good); err != nil {
		t.Error(err)
	}
}

func TestWorkFactors(t *testing.T) {
	o := options(t)
	create(t, o, phrase(t), nil)
	good, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, work := range []string{"21", "30", "4294967296", "99999999999999999999"} {
		line := bytes.IndexByte(good[bytes.Index(good, []byte("-> ")):], '\n') + bytes.Index(good, []byte("-> "))
		file := append(append(bytes.Clone(good[:line-1]), work...), good[line:]...)
		if err := os.WriteFile(o.Path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(o, phrase(t))
		wantKind(t, err, ErrWorkFactor, work[:2], o.Path)
	}
	for _, work := range []int{-1, 21} {
		o.WorkFactor = work
		_, err := Open(o, phrase(t))
		wantKind(t, err, ErrWorkFactor)
	}
}

// counting is a key that counts how often a key is derived from it.
type counting struct {
	keyKind
	opened, written *int
}

func (c counting) identities() ([]age.Identity, error) {
	ids, err := c.keyKind.identities()
	for i, id := range ids {
		ids[i] = countingIdentity{id, c.opened}
	}
	return ids, err
}

func (c counting) recipients(work int) ([]age.Recipient, error) {
	*c.written++
	return c.keyKind.recipients(work)
}

type countingIdentity struct {
	age.Identity
	opened *int
}

func (c countingIdentity) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	*c.opened++
	return c.Identity.Unwrap(stanzas)
}

func TestOneDerivationPerOpeningAndWrite(t *testing.T) {
	o := options(t)
	var opened, written int
	k := Key{counting{phrase(t).kind, &opened, &written}}
	want := func(step string, wantOpened, wantWritten int) {
		t.Helper()
		if opened != wantOpened || written != wantWritten {
			t.Errorf("%s: %d for opening and %d for writing, want %d and %d",
				step, opened, written, wantOpened, wantWritten)
		}
		opened, written = 0, 0
	}
	v := create(t, o, k, nil)
	want("create", 0, 1)
	set(t, v, map[string]string{"a": "1", "b": "2"})
	want("update", 0, 1)
	set(t, v, map[string]string{"a": "1"})
	want("update without a change", 0, 0)
	_, _ = v.Reload()
	values(t, v)
	want("reload without a change, and reading", 0, 0)
	other := open(t, o, k)
	want("open", 1, 0)
	set(t, other, map[string]string{"c": "3"})
	want("update by another", 0, 1)
	if changed, err := v.Reload(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	want("reload", 1, 0)
	set(t, other, map[string]string{"c": "4"})
	opened, written = 0, 0
	set(t, v, map[string]string{"d": "5"})
	want("update of what another wrote", 1, 1)
}

func TestUpdate(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), map[string]string{"a": "1"})
	before, _ := os.ReadFile(o.Path)
	refused := errors.New("refused")
	err := v.Update(func(e *Edit) error {
		if err := e.Set("b", newSecret(t, "2")); err != nil {
			return err
		}
		return refused
	})
	if err != refused {
		t.Errorf("got %v, want the error of the function", err)
	}
	set(t, v, map[string]string{"a": "1"})
	after, _ := os.ReadFile(o.Path)
	if !bytes.Equal(before, after) || v.Generation() != 2 {
		t.Error("the file was written without a change")
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, values(t, v)); diff != "" {
		t.Error(diff)
	}
}

// Two vaults that are open on one file see what the other wrote.
func TestUpdateKeepsWhatOthersWrote(t *testing.T) {
	o := options(t)
	a := create(t, o, phrase(t), map[string]string{"x": "0"})
	b := open(t, o, phrase(t))
	set(t, a, map[string]string{"a": "1"})
	set(t, b, map[string]string{"b": "2"})
	if changed, err := a.Reload(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if changed, err := a.Reload(); changed || err != nil {
		t.Fatal(changed, err)
	}
	want := map[string]string{"x": "0", "a": "1", "b": "2"}
	for _, v := range []*Vault{a, b, open(t, o, phrase(t))} {
		if diff := cmp.Diff(want, values(t, v)); diff != "" {
			t.Error(diff)
		}
	}
}

// A program that doesn't take the lock is noticed too.
func TestUpdateRefusesToOverwrite(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), nil)
	err := v.Update(func(e *Edit) error {
		if err := os.WriteFile(o.Path, []byte("another"), 0o600); err != nil {
			return err
		}
		return e.Set("a", newSecret(t, "1"))
	})
	if err == nil {
		t.Fatal("the file of another was overwritten")
	}
	if got, _ := os.ReadFile(o.Path); string(got) != "another" {
		t.Errorf("the file holds %q", got)
	}
}

func TestRekey(t *testing.T) {
	o := options(t)
	want := map[string]string{"a": "1"}
	v := create(t, o, phrase(t), want)
	id := v.ID()
	next := Passphrase(newSecret(t, "another"))
	if err := v.Rekey(next); err != nil {
		t.Fatal(err)
	}
	_, err := Open(o, phrase(t))
	wantKind(t, err, ErrWrongPassphrase)
	again := open(t, o, next)
	if diff := cmp.Diff(want, values(t, again)); diff != "" || again.ID() != id || again.Generation() != 3 {
		t.Error(diff, again.ID(), again.Generation())
	}
	set(t, v, map[string]string{"a": "2"}) // with the new key
	if err := v.Rekey(Passphrase(newSecret(t, ""))); !errors.Is(err, ErrWrongPassphrase) {
		t.Errorf("an empty passphrase: %v", err)
	}
	set(t, v, map[string]string{"a": "3"})
	open(t, o, next)
	// Whoever has the old key keeps what was read.
	if err := again.Rekey(phrase(t)); err != nil {
		t.Fatal(err)
	}
	_, err = v.Reload()
	wantKind(t, err, ErrWrongPassphrase)
	if diff := cmp.Diff(map[string]string{"a": "3"}, values(t, v)); diff != "" {
		t.Error(diff)
	}
}

func TestClose(t *testing.T) {
	v := create(t, options(t), phrase(t), map[string]string{"a": "1"})
	s, err := v.Value("a")
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
	v.Close()
	if got := text(t, s); got != "1" {
		t.Errorf("got %q", got)
	}
	_, err = v.Value("a")
	wantKind(t, err, ErrClosed)
	_, err = v.Reload()
	wantKind(t, err, ErrClosed)
	wantKind(t, v.Rekey(phrase(t)), ErrClosed)
	wantKind(t, v.Update(func(*Edit) error { return nil }), ErrClosed)
	if _, ok := v.Entry("a"); ok || len(v.Entries()) > 0 || v.ID() != "" || v.Generation() != 0 {
		t.Error("a closed vault shows something")
	}
}

func TestConcurrentUse(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), map[string]string{"a": "1"})
	other := open(t, o, phrase(t))
	var work sync.WaitGroup
	for i := range 4 {
		name := string(rune('b' + i))
		work.Go(func() { set(t, v, map[string]string{name: "x"}) })
		work.Go(func() {
			if _, err := other.Reload(); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() { values(t, v) })
	}
	work.Wait()
	if _, err := other.Reload(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(values(t, v), values(t, other)); diff != "" || len(v.Entries()) != 5 {
		t.Error(diff, v.Entries())
	}
}

func TestEntriesOfAVault(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), nil)
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	v.now = func() time.Time { return at.Add(time.Millisecond) }
	set(t, v, map[string]string{"b": "1", "a": "2"})
	err := v.Update(func(e *Edit) error {
		return errors.Join(e.Share("a", []string{"y", "x", "y"}), e.SetPolicy("a", PolicyBlock))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{Name: "a", SetAt: at, For: []string{"x", "y"}, Policy: PolicyBlock},
		{Name: "b", SetAt: at},
	}
	for _, v := range []*Vault{v, open(t, o, phrase(t))} {
		if diff := cmp.Diff(want, v.Entries()); diff != "" {
			t.Error(diff)
		}
		got, ok := v.Entry("a")
		if diff := cmp.Diff(want[0], got); diff != "" || !ok {
			t.Error(diff)
		}
		got.For[0] = "changed"
		_, err := v.Value("c")
		wantKind(t, err, ErrNoKey, `"c"`)
	}
}
