// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// taken returns what a set of values makes of a text.
func taken(text string, values ...Value) string {
	var s Set
	s.Hold(values)
	return s.String(text)
}

func TestHold(t *testing.T) {
	const text = "abcdefgh1 and ijklmnop2"
	var s Set
	check := func(want string) {
		t.Helper()
		if got := s.String(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(text)
	first := s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}})
	second := s.Hold([]Value{{Name: "B", Text: "abcdefgh1"}, {Name: "C", Text: "ijklmnop2"}})
	check("[redacted:A] and [redacted:C]")
	first()
	first()
	check("[redacted:B] and [redacted:C]")
	again := s.Hold([]Value{{Name: "C", Text: "ijklmnop2"}})
	second()
	check("abcdefgh1 and [redacted:C]")
	again()
	check(text)
	if s.current.Load() != nil {
		t.Error("an empty set has an automaton")
	}
}

func TestUntouched(t *testing.T) {
	text := []byte("nothing of interest")
	var s Set
	for range 2 {
		for name, redact := range map[string]func([]byte) ([]byte, Found){"text": s.Text, "json": s.JSON} {
			out, found := redact(text)
			same := &out[0] == &text[0] && len(out) == len(text)
			if !same || !found.None() || found.Blocked() || found.Names() != nil {
				t.Errorf("%s: %q, %v", name, out, found)
			}
		}
		s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}})
	}
}

func TestFound(t *testing.T) {
	var s Set
	s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}, {Name: "B", Text: "gh1ijklmnop"}, {Name: "C", Text: "qrstuvwx"}})
	s.Hold([]Value{{Name: "D", Text: "qrstuvwx", Policy: Block}})
	out, found := s.Text([]byte("abcdefgh1 abcdefgh1ijklmnop abcdefgh1"))
	if want := "[redacted:A] [redacted:A] [redacted:A]"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
	if diff := cmp.Diff([]string{"A", "B"}, found.Names()); diff != "" || found.Count != 3 || found.Blocked() {
		t.Errorf("%+v", found)
	}
	if _, found = s.JSON([]byte(`"qrstuvwx"`)); !found.Blocked() || !cmp.Equal(found.Names(), []string{"C"}) {
		t.Errorf("%+v", found)
	}
	if _, found = s.Text([]byte("71727374757677780")); !found.Blocked() {
		t.Errorf("%+v", found)
	}
}

