// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// expandWith expands text with the given variables, and with secrets that are
// called as their key in angle brackets.
func expandWith(t *testing.T, text string, env map[string]string) (string, error) {
	t.Helper()
	parsed, err := ParseValue(text, []string{"op", "keyring"})
	if err != nil {
		return "", err
	}
	return parsed.Expand(
		func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		func(key string) (string, error) { return "<" + key + ">", nil },
	)
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "a", "EMPTY": "", "_x9": "low", "REF": "${A}", "HASH": "$A$$"}
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"plain", "plain"},
		{"${A}", "a"},
		{"${env:A}", "a"},
		{"x${A}y${A}z", "xayaz"},
		{"${_x9}", "low"},
		{"${EMPTY}", ""},
		{"[${EMPTY:-d}]", "[d]"},
		{"${UNSET:-d}", "d"},
		{"${UNSET:-}", ""},
		{"${UNSET:-x:-y}", "x:-y"},
		{"${UNSET:-$A}", "$A"},
		{"${A:-d}", "a"},
		{"${REF}", "${A}"},
		{"${HASH}", "$A$$"},
		{"$${A}", "${A}"},
		{"$${", "${"},
		{"$$${A}", "$${A}"},
		{"$${A}${A}", "${A}a"},
		{"$${${A}}", "${a}"},
		{"$A $ $$ $(id) `id`", "$A $ $$ $(id) `id`"},
		{"${a%b}", "${a%b}"},
		{"${}", "${}"},
		{"${A", "${A"},
		{"${1A}", "${1A}"},
		{"${A-d}", "${A-d}"},
		{"${A }", "${A }"},
		{"${Ä}", "${Ä}"},
		{"${env:}", "${env:}"},
		{"${env:A:-d}", "${env:A:-d}"},
		{"${input:x}", "${input:x}"},
		{"${%${A}", "${%a"},
		{"vault:gh.token", "<gh.token>"},
		{"Bearer ${vault:gh.token}!", "Bearer <gh.token>!"},
		{"xvault:gh", "xvault:gh"},
		{"${vault:k", "${vault:k"},
		{"op://Private/GitHub token/x", "<op://Private/GitHub token/x>"},
		{"Bearer ${op:a b}!", "Bearer <op:a b>!"},
		{"${keyring:garra/x}", "<keyring:garra/x>"},
		{"${op:-x}", "x"},
		{"other:x ${other:x}", "other:x ${other:x}"},
	} {
		got, err := expandWith(t, c.text, env)
		if err != nil || got != c.want {
			t.Errorf("expanding %q: got %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}

func TestExpandReportsEveryUnsetVariable(t *testing.T) {
	_, err := expandWith(t, "${ONE}-${A}-${env:TWO}", map[string]string{"A": "the-value"})
	problems, ok := errors.AsType[Errors](err)
	if !ok || len(problems) != 2 || !errors.Is(err, ErrUnset) {
		t.Fatalf("got %v, want two errors of kind ErrUnset", err)
	}
	if problems[0].Subject != "ONE" || problems[1].Subject != "TWO" {
		t.Errorf("subjects are %q and %q", problems[0].Subject, problems[1].Subject)
	}
	if strings.Contains(err.Error(), "the-value") {
		t.Errorf("the message shows a value: %v", err)
	}
}

func TestParseRefusesWhatWouldBeMisread(t *testing.T) {
	for _, text := range []string{
		"vault:", "vault:a b", "vault:${A}", "${vault:}", "${vault:a/b}", "vault:ä", "${A:-${B}}",
		"op:", "${op:}", "op:a\nb",
	} {
		if parsed, err := ParseValue(text, []string{"op"}); !errors.Is(err, ErrInvalid) {
			t.Errorf("parsing %q: got %v, %v; want ErrInvalid", text, parsed, err)
		}
	}
}

func TestTemplateNames(t *testing.T) {
	parsed, err := ParseTemplate("${A}${vault:k1}$${B}${env:C}${D:-x}${vault:k.2}", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := parsed.Variables(); !slices.Equal(got, []string{"A", "C", "D"}) {
		t.Errorf("variables are %q", got)
	}
	if got := parsed.SecretKeys(); !slices.Equal(got, []string{"k1", "k.2"}) {
		t.Errorf("keys are %q", got)
	}
}

func TestFileValueKnowsOnlySecrets(t *testing.T) {
	for text, want := range map[string]string{
		"${A}":          "${A}",
		"$${A}":         "${A}",
		"${A:-${B}}":    "${A:-${B}}",
		"p${vault:k}":   "p<k>",
		"vault:k":       "<k>",
		"${env:A}$(id)": "${env:A}$(id)",
	} {
		parsed, err := parseFileValue(text, nil)
		if err != nil {
			t.Errorf("parsing %q: %v", text, err)
			continue
		}
		got, err := parsed.Expand(nil, func(key string) (string, error) { return "<" + key + ">", nil })
		if err != nil || got != want {
			t.Errorf("expanding %q: got %q, %v; want %q", text, got, err, want)
		}
	}
}

// FuzzExpand checks that an escaped text comes out as it was, that the text of
// a variable is never looked into, and that nothing but a reference is changed.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "$", "${A}", "$${A}", "$$${", "${A:-${B}}", "vault:x", "${vault:k}", "${a%b}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped, err := ParseTemplate(strings.ReplaceAll(text, "${", "$${"), nil)
		if err != nil {
			t.Fatalf("an escaped text is refused: %v", err)
		}
		if got, err := escaped.Expand(nil, nil); err != nil || got != text {
			t.Fatalf("escaping %q gives %q, %v", text, got, err)
		}
		parsed, err := ParseTemplate(text, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		got, err := parsed.Expand(
			func(string) (string, bool) { return "${A}${vault:k}", true },
			func(string) (string, error) { return "${A}", nil },
		)
		if err != nil {
			t.Fatalf("expanding %q: %v", text, err)
		}
		if len(parsed.Variables())+len(parsed.SecretKeys()) == 0 && strings.ReplaceAll(text, "$${", "${") != got {
			t.Fatalf("%q holds no reference and became %q", text, got)
		}
	})
}

// TestParseIsLinear parses long texts that a scanner which looks back or ahead
// from every "$" would take minutes for.
func TestParseIsLinear(t *testing.T) {
	const n = 1 << 18
	for _, text := range []string{
		strings.Repeat("${", n), strings.Repeat("${", n) + "}", strings.Repeat("$${", n), strings.Repeat("${A:-", n),
		strings.Repeat("${a}", n), strings.Repeat("${vault:a", n),
	} {
		parsed, err := ParseTemplate(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		var size int
		for _, p := range parsed.parts {
			size += len(p.text)
		}
		if size == 0 || size > len(text) {
			t.Errorf("%d bytes became %d", len(text), size)
		}
	}
}
