// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDotenv(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []dotenvLine
	}{
		{"empty", "", nil},
		{"blank and comment", "\n  \n# A=1\n\t# B=2", nil},
		{"plain", "A=1\nB=two words\n", []dotenvLine{{"A", "1", 1}, {"B", "two words", 2}}},
		{"no final newline", "A=1", []dotenvLine{{"A", "1", 1}}},
		{"empty value", "A=\nB=''\nC=\"\"", []dotenvLine{{"A", "", 1}, {"B", "", 2}, {"C", "", 3}}},
		{"blanks around", "  A =  1  \n", []dotenvLine{{"A", "1", 1}}},
		{"export", "export A=1\nexport\tB=2\nexportC=3\nexport=4", []dotenvLine{
			{"A", "1", 1}, {"B", "2", 2}, {"exportC", "3", 3}, {"export", "4", 4},
		}},
		{"comment after value", "A=1 # one\nB=x#y\nC='q' # c\nD=# only", []dotenvLine{
			{"A", "1", 1}, {"B", "x#y", 2}, {"C", "q", 3}, {"D", "", 4},
		}},
		{"equals in value", "URL=pg://u:p@h/d?a=b==", []dotenvLine{{"URL", "pg://u:p@h/d?a=b==", 1}}},
		{"single quotes are literal", `A='a\n"$X" \'`, []dotenvLine{{"A", `a\n"$X" \`, 1}}},
		{"double quotes", `A="a\nb\tc\"d\\e\$f\q"`, []dotenvLine{{"A", "a\nb\tc\"d\\e$f\\q", 1}}},
		{"several lines", "A=\"one\ntwo\n\"\nB='x\ny'\nC=3", []dotenvLine{
			{"A", "one\ntwo\n", 1}, {"B", "x\ny", 4}, {"C", "3", 6},
		}},
		{"CRLF", "A=1\r\nB=\"x\r\ny\"\r\n\r\nC=3\r\n", []dotenvLine{{"A", "1", 1}, {"B", "x\ny", 2}, {"C", "3", 5}}},
		{"byte order mark", "\ufeffA=1", []dotenvLine{{"A", "1", 1}}},
		{"no substitution", "A=$(id) `id` $HOME ${HOME}", []dotenvLine{{"A", "$(id) `id` $HOME ${HOME}", 1}}},
		{"quote inside", `A=it's "so"`, []dotenvLine{{"A", `it's "so"`, 1}}},
		{"twice", "A=1\nA=2", []dotenvLine{{"A", "1", 1}, {"A", "2", 2}}},
		{"leading zero", "PIN=0123", []dotenvLine{{"PIN", "0123", 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseDotenv(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(dotenvLine{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseDotenvErrors(t *testing.T) {
	const secret = "hunter2-hunter2"
	for _, c := range []struct{ text, want string }{
		{"A=1\n" + secret + "\n", `line 2: no "=" after the name`},
		{"=" + secret, `line 1: no valid name before the "="`},
		{"A B=" + secret, `line 1: no valid name before the "="`},
		{"A=1\n\nB=\"" + secret + "\nC=3\n", `line 3: a value without its closing "`},
		{"B='" + secret, `line 1: a value without its closing '`},
		{"B=\"x\" " + secret, `line 1: more text after the closing " of a value`},
		{"A=1\nB=\x00" + secret, `line 2: variable "B" holds a NUL character`},
		{"A=1\nB=" + secret + "\xff\n", `line 2: text that is not UTF-8`},
	} {
		lines, err := parseDotenv(c.text)
		if err == nil || err.Error() != c.want {
			t.Errorf("reading %q: got %v, %v; want %q", c.text, lines, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the message shows a value: %v", err)
		}
	}
}

// FuzzDotenv checks that a value survives being written in double quotes and
// read again, and that line numbers point into the text.
func FuzzDotenv(f *testing.F) {
	for _, seed := range []string{"A=1", "A=\"x\ny\"", "export A='b' # c", "\ufeffA=1\r\n", "A=\"\\", "=\n'", "#"} {
		f.Add(seed)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", `\r`)
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := parseDotenv(text)
		if err != nil {
			return
		}
		for _, l := range lines {
			if l.number < 1 || l.number > 1+strings.Count(text, "\n") || !isEnvName(l.name) {
				t.Fatalf("%q gives line %d with name %q", text, l.number, l.name)
			}
			again, err := parseDotenv(l.name + `="` + quote.Replace(l.value) + `"`)
			if err != nil || len(again) != 1 || again[0].value != l.value || again[0].name != l.name {
				t.Fatalf("value %q came back as %+v, %v", l.value, again, err)
			}
		}
	})
}