// TestTogether has secrets that contain, overlap or touch each other.
func TestTogether(t *testing.T) {
	values := []Value{
		{Name: "LONG", Text: "abcdefghijklmnop"},
		{Name: "IN", Text: "defghijkl"},
		{Name: "END", Text: "lmnopqrstu"},
		{Name: "PIN", Text: "x7y9"},
		{Name: "TEN", Text: "x7y9zzzz1"},
		{Name: "OUTER", Text: "00abcdeXYZ12-34"},
		{Name: "MIDDLE", Text: "abcdeXYZ12-56"},
		{Name: "INNER", Text: "deXYZ12-"},
	}
	for text, want := range map[string]string{
		"abcdefghijklmnop":                 "[redacted:LONG]",
		"cdefghijklm":                      "c[redacted:IN]m",
		"00abcdeXYZ12-78":                  "00abc[redacted:INNER]78",
		`%\u0036\u0034efghijkl`:            "[redacted:IN]",
		`&\x23100;efghijkl &#1%30&#48;`:    "[redacted:IN] &#1%30&#48;",
		"abcdefghijklmnopqrstu":            "[redacted:LONG]",
		"defghijklmnopqrstuv":              "[redacted:IN]v",
		"defghijklabcdefghijklmnop":        "[redacted:IN][redacted:LONG]",
		"abcdefghijklmno abcdefghijklmnop": "abc[redacted:IN]mno [redacted:LONG]",
		"x7y9 x7y9zzzz1 x7y9zzzz":          "[redacted:PIN] [redacted:TEN] x7y9zzzz",
		"(x7y9)-ax7y9,x7y9a,äx7y9,x7y9":    "([redacted:PIN])-ax7y9,x7y9a,äx7y9,[redacted:PIN]",
		`\nx7y9\n`:                         `\n[redacted:PIN]\n`,
		`\\nx7y9\\u0020`:                   `\\n[redacted:PIN]\\u0020`,
		`%20x7y9%0A`:                       `%20[redacted:PIN]%0A`,
		`\u0041x7y9 `:                      `\u0041x7y9 `,
		`&quot;x7y9&quot;`:                 `&quot;[redacted:PIN]&quot;`,
	} {
		if got := taken(text, values...); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestMarkers(t *testing.T) {
	for _, c := range []struct{ name, other, want string }{
		{"mcp.gh.TOKEN", "unrelated1", "[redacted:mcp.gh.TOKEN]"},
		{"a\"b\\c\nd", "unrelated1", "[redacted:a_b_c_d]"},
		{"abcdefgh1", "unrelated1", "[redacted]"},
		{"unrelated1", "unrelated1", "[redacted]"},
		{"x", "redacted", "[...]"},
	} {
		got := taken("abcdefgh1", Value{Name: c.name, Text: "abcdefgh1"}, Value{Name: "B", Text: c.other})
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestForms(t *testing.T) {
	const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEA\n" +
		"-----END PRIVATE KEY-----\n"
	for _, c := range []struct{ secret, text, want string }{
		{"  abcdefgh1\n", "<abcdefgh1>", "<[redacted:A]>"},
		{"pass word 1", "q=pass+word+1", "q=[redacted:A]"},
		{"pass word %1", "q=pass+word+%251", "q=[redacted:A]"},
		{"abcdefgh1", "Basic dXNlcjphYmNkZWZnaDE=", "Basic dXNlcjp[redacted:A]E="},
		{pem, pem + "x", "[redacted:A]x"},
		{pem, "key: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "key: [redacted:A]"},
		{pem, strings.ReplaceAll(pem, "\n", `\n`), "[redacted:A]"},
		{strings.ReplaceAll(pem, "\n", `\n`), "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\n", "[redacted:A]\r\n"},
		{"DefaultEndpointsProtocol=https;AccountKey=abcdefgh1==;x=y", "(abcdefgh1==)", "([redacted:A])"},
		{pem, "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"},
		{"postgres://me:s3cretpw@db/x", "password s3cretpw is wrong", "password [redacted:A] is wrong"},
		{"postgres://me:s3cret%21pw@db/x", "s3cret!pw s3cret%21pw", "[redacted:A] [redacted:A]"},
		{"host=db password='s3cretpw' user=me", "is s3cretpw", "is [redacted:A]"},
		{"Server=db;Uid=me;Pwd=s3cretpw;", "is s3cretpw", "is [redacted:A]"},
		{"Bearer abcdefgh1", "abcdefgh1", "[redacted:A]"},
		{"Basic dXNlcjphYmNkZWZnaDE=", "abcdefgh1, user", "[redacted:A], user"},
		{
			`{"type":"service_account","private_key":"abcdefgh1","x":{"api_key":"ijklmnop2"}}`,
			"account ijklmnop2 service_account abcdefgh1", "account [redacted:A] service_account [redacted:A]",
		},
		{"abcdefgh1", "ABCDEFGH1", "ABCDEFGH1"},
		{"admin", "the admin of localhost", "the admin of localhost"},
		{"abc", "abc", "abc"},
		{"--------", "| -------- |", "| -------- |"},
		{"", "x", "x"},
	} {
		if got := taken(c.text, Value{Name: "A", Text: c.secret}); got != c.want {
			t.Errorf("%q: %q became %q, want %q", c.secret, c.text, got, c.want)
		}
	}
}

func TestWeak(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "is empty",
		" \n":               "is empty",
		"abc":               "shorter than 4",
		"True":              "common",
		"localhost":         "common",
		"aaaaaaaaaaaaaaaaa": "common",
		"x7y9 ":             "whole word",
		"abcdefgh":          "",
		"correct horse":     "",
	} {
		if got := Weak(text); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if short := len(strings.TrimSpace(text)) < minLength; Short(text) != short {
			t.Errorf("%q: Short is %v", text, !short)
		}
	}
}

// TestConcurrentUse holds and releases while others read. The secret of the test
// itself is always taken out.
func TestConcurrentUse(t *testing.T) {
	var s Set
	defer s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}})()
	var wg sync.WaitGroup
	for _, other := range []string{"other-secret-1", "other-secret-2"} {
		wg.Go(func() {
			for range 50 {
				s.Hold([]Value{{Name: "B", Text: other}, {Name: "C", Text: "abcdefgh1"}})()
			}
		})
		wg.Go(func() {
			for range 200 {
				if got := s.String("abcdefgh1"); got != "[redacted:A]" {
					t.Errorf("%q", got)
				}
			}
		})
	}
	wg.Wait()
}
