// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestJSON(t *testing.T) {
	var s Set
	defer s.Hold([]Value{
		{Name: "TOKEN", Text: "hunter2hunter2"},
		{Name: "QUOTED", Text: `pa"ss\word/1`},
		{Name: "PIN", Text: "83617402"},
		{Name: "SHORT", Text: "xy12z"},
		{Name: "ODD", Text: "d83dabcdefgh"},
		{Name: "TRICKY", Text: `a%41b"cdefg`},
		{Name: "OBJECT", Text: `{"alpha":"beta","gamma":[1,{"delta":"epsilon"}]}`},
	})()
	for given, want := range map[string]string{
		`{"a":"hunter2hunter2"}`:                       `{"a":"[redacted:TOKEN]"}`,
		`{ "hunter2hunter2" : [1.50, "x\u0041"] }`:     `{ "[redacted:TOKEN]" : [1.50, "x\u0041"] }`,
		`"\u0068unter2\u0068unter2"`:                   `"[redacted:TOKEN]"`,
		`"a\nhunter2hunter2\u00e9"`:                    `"a\n[redacted:TOKEN]\u00e9"`,
		`"{\"k\":\"hunter2\\u0068unter2\"}"`:           `"{\"k\":\"[redacted:TOKEN]\"}"`,
		`"pa\"ss\\word\/1"`:                            `"[redacted:QUOTED]"`,
		`"\\"`:                                         `"\\"`,
		`{"id":83617402,"n":83617402,"m":-83617402.0}`: `{"id":83617402,"n":"[redacted:PIN]","m":"[redacted:PIN]"}`,
		`{"a":{"id":83617402},"id":null,"b":[83617402]}`: `{"a":{"id":"[redacted:PIN]"},"id":null,` +
			`"b":["[redacted:PIN]"]}`,
		`[{"id":83617402,"id2":83617402}]`:               `[{"id":83617402,"id2":"[redacted:PIN]"}]`,
		`{"id":"hunter2hunter2"}`:                        `{"id":"[redacted:TOKEN]"}`,
		`"xy12z xy12z1 \nxy12z\n"`:                       `"[redacted:SHORT] xy12z1 \n[redacted:SHORT]\n"`,
		`"\ud83dabcdefgh d83dabcdefgh"`:                  `"\ud83dabcdefgh [redacted:ODD]"`,
		`"a%41b\"cdefg"`:                                 `"[redacted:TRICKY]"`,
		`"\ud83d\ude00hunter2hunter2"`:                   `"\ud83d\ude00[redacted:TOKEN]"`,
		`{"hunter2hunter2":1,"%68unter2hunter2":2}`:      `{"[redacted:TOKEN]":1,"[redacted:TOKEN] #2":2}`,
		`{"a":{"hunter2hunter2":1},"hunter2hunter2":{}}`: `{"a":{"[redacted:TOKEN]":1},"[redacted:TOKEN]":{}}`,
		`[{"alpha":"beta","gamma":[1,{"delta":"epsilon"}]}]`: `[{"alpha":"[redacted:OBJECT]","gamma":` +
			`["[redacted:OBJECT]",{"delta":"[redacted:OBJECT]"}]}]`,
		`"{\"alpha\":\"beta\",\"gamma\":[1,{\"delta\":\"epsilon\"}]}"`: `"[redacted:OBJECT]"`,
		`hunter2hunter2 {`: `[redacted:TOKEN] {`,
		` `:                ` `,
		``:                 ``,
	} {
		got, found := s.JSON([]byte(given))
		if string(got) != want {
			t.Errorf("%s\n became %s\n want   %s", given, got, want)
		}
		if found.None() != (given == want) {
			t.Errorf("%s: found %d", given, found.Count)
		}
		if json.Valid([]byte(given)) && !json.Valid(got) {
			t.Errorf("%s became %s, which is not valid", given, got)
		}
	}
}

// TestJSONAround writes a secret somewhere into a value: all else stays, and the
// secret is gone.
func TestJSONAround(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := secretText().Draw(t, "secret")
		var s Set
		defer s.Hold([]Value{{Name: "A", Text: secret}})()
		e := rapid.SampledFrom(encoders()).Draw(t, "encoder")
		other := rapid.StringMatching(`[ ,;:."\\\n(é]{0,9}`).Draw(t, "other")
		encoded := strings.TrimRight(e.encode(t, secret), "=")
		given := map[string]any{"a " + other: []any{1.5, other, encoded}, "b": map[string]any{encoded: true, "c": nil}}
		text, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		out, found := s.JSON(text)
		if found.None() || shows(string(out), secret) {
			t.Fatalf("%s: %s became %s", e.name, text, out)
		}
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: %s became %s: %v", e.name, text, out, err)
		}
		list, ok := got["a "+other].([]any)
		if !ok || len(list) != 3 || !cmp.Equal(list[:2], []any{1.5, other}) {
			t.Fatalf("%s: %s became %s", e.name, text, out)
		}
		if again, found := s.JSON(out); !found.None() || &again[0] != &out[0] {
			t.Fatalf("%s: %s became %s", e.name, out, again)
		}
	})
}

// FuzzJSON wants valid JSON to stay valid, with the same tokens outside of
// strings and numbers, and to be clean afterwards.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":"hunter2\u0068unter2","b":[1e5,83617402,true]}`, `"\\\"hunter2hunter2\\"`, `{"hunter2hunter2":{}}`,
		`["\ud83d","\ud83d\ude00","&#104;unter2hunter2","%68unter2hunter2","aHVudGVyMmh1bnRlcjI"]`, `null`,
		`{"k":"68756e7465723268756e74657232","xy12z":"xy12z"}`, `"\/\b\f\n\r\t\u2028"`,
	} {
		f.Add([]byte(seed))
	}
	var s Set
	s.Hold([]Value{
		{Name: "A", Text: "hunter2hunter2"},
		{Name: "B", Text: "83617402"},
		{Name: "C", Text: "xy12z"},
		{Name: "D", Text: `"a":"b"`},
		{Name: "E", Text: `u0061\bcde`},
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		out, found := s.JSON(text)
		if !json.Valid(out) {
			t.Fatalf("%s became %s", text, out)
		}
		if found.None() && !bytes.Equal(out, text) {
			t.Fatalf("%s became %s, though nothing was found", text, out)
		}
		if shape(t, text) != shape(t, out) {
			t.Fatalf("%s became %s", text, out)
		}
	})
}

// shape returns the structure of a text in JSON.
func shape(t *testing.T, text []byte) string {
	t.Helper()
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return b.String()
		}
		switch token := token.(type) {
		case json.Delim:
			b.WriteRune(rune(token))
		case string, json.Number:
			b.WriteByte('s')
		case bool, nil:
			b.WriteByte('c')
		}
	}
}
