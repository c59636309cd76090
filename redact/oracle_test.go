// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// shows is a straightforward search: it undoes escapes of the whole text, one
// level at a time, and looks for the secret in all its encodings.
func shows(text, secret string) bool {
	wanted := []string{secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			wanted = append(wanted, alignedBits(alphabet, secret, before))
		}
	}
	for range depth + 1 {
		for _, w := range wanted {
			if len(w) >= minLength && strings.Contains(text, w) {
				return true
			}
		}
		text = undone(text)
	}
	return false
}

// alignedBits finds the digits that a secret determines by trying: those that
// stay the same whatever stands around it.
func alignedBits(alphabet *base64.Encoding, secret string, before int) string {
	one := alphabet.EncodeToString([]byte(strings.Repeat("\x00", before) + secret + "\x00\x00"))
	other := alphabet.EncodeToString([]byte(strings.Repeat("\xff", before) + secret + "\xff\xff"))
	first, last := -1, -1
	for i := range one {
		if one[i] == other[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return one[first : last+1]
}

// An encoder writes a text in another form. The result may stand anywhere in a
// text, but for those of whole JSON strings.
type encoder struct {
	name   string
	encode func(*rapid.T, string) string
}

// encoders are what a secret may be written with, and may be combined.
func encoders() []encoder {
	pure := func(name string, f func(string) string) encoder {
		return encoder{name, func(_ *rapid.T, s string) string { return f(s) }}
	}
	return []encoder{
		pure("raw", func(s string) string { return s }),
		pure("json", quoteJSON),
		pure("json in json", func(s string) string { return quoteJSON(quoteJSON(s)) }),
		pure("json thrice", func(s string) string { return quoteJSON(quoteJSON(quoteJSON(s))) }),
		pure("json slashes", func(s string) string { return strings.ReplaceAll(quoteJSON(s), "/", `\/`) }),
		pure("go", func(s string) string { return strings.Trim(fmt.Sprintf("%+q", s), `"`) }),
		pure("query", url.QueryEscape),
		pure("query lower", func(s string) string { return lowerPercent(url.QueryEscape(s)) }),
		pure("path", url.PathEscape),
		pure("query twice", func(s string) string { return url.QueryEscape(url.QueryEscape(s)) }),
		pure("html", html.EscapeString),
		pure("query in json", func(s string) string { return quoteJSON(url.QueryEscape(s)) }),
		pure("every byte", func(s string) string { return everyByte(s, "%%%02X") }),
		pure("every byte in x", func(s string) string { return everyByte(s, `\x%02x`) }),
		pure("hex", func(s string) string { return hex.EncodeToString([]byte(s)) }),
		pure("HEX", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }),
		{"any spelling", anySpelling},
		{"base64", func(t *rapid.T, s string) string { return inBase64(t, base64.StdEncoding, s) }},
		{"base64 url", func(t *rapid.T, s string) string { return inBase64(t, base64.RawURLEncoding, s) }},
		{"base64 in url", func(t *rapid.T, s string) string {
			return url.QueryEscape(inBase64(t, base64.StdEncoding, s))
		}},
	}
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b[1 : len(b)-1])
}

