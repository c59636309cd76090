// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/google/go-cmp/cmp"
)

// byHand writes a file as people do who have only age.
func byHand(t *testing.T, o Options, id identity, content string, armoured bool) {
	t.Helper()
	recipient, err := age.ParseX25519Recipient(id.recipient)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	var out io.Writer = &file
	closeArmour := func() error { return nil }
	if armoured {
		w := armor.NewWriter(&file)
		out, closeArmour = w, w.Close
	}
	w, err := age.Encrypt(out, recipient)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, content)
	if err := errors.Join(err, w.Close(), closeArmour()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plaintext returns what is inside a file.
func plaintext(t *testing.T, o Options, k Key) string {
	t.Helper()
	file, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := decrypt(o.Path, file, k)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestVaultsMadeByHand(t *testing.T) {
	for name, armoured := range map[string]bool{"binary": false, "armoured": true} {
		t.Run(name, func(t *testing.T) {
			o, id := options(t), newIdentity(t)
			byHand(t, o, id, "\ufeff"+`{"garra_vault": 1, "entries": {
				"a": "one", "b": {"value": "two", "for": ["y", "x"]},
				"c": {"value": {"base64": "AAH/"}, "policy": "block"}, "d": ""}}`, armoured)
			v := open(t, o, id.key)
			want := map[string]string{"a": "one", "b": "two", "c": "\x00\x01\xff", "d": ""}
			if diff := cmp.Diff(want, values(t, v)); diff != "" {
				t.Error(diff)
			}
			b, _ := v.Entry("b")
			if diff := cmp.Diff(Entry{Name: "b", For: []string{"x", "y"}}, b); diff != "" {
				t.Error(diff)
			}
			if v.ID() != "" || v.Generation() != 0 {
				t.Errorf("%q %d", v.ID(), v.Generation())
			}
			set(t, v, map[string]string{"e": "five"})
			want["e"] = "five"
			if diff := cmp.Diff(want, values(t, open(t, o, id.key))); diff != "" {
				t.Error(diff)
			}
			if v.ID() == "" || v.Generation() != 1 {
				t.Errorf("%q %d", v.ID(), v.Generation())
			}
		})
	}
}

// Members of a later version, or of somebody's own, survive every write.
func TestUnknownMembersStay(t *testing.T) {
	o, id := options(t), newIdentity(t)
	byHand(t, o, id, `{"note": {"x": [1, 2.50]}, "garra_vault": 1, "id": "ID", "generation": 6,
		"entries": {"a": {"value": "1", "rotate": "P30D", "url": null}, "b": "2"}, "more": "é"}`, false)
	v := open(t, o, id.key)
	err := v.Update(func(e *Edit) error {
		return errors.Join(e.Set("a", newSecret(t, "3")), e.Share("a", []string{"s"}), e.SetPolicy("a", PolicyRedact))
	})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := v.Entry("a")
	want := `{
  "garra_vault": 1,
  "id": "ID",
  "generation": 7,
  "entries": {
    "a": {"value": "3", "set_at": "` + a.SetAt.Format("2006-01-02T15:04:05Z") + `", "for": ["s"], ` +
		`"policy": "redact", "rotate":"P30D","url":null},
    "b": {"value": "2"}
  },
  "note":{"x": [1, 2.50]},"more":"é"
}
`
	if diff := cmp.Diff(want, plaintext(t, o, id.key)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoVault(t *testing.T) {
	for content, word := range map[string]string{
		``:                                "JSON",
		`{}`:                              "garra_vault",
		`hunter2`:                         "byte 0",
		`[]`:                              "JSON",
		`{"garra_vault": 0}`:              "garra_vault",
		`{"GARRA_VAULT": 1}`:              "garra_vault",
		`{"garra_vault": "1"}`:            "/garra_vault",
		`{"garra_vault": 1} {}`:           "byte",
		`{"garra_vault": 1, "id": "a b"}`: "id",
		`{"garra_vault": 1, "id": "` + strings.Repeat("a", 65) + `"}`:                     "id",
		`{"garra_vault": 1, "generation": -1}`:                                            "/generation",
		`{"garra_vault": 1, "generation": 9007199254740992}`:                              "generation",
		`{"garra_vault": 1, "id": "a", "id": "b"}`:                                        "byte",
		`{"garra_vault": 1, "entries": {"a": "hunter2", "a": "hunter2"}}`:                 "byte",
		`{"garra_vault": 1, "entries": {"a": {"value": "x", "value": "y"}}}`:              "byte",
		`{"garra_vault": 1, "entries": {"a": {"x": {"y": 1, "y": 2}}}}`:                   "byte",
		`{"garra_vault": 1, "entries": {"a": "` + "\xff" + `"}}`:                          "byte",
		`{"garra_vault": 1, "entries": {"a": "hunter2", "b": {}}}`:                        `entry "b": there is no`,
		`{"garra_vault": 1, "entries": {"b": null}}`:                                      `"b"`,
		`{"garra_vault": 1, "entries": {"b": {"value": null}}}`:                           "/entries/b",
		`{"garra_vault": 1, "entries": {"b": {"value": 1234567}}}`:                        "/entries/b",
		`{"garra_vault": 1, "entries": {"b": 1234567}}`:                                   "/entries/b",
		`{"garra_vault": 1, "entries": {"b": {"value": {"base64": "hunter2!"}}}}`:         "/entries/b",
		`{"garra_vault": 1, "entries": {"b": {"value": {}}}}`:                             "/entries/b",
		`{"garra_vault": 1, "entries": {"b": {"value": {"base64": "", "x": "hunter2"}}}}`: "/entries/b",
		`{"garra_vault": 1, "entries": {"b": {"value": "hunter2", "set_at": "hunter2"}}}`: "/entries/b",
		`{"garra_vault": 1, "entries": {"b": {"value": "hunter2", "policy": "loud"}}}`:    "policy",
		`{"garra_vault": 1, "entries": {"b": {"value": "hunter2", "for": ["x y"]}}}`:      `"for"`,
		`{"garra_vault": 1, "entries": {"b c": "hunter2"}}`:                               `"b c": the name`,
	} {
		_, err := decode("/v", []byte(content))
		if err == nil {
			t.Errorf("%s is accepted", content)
			continue
		}
		wantKind(t, err, ErrDamaged, word)
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "1234567") {
			t.Errorf("a value is quoted: %v", err)
		}
	}
	_, err := decode("/v", []byte(`{"garra_vault": 2, "entries": {}}`))
	wantKind(t, err, ErrVersion, "format 2")
}

// A text that is written never grows out of the room that was made for it.
func TestEncodingDoesNotMove(t *testing.T) {
	servers := []string{"a", strings.Repeat("b", maxServerLen)}
	for _, value := range []string{"", "\x01\x02", "\xff\xff\xff", strings.Repeat("\x1f", 1000), "\u2028<>&"} {
		c := &contents{id: "id", generation: maxGeneration - 1, entries: map[string]*item{
			strings.Repeat("n", maxNameLen): {value: newSecret(t, value), servers: servers, policy: PolicyRedact},
		}}
		before := c.maxLen()
		b, err := c.encode()
		if err != nil || len(b) > before || cap(b) < before {
			t.Errorf("%q: %d bytes where room was for %d, %v", value, len(b), before, err)
		}
	}
}

// What is accepted is written so that it is read as the same, and the same text
// comes of that.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"garra_vault": 1, "id": "i", "generation": 3, "entries": {"a": "b",
		"c": {"value": {"base64": "/w=="}, "set_at": "2026-11-30T00:00:00Z",
		"for": ["s"], "policy": "block", "x": 1}}, "y": {}}`))
	f.Add([]byte(`{"garra_vault": 1, "entries": {"a": {"value": "\ud83d\ude00\u0000"}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		first, err := decode("/v", content)
		if err != nil {
			return
		}
		once, err := first.encode()
		if err != nil {
			t.Fatal(err)
		}
		second, err := decode("/v", once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		twice, err := second.encode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(once), string(twice)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(first.all(), second.all()); diff != "" {
			t.Fatal(diff)
		}
		for name, i := range first.entries {
			if !i.value.Equal(second.entries[name].value) {
				t.Fatalf("the value of %q is another", name)
			}
		}
	})
}
