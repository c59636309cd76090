// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"strings"
	"testing"
)

// TestYAMLExtents checks what text each value is taken to be. The path leads to the value; an
// item of a list is a step in brackets.
func TestYAMLExtents(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		path       string // steps, separated by /
		want       string // "-" when the end isn't known
	}{
		{"plain", "a: x\n", "a", "x"},
		{"plain with blanks", "a: x y  # c\n", "a", "x y"},
		{"plain over lines", "a: x\n  y\n\n  z\nb: 1\n", "a", "x\n  y\n\n  z"},
		{"plain with a hash", "a: x#y\n", "a", "x#y"},
		{"plain in brackets over lines", "a: [x\n  y, z]\n", "a/[0]", "x\n  y"},
		{"number", "a: 0123\n", "a", "0123"},
		{"double quotes", `a: "x \" y" # c` + "\n", "a", `"x \" y"`},
		{"double quotes with a backslash at the end", `a: "x\\" # "` + "\n", "a", `"x\\"`},
		{"double quotes over lines", "a: \"x\n\n  y\"\n", "a", "\"x\n\n  y\""},
		{"single quotes", "a: 'it''s' # '\n", "a", "'it''s'"},
		{"empty quotes", "a: ''\n", "a", "''"},
		{"nothing", "a:\nb: 1\n", "a", ""},
		{"nothing but a comment", "a: # c\nb: 1\n", "a", ""},
		{"tilde", "a: ~\n", "a", "~"},
		{"literal", "a: |\n  x\n  y\nb: 1\n", "a", "|\n  x\n  y"},
		{"literal with a hash", "a: |\n  # x\n\n  y\n# c\nb: 1\n", "a", "|\n  # x\n\n  y"},
		{"literal, stripped", "a: |- # c\n  x\n\n\nb: 1\n", "a", "|- # c\n  x"},
		{"literal, kept", "a: |+\n  x\n\n\nb: 1\n", "a", "|+\n  x\n\n"},
		{"literal with an indicator", "a:\n  b: |2\n      x\n    y\n  c: 1\n", "a/b", "|2\n      x\n    y"},
		{"literal at the end", "a: |\n  x", "a", "|\n  x"},
		{"literal of nothing", "a: |\nb: 1\n", "a", "|"},
		{"folded", "a: >-\n  x\n  y\nb: 1\n", "a", ">-\n  x\n  y"},
		{"literal in a list", "a:\n  - |\n    x\n  - y\n", "a/[0]", "|\n    x"},
		{"list", "a:\n  - x\n  - y # c\nb: 1\n", "a", "- x\n  - y"},
		{"list at the margin", "a:\n- x\n- y\nb: 1\n", "a", "- x\n- y"},
		{"list of lists", "a:\n  - - x\n    - y\n  - z\n", "a/[0]", "- x\n    - y"},
		{"list in brackets", "a: [x, 'y]', z] # c\n", "a", "[x, 'y]', z]"},
		{"empty brackets", "a: [] # c\n", "a", "[]"},
		{"empty brackets with a comment", "a: [ # c\n  ]\n", "a", "[ # c\n  ]"},
		{"brackets over lines", "a: [\n  x, # ]\n  y,\n]\n", "a", "[\n  x, # ]\n  y,\n]"},
		{"brackets in brackets", "a: [[x], {y: [z]}]\n", "a/[1]", "{y: [z]}"},
		{"map", "a:\n  b: 1\n  c: 2 # c\nd: 3\n", "a", "b: 1\n  c: 2"},
		{"map in braces", "a: {b: 1, c: {d: 2}} # c\n", "a", "{b: 1, c: {d: 2}}"},
		{"braces with nothing at the end", "a: {b: 1, c: }\n", "a", "{b: 1, c: }"},
		{"braces with keys alone", "a: {b, c}\n", "a", "{b, c}"},
		{"empty braces", "a: { }\n", "a", "{ }"},
		{"pair in brackets", "a: [b: 1, c]\n", "a/[0]", "b: 1"},
		{"map in a list", "a:\n  - b: 1\n    c: 2\n  - d\n", "a/[0]", "b: 1\n    c: 2"},
		{"map that ends in nothing", "a:\n  b: 1\n  c:\nd: 3\n", "a", "b: 1\n  c:"},
		{"anchor", "a: &x y\n", "a", "y"},
		{"anchor and tag", "a: &x !!str y\n", "a", "y"},
		{"anchored map", "a: &x\n  b: 1\nc: 2\n", "a", "b: 1"},
		{"anchored nothing", "a: &x\nb: 1\n", "a", ""},
		{"tagged nothing before an anchor", "a: !!str\n&x b: 1\n", "a", ""},
		{"alias", "a: &x {y: 1}\nb: *x # c\n", "b", "*x"},
		{"below an alias", "a: &x {y: 1}\nb: *x\n", "b/y", "1"},
		{"map that ends in a merge", "a: &x {y: 1}\nb:\n  c: 2\n  <<: *x\nd: 3\n", "b", "c: 2\n  <<: *x"},
		{"letters", "é: \"größe\" # c\n", "é", `"größe"`},
		{"line ends", "a: x\r\n  y\r\nb: |\r\n  z\r\nc: 1\r\n", "b", "|\r\n  z"},
		{"separators", "a: x\u0085b: y\n", "b", "y"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, ferr := yamlSyntax{}.parse([]byte(tt.text))
			if ferr != nil {
				t.Fatal(ferr)
			}
			n := root
			for step := range strings.SplitSeq(tt.path, "/") {
				if i, ok := itemIndex(step); ok {
					n = n.items[i]
				} else {
					n = n.get(step)
				}
			}
			got := "-"
			if n.end >= 0 {
				got = tt.text[n.start:n.end]
			}
			if got != tt.want {
				t.Errorf("the value is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestYAMLKeyExtents checks where keys are taken to end.
func TestYAMLKeyExtents(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n":          "a",
		"a b : 1\n":       "a b",
		"'a b': 1\n":      "'a b'",
		`"a:" : 1` + "\n": `"a:"`,
		"? a\n: 1\n":      "a",
		"&x a: 1\n":       "a",
		"{a: 1}\n":        "a",
		"{\"a\":1}\n":     `"a"`,
	} {
		root, ferr := yamlSyntax{}.parse([]byte(text))
		if ferr != nil {
			t.Fatal(ferr)
		}
		m := root.members[0]
		if got := text[m.keyStart:m.keyEnd]; got != want {
			t.Errorf("the key of %q is %q, want %q", text, got, want)
		}
	}
}