func lowerPercent(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

func everyByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// anySpelling writes each character as JSON lets one, or as a URL or HTML does.
func anySpelling(t *rapid.T, s string) string {
	var b strings.Builder
	for _, r := range s {
		kind := rapid.IntRange(0, 5).Draw(t, "spelling")
		switch {
		case kind == 0 && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case kind == 1 && r < 0x10000:
			fmt.Fprintf(&b, `\u%04X`, r)
		case kind == 2:
			fmt.Fprintf(&b, `&#%d;`, r)
		case kind == 3:
			fmt.Fprintf(&b, `&#x%x;`, r)
		case kind == 4 || opens(byte(r)) && r < utf8.RuneSelf:
			b.WriteString(everyByte(string(r), "%%%02x"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// inBase64 encodes s with something around it, as in basic authentication.
func inBase64(t *rapid.T, alphabet *base64.Encoding, s string) string {
	around := rapid.StringMatching(`[a-z]{0,5}:?`)
	return alphabet.EncodeToString([]byte(around.Draw(t, "before") + s + around.Draw(t, "after")))
}

// secretText draws a secret: a token, or one with blanks, quotes and escapes.
func secretText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[A-Za-z0-9_-]{9,40}`),
		rapid.StringMatching(`[A-Za-z0-9+/]{9,40}`),
		rapid.StringMatching(`[a-zA-Z"'<>&/ äß😀!?#$]{9,20}z1`),
	).Filter(func(s string) bool { return !isCommon(s) && s == strings.TrimSpace(s) })
}

// surroundings draws text around secrets. It has no letters, digits or escapes,
// so that it can't be a part of a secret or change how one reads.
func surroundings() *rapid.Generator[string] {
	return rapid.StringMatching(`[ ,;:.()\n]{0,9}`)
}

// TestNothingIsLeft writes secrets in all forms into a text, and compares what
// is done to it with the straightforward search.
func TestNothingIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := secretText().Draw(t, "secret")
		e := rapid.SampledFrom(encoders()).Draw(t, "encoder")
		before, after := surroundings().Draw(t, "before"), surroundings().Draw(t, "after")
		text := before + e.encode(t, secret) + after
		var s Set
		defer s.Hold([]Value{{Name: "A", Text: secret}})()
		out, found := s.Text([]byte(text))
		if found.None() || shows(string(out), secret) {
			t.Fatalf("%s: %q became %q", e.name, text, out)
		}
		if !bytes.HasPrefix(out, []byte(before)) || !bytes.HasSuffix(out, []byte(after)) {
			t.Fatalf("%s: %q became %q: the text around it changed", e.name, text, out)
		}
		if again, found := s.Text(out); !found.None() || &again[0] != &out[0] {
			t.Fatalf("%s: %q became %q", e.name, out, again)
		}
	})
}

// TestFindsWhatThereIs compares with the straightforward search on text that is
// close to a secret.
func TestFindsWhatThereIs(t *testing.T) {
	alphabet := rapid.StringOfN(rapid.RuneFrom([]rune(`ab\%&u0061;#x`)), 0, 60, -1)
	secrets := rapid.StringOfN(rapid.RuneFrom([]rune(`abu0061#x`)), 8, 10, -1)
	rapid.Check(t, func(t *rapid.T) {
		secret := secrets.Filter(func(s string) bool { return !isCommon(s) }).Draw(t, "secret")
		text := alphabet.Draw(t, "before") + rapid.SampledFrom([]string{
			secret, everyByte(secret, `\x%02x`), anySpelling(t, secret), quoteJSON(anySpelling(t, secret)), secret[1:],
		}).Draw(t, "middle") + alphabet.Draw(t, "after")
		var s Set
		defer s.Hold([]Value{{Name: "A", Text: secret}})()
		out, found := s.Text([]byte(text))
		if got, want := !found.None(), shows(text, secret); got != want {
			t.Fatalf("%q: found %v, want %v: %q", text, got, want, out)
		}
		if found.None() && string(out) != text {
			t.Fatalf("%q became %q", text, out)
		}
	})
}

// TestChunks writes text in pieces: what comes out is what [Set.Text] makes of
// the whole, and nothing stays behind after the end of a line.
func TestChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(secretText(), 1, 4).Draw(t, "secrets")
		var s Set
		var text string
		for i, secret := range secrets {
			defer s.Hold([]Value{{Name: fmt.Sprint(i), Text: secret}})()
			e := rapid.SampledFrom(encoders()).Draw(t, "encoder")
			text += surroundings().Draw(t, "around") + e.encode(t, secret)
		}
		text += rapid.StringMatching(`[a-z\\%& ]{0,5}\n`).Draw(t, "end")
		want := s.String(text)
		var got bytes.Buffer
		w := s.Writer(&got)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "length")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got.String() != want {
			t.Fatalf("%q became %q, want %q", text, got.String(), want)
		}
	})
}
