// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"strings"
	"testing"
)

// TestJSONErrors checks where and in which words a broken text is reported. A caret in the text
// marks the place and is taken out.
func TestJSONErrors(t *testing.T) {
	for _, tt := range []struct {
		text    string
		message string // how it starts
	}{
		{"^", "the file is empty"},
		{"{}^x", "the text goes on after its last brace: invalid character 'x'"},
		{`{"a": ^}`, "this is not JSON: invalid character '}'"},
		{`{"a" ^1}`, "a colon is missing: invalid character '1' after object name"},
		{`{"a": 1, ^{}}`, "a name is missing or not in quotes"},
		{"{\n^<<<<<<< ours\n}", "a merge conflict was left in"},
		{"{\"a\": 1\n^=======\n}", "a merge conflict was left in"},
		{`{"a": ^=======`, "this is not JSON: invalid character '='"},
		{`{^a: 1}`, "a word or number is not JSON"},
		{`{"a": ^01}`, "a word or number is not JSON"},
		{`{"a": ^True}`, "a word or number is not JSON"},
		{`{"a": ^NaN}`, "a word or number is not JSON"},
		{`{"a": ^+1}`, "a word or number is not JSON"},
		{`{"a": ^.5}`, "a word or number is not JSON"},
		{`{"a": ^'x'}`, "a string is in single quotes"},
		{"{\"a\": ^\"x\ny\"}", "a string has an invalid escape or a line break"},
		{`{"a": ^"\q"}`, "a string has an invalid escape or a line break"},
		{`{"a": ^"\ud800"}`, `a string has a \u escape that is half`},
		{`{"a": ["b", ^"\udc00x"]}`, `a string has a \u escape that is half`},
		{`{^"\ud800": 1}`, `a string has a \u escape that is half`},
		{`{"a": 1 ^"b": 2}`, "a comma or closing brace is missing"},
		{`{"a": [1 ^2]}`, "a comma or closing bracket is missing"},
		{`{"a": [1^}`, "a comma or closing bracket is missing"},
		{"{\"a\": 1\n^", "the file ends in the middle"},
		{"{\"a\": \"x\n^", "the file ends in the middle"},
		{`{} ^/* x`, "the file ends in the middle"},
		{`[1, 2 ^; 3]`, "a comma or closing bracket is missing"},
		{"\t\n  ^#x\n{}", "this is not JSON: invalid character '#'"},
		{strings.Repeat("[", 100) + "^[", "values are nested more than 100"},
		{`{"a": "` + strings.Repeat("[", 200) + `"} /* ` + strings.Repeat("{", 200) + "*/ ^x", "the text goes on"},
	} {
		before, after, _ := strings.Cut(tt.text, "^")
		_, ferr := jsonSyntax{}.parse([]byte(before + after))
		if ferr == nil || ferr.code != CodeFileUnparsable || ferr.fix == "" ||
			!strings.HasPrefix(ferr.message, tt.message) {
			t.Errorf("%q: %+v, want %q", tt.text, ferr, tt.message)
			continue
		}
		// A text that ends too early is reported at its end, with or without its last line end.
		if at := ferr.offset; at != len(before) && strings.TrimSpace((before + after)[min(at, len(before)):]) != "" {
			t.Errorf("%q is reported at %d, want %d", tt.text, at, len(before))
		}
	}
}

func TestJSONExtents(t *testing.T) {
	const text = `// a
{
  "x": /* b */ [1, "two" /* c */, {"y": null,},], // d
  "z": -1.50e+3 /* e */ ,
} // f`
	root, ferr := jsonSyntax{}.parse([]byte(text))
	if ferr != nil {
		t.Fatal(ferr)
	}
	list := root.get("x")
	for want, n := range map[string]*node{
		text[5 : len(text)-5]:               root,
		`[1, "two" /* c */, {"y": null,},]`: list,
		`1`:                                 list.items[0],
		`"two"`:                             list.items[1],
		`{"y": null,}`:                      list.items[2],
		`null`:                              list.items[2].get("y"),
		`-1.50e+3`:                          root.get("z"),
	} {
		if got := text[n.start:n.end]; got != want {
			t.Errorf("a value is %q, want %q", got, want)
		}
	}
	if m := root.member("z"); text[m.keyStart:m.keyEnd] != `"z"` {
		t.Errorf("the key is %q", text[m.keyStart:m.keyEnd])
	}
	if root.size != 7 {
		t.Errorf("the tree has %d nodes, want 7", root.size)
	}
}

// TestQuote checks that both syntaxes read a quoted string as what it was.
func TestQuote(t *testing.T) {
	for _, s := range []string{
		"", "x", `"`, `\`, "\n\t\r\b\x00\x1f", "\x7f\u0080\u0085\u009f", "\u00a0é☂😀", "\u2028\u2029\ufeff\ufffe\uffff",
		"${A} # /* // {[]}",
	} {
		quoted := quote(s)
		if strings.ContainsFunc(quoted, func(r rune) bool { return r < ' ' }) {
			t.Errorf("%q has control characters in it", quoted)
		}
		for _, p := range []parser{jsonSyntax{}, yamlSyntax{}} {
			n, ferr := p.parse([]byte(quoted))
			if ferr != nil || n.kind != stringNode || n.text != s {
				t.Errorf("%T reads %s as %+v, %v", p, quoted, n, ferr)
			}
		}
	}
}
