// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"
)

// A form is one way to write a text.
type form struct {
	name string
	text string // how it is said
	// trace is the part of it that depends on the secret alone.
	trace string
	// json says that text can stand in a string of JSON as it is, and means
	// the secret there.
	json bool
}

// forms returns all forms of a text.
func forms(text string) []form {
	digits := hex.EncodeToString([]byte(text))
	list := []form{
		{name: "raw", text: text},
		{name: "JSON", text: quoted(text, false), json: true},
		{name: "JSON for HTML", text: quoted(text, true), json: true},
		{name: "JSON in JSON", text: quoted(quoted(text, false), false)},
		{name: "spelled in JSON", text: spelled(text, `\u%04x`), json: true},
		{name: "SPELLED in JSON", text: spelled(text, `\u%04X`), json: true},
		{name: "query of a URL", text: url.QueryEscape(text)},
		{name: "path of a URL", text: url.PathEscape(text)},
		{name: "spelled in a URL", text: eachByte(text, "%%%02x")},
		{name: "SPELLED in a URL", text: eachByte(text, "%%%02X")},
		{name: "hexadecimal", text: digits},
		{name: "HEXADECIMAL", text: strings.ToUpper(digits)},
		{name: "HTML", text: html.EscapeString(text)},
		{name: "spelled in HTML", text: eachRune(text, "&#%d;")},
		{name: "spelled in HTML by digits", text: eachRune(text, "&#x%X;")},
	}
	for i := range list {
		list[i].trace = list[i].text
	}
	for _, prefix := range []string{"", "u", "u:", "user:"} {
		for name, alphabet := range map[string]*base64.Encoding{
			"base64": base64.StdEncoding, "base64 for URLs": base64.RawURLEncoding,
		} {
			encoded := alphabet.EncodeToString([]byte(prefix + text))
			list = append(list, form{
				name: fmt.Sprintf("%s behind %q", name, prefix), text: encoded,
				trace: encoded[(len(prefix)*8+5)/6 : (len(prefix)+len(text))*8/6],
			})
		}
	}
	return list
}

// quoted returns a text as it stands in a string of JSON.
func quoted(text string, forHTML bool) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(forHTML)
	if err := encoder.Encode(text); err != nil {
		panic(err) // of a text
	}
	return strings.TrimSuffix(strings.TrimSpace(out.String()), `"`)[1:]
}

// spelled returns a text with an escape for each unit of UTF-16.
func spelled(text, escape string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&out, escape, unit)
	}
	return out.String()
}

func eachByte(text, escape string) string {
	var out strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&out, escape, text[i])
	}
	return out.String()
}

func eachRune(text, escape string) string {
	var out strings.Builder
	for _, r := range text {
		fmt.Fprintf(&out, escape, r)
	}
	return out.String()
}

// Forms in JSON mean the text, and the search finds each form of it.
func TestForms(t *testing.T) {
	t.Parallel()
	f := flock{}
	c := f.put("odd", `"`+random()+`"\é€😀<&'>/ %+`+random())
	list := forms(c.value)
	if len(list) < 20 {
		t.Errorf("only %d forms", len(list))
	}
	for _, form := range list {
		var meant string
		if form.json {
			if err := json.Unmarshal([]byte(`"`+form.text+`"`), &meant); err != nil || meant != c.value {
				t.Errorf("%s: %q, %v", form.name, meant, err)
			}
		}
		half := form.trace[:len(form.trace)/2]
		for _, text := range []string{"<" + form.text + ">", half + "...", "..." + form.trace[len(half):]} {
			r := new(record)
			r.add("here", text)
			if found := r.search(f, nil); len(found) != 1 {
				t.Errorf("%s: found %v in %s", form.name, found, text)
			}
		}
	}
	r := new(record)
	r.add("here", strings.Repeat("nothing of that kind: "+random()+" ", 1000))
	if found := r.search(f, nil); len(found) != 0 {
		t.Errorf("found %v where there is nothing", found)
	}
}
