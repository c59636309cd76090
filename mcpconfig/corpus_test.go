// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files of the corpus")

// TestCorpus loads each folder of testdata/good and testdata/bad and compares what is found
// with its findings.golden. Good means that nothing in it is an error.
func TestCorpus(t *testing.T) {
	cases := corpus(t)
	if len(cases) < 70 {
		t.Errorf("the corpus has %d cases, want at least 70", len(cases))
	}
	for _, dir := range cases {
		t.Run(strings.TrimPrefix(dir, "testdata/"), func(t *testing.T) {
			config := loadCase(t, dir)
			config.Findings = config.Findings.With(config.Unavailable(nil))
			got := render(config)
			golden := filepath.Join(dir, "findings.golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, f := range config.Findings {
				if f.Fix == "" {
					t.Errorf("%s: nothing says what to do", f)
				}
			}
			bad := strings.HasPrefix(dir, "testdata/bad/")
			if errors := config.Findings.Count(Error); bad != (errors > 0) {
				t.Errorf("%d errors in a case of %s", errors, filepath.Dir(dir))
			}
		})
	}
}

// corpus returns the folders of all cases.
func corpus(t testing.TB) []string {
	t.Helper()
	cases, err := filepath.Glob("testdata/*d/*") // good and bad
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		cases[i] = filepath.ToSlash(cases[i])
	}
	return cases
}

// loadCase copies a case to a folder of its own, prepares what Git can't hold, and loads it.
func loadCase(t *testing.T, dir string) *Config {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{ServersFile, GeneralFile, "config.yaml", "config.toml", ".mcp.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			writeFile(t, filepath.Join(to, name), string(data))
		}
	}
	if script, err := os.ReadFile(filepath.Join(dir, "setup")); err == nil {
		for line := range strings.Lines(string(script)) {
			prepare(t, to, strings.Fields(line))
		}
	}
	config, err := Load(to)
	if err != nil {
		t.Fatal(err)
	}
	checkPositions(t, config)
	return config
}

// writeFile writes a file that only its owner may read.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// prepare carries out one line of a setup file.
func prepare(t *testing.T, dir string, words []string) {
	t.Helper()
	path := filepath.Join(dir, words[1])
	var err error
	switch words[0] {
	case "mkdir":
		err = os.Mkdir(path, 0o700)
	case "mkfifo":
		err = makePipe(path)
	case "symlink":
		err = os.Symlink(words[2], path)
	case "chmod":
		mode, _ := strconv.ParseUint(words[2], 8, 32)
		err = os.Chmod(path, os.FileMode(mode))
	case "truncate":
		size, _ := strconv.ParseInt(words[2], 10, 64)
		writeFile(t, path, "")
		err = os.Truncate(path, size)
	case "write": // a quoted Go string
		text, uerr := strconv.Unquote(words[2])
		if uerr != nil {
			t.Fatalf("%s: %v", words[2], uerr)
		}
		writeFile(t, path, text)
	case "repeat": // a string and how often
		times, _ := strconv.Atoi(words[3])
		writeFile(t, path, strings.Repeat(words[2], times))
	default:
		t.Fatalf("unknown setup command %q", words[0])
	}
	if err != nil {
		t.Skipf("%v: %v", words, err)
	}
}

// render lists the servers and findings, each finding with its line and a mark below the place.
func render(c *Config) string {
	var b strings.Builder
	b.WriteString("servers:")
	for _, s := range c.Servers {
		fmt.Fprintf(&b, " %s(%s)", s.Name, s.Origin)
	}
	b.WriteString("\n")
	for _, f := range c.Findings {
		fmt.Fprintf(&b, "\n%s %s %s:%d:%d", f.Severity, f.Code, f.File, f.Line, f.Column)
		if f.Server != "" {
			fmt.Fprintf(&b, " [%s]", f.Server)
		}
		b.WriteString("\n" + excerpt(filepath.Join(c.Dir, f.File), f.Line, f.Column))
		fmt.Fprintf(&b, "  %s\n", f.Message)
		if f.Fix != "" {
			fmt.Fprintf(&b, "  fix: %s\n", f.Fix)
		}
	}
	return strings.ReplaceAll(b.String(), c.Dir, "DIR")
}

// excerpt returns a line of a file with a caret under a column, or nothing for no line. Lines
// are cut to what a person looks at.
func excerpt(path string, line, column int) string {
	if line == 0 {
		return ""
	}
	data, _ := os.ReadFile(path)
	data = bytes.TrimPrefix(data, []byte(bom))
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	text := []rune(strings.ToValidUTF8(lines[line-1], "?"))
	if column > 80 {
		return "    | (a long line)\n"
	}
	text = text[:min(len(text), 100)]
	return strings.TrimRight("    | "+strings.ReplaceAll(string(text), "\t", " "), " ") + "\n" +
		"    | " + strings.Repeat(" ", column-1) + "^\n"
}

// checkPositions fails when a finding or a value stands outside of its file.
func checkPositions(t testing.TB, c *Config) {
	t.Helper()
	for _, f := range c.Findings {
		checkPosition(t, c.Dir, f.Position())
	}
	for _, s := range c.Servers {
		checkPosition(t, c.Dir, s.Origin)
		for _, p := range s.places {
			checkPosition(t, c.Dir, p)
		}
	}
}

func checkPosition(t testing.TB, dir string, p Position) {
	t.Helper()
	if p.Line == 0 && p.Column == 0 {
		return
	}
	s, _ := readSource(filepath.Join(dir, p.File))
	if p.Line < 1 || p.Line > len(s.index.starts) || p.Column < 1 {
		t.Fatalf("position %+v is outside of a file of %d lines", p, len(s.index.starts))
	}
	end := len(s.data)
	if p.Line < len(s.index.starts) {
		end = s.index.starts[p.Line]
	}
	if width := len([]rune(string(s.data[s.index.starts[p.Line-1]:end]))); p.Column > width+1 {
		t.Fatalf("position %+v is outside of a line of %d characters", p, width)
	}
}
