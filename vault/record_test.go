// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"os"
	"path/filepath"
	"testing"
)

// putBack takes a copy of a file, and returns what puts that back.
func putBack(t *testing.T, path string) func() {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRollback(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), map[string]string{"a": "1"})
	restore := putBack(t, o.Path)
	set(t, v, map[string]string{"a": "2"})
	restore()
	_, err := Open(o, phrase(t))
	wantKind(t, err, ErrRollback, "generation 2", "3 already", "--accept-rollback")
	_, err = v.Reload()
	wantKind(t, err, ErrRollback)
	wantKind(t, v.Update(func(e *Edit) error { return e.Delete("a") }), ErrRollback)
	if got := values(t, v)["a"]; got != "2" {
		t.Errorf("an older file replaced what was read: %q", got)
	}

	accepting := o
	accepting.AcceptRollback = true
	if got := values(t, open(t, accepting, phrase(t)))["a"]; got != "1" {
		t.Errorf("got %q", got)
	}
	open(t, o, phrase(t)) // the older one is the newest now
	if changed, err := v.Reload(); !changed || err != nil {
		t.Error(changed, err)
	}
}

func TestAcceptRollbackIsForTheOpening(t *testing.T) {
	o := options(t)
	o.AcceptRollback = true
	v := create(t, o, phrase(t), nil)
	opened := open(t, o, phrase(t))
	restore := putBack(t, o.Path)
	set(t, v, map[string]string{"a": "1"})
	if _, err := opened.Reload(); err != nil {
		t.Fatal(err)
	}
	restore()
	_, err := opened.Reload()
	wantKind(t, err, ErrRollback)
}

func TestRecordsAreOfOneVault(t *testing.T) {
	a, b := options(t), options(t)
	b.Record = a.Record
	v := create(t, a, phrase(t), nil)
	for _, value := range []string{"1", "2", "3"} {
		set(t, v, map[string]string{"a": value})
	}
	create(t, b, phrase(t), nil)
	open(t, a, phrase(t))
	open(t, b, phrase(t))
	info, err := os.Stat(a.Record)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Error(info, err)
	}
}

func TestRecordsThatAreNotThere(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), nil)
	restore := putBack(t, o.Path)
	set(t, v, map[string]string{"a": "1"})
	if err := os.Remove(o.Record); err != nil {
		t.Fatal(err)
	}
	restore()
	open(t, o, phrase(t)) // nobody remembers

	o.Record = filepath.Join(filepath.Dir(o.Record), "new", "folder", "record.json")
	open(t, o, phrase(t))
	if _, err := os.Stat(o.Record); err != nil {
		t.Error(err)
	}
	o.Record = ""
	open(t, o, phrase(t))
}

func TestRecordsThatAreDamaged(t *testing.T) {
	o := options(t)
	create(t, o, phrase(t), nil)
	if err := os.WriteFile(o.Record, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(o, phrase(t))
	wantKind(t, err, ErrDamaged, o.Record, "remove it")
}
