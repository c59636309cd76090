// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEdit(t *testing.T) {
	v := create(t, options(t), phrase(t), map[string]string{"a": "1"})
	err := v.Update(func(e *Edit) error {
		wantKind(t, e.Set("a b", newSecret(t, "x")), ErrBadName)
		wantKind(t, e.Delete("b"), ErrNoKey)
		wantKind(t, e.Share("b", nil), ErrNoKey)
		wantKind(t, e.Share("a", []string{"x y"}), ErrBadName)
		wantKind(t, e.SetPolicy("b", PolicyBlock), ErrNoKey)
		if err := e.SetPolicy("a", "loud"); err == nil {
			t.Error("an unknown policy is accepted")
		}
		_, err := e.Value("b")
		wantKind(t, err, ErrNoKey)
		if err := e.Set("b", newSecret(t, "2")); err != nil {
			return err
		}
		s, err := e.Value("b")
		if err != nil || text(t, s) != "2" || len(e.Entries()) != 2 {
			t.Errorf("an edit doesn't show itself: %v %v", err, e.Entries())
		}
		if _, ok := e.Entry("b"); !ok {
			t.Error("an edit doesn't show itself")
		}
		return e.Delete("b")
	})
	if err != nil || v.Generation() != 2 {
		t.Errorf("%v, generation %d: what was undone was written", err, v.Generation())
	}
}

// A new value leaves what else is said of an entry.
func TestSetKeepsTheRest(t *testing.T) {
	v := create(t, options(t), phrase(t), map[string]string{"a": "1"})
	first, later := v.Entries()[0].SetAt, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	v.now = func() time.Time { return later }
	err := v.Update(func(e *Edit) error {
		if err := e.Share("a", []string{"s"}); err != nil {
			return err
		}
		return e.SetPolicy("a", PolicyRedact)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{Name: "a", SetAt: first, For: []string{"s"}, Policy: PolicyRedact}}
	if diff := cmp.Diff(want, v.Entries()); diff != "" {
		t.Error(diff)
	}
	set(t, v, map[string]string{"a": "2"})
	want[0].SetAt = later
	if diff := cmp.Diff(want, v.Entries()); diff != "" {
		t.Error(diff)
	}
}

func TestRemoveServer(t *testing.T) {
	names := []string{"mcp.a.T", "mcp.a.U", "mcp.a.b.T", "mcp.ab.T", "a", "mcp.A.T"}
	all := make(map[string]string)
	for _, name := range names {
		all[name] = "x"
	}
	v := create(t, options(t), phrase(t), all)
	var removed []string
	if err := v.Update(func(e *Edit) error { removed = e.RemoveServer("a"); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mcp.a.T", "mcp.a.U"}, removed); diff != "" {
		t.Error(diff)
	}
	want := []string{"a", "mcp.A.T", "mcp.a.b.T", "mcp.ab.T"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(values(t, v)))); diff != "" {
		t.Error(diff)
	}
}

// Random edits leave a vault, and the file, as a map would be after them. The many
// values are in ordinary memory, which is faster.
func TestEditsAsAModel(t *testing.T) {
	if err := LockMemory(Unlocked); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := LockMemory(); err != nil {
			t.Error(err)
		}
	})
	k := phrase(t)
	rapid.Check(t, func(r *rapid.T) {
		o := options(t)
		v := create(t, o, k, nil)
		v.now = func() time.Time { return time.Unix(1e9, 0) } // a second that passes would be a change
		m := model{}
		for range rapid.IntRange(1, 3).Draw(r, "updates") {
			generation, before := v.Generation(), maps.Clone(m)
			err := v.Update(func(e *Edit) error {
				for range rapid.IntRange(0, 4).Draw(r, "steps") {
					m.step(t, r, e)
				}
				return nil
			})
			if err != nil {
				r.Fatal(err)
			}
			if written := v.Generation() == generation+1; written == maps.Equal(before, m) {
				r.Fatalf("written: %v, from %q to %q", written, before, m)
			}
			for _, v := range []*Vault{v, open(t, o, k)} {
				if diff := cmp.Diff(map[string]string(m), values(t, v)); diff != "" {
					r.Fatal(diff)
				}
			}
		}
	})
}

// A model is what a vault should hold.
type model map[string]string

// step does one random thing with an edit and with the model.
func (m model) step(t *testing.T, r *rapid.T, e *Edit) {
	name := rapid.SampledFrom([]string{"a", "b", "mcp.s.A", "mcp.s.B", "mcp.s.t.A"}).Draw(r, "name")
	switch rapid.SampledFrom([]string{"set", "set", "set", "delete", "server"}).Draw(r, "step") {
	case "set":
		value := string(rapid.SliceOf(rapid.Byte()).Draw(r, "value"))
		if rapid.Bool().Draw(r, "text") {
			value = rapid.String().Draw(r, "value")
		}
		m[name] = value
		if err := e.Set(name, newSecret(t, value)); err != nil {
			r.Fatal(err)
		}
	case "delete":
		_, there := m[name]
		delete(m, name)
		if err := e.Delete(name); (err == nil) != there {
			r.Fatal(err)
		}
	case "server":
		e.RemoveServer("s")
		delete(m, "mcp.s.A")
		delete(m, "mcp.s.B")
	}
}
