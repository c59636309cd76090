// SPDX-License-Identifier: Apache-2.0

// Package garra_test holds the house rules of the module as tests: how packages
// may depend on each other, and how their source is written. CONTRIBUTING.md
// says them in prose.
package garra_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/garraia/garra/"

// An edge lets a package import others of this module.
type edge struct{ from, to, why string }

// edges returns all imports between packages that are allowed: dependencies
// point down only. Everything may import internal/*, and that imports nothing
// above itself, but for what has a place here. Tests are free.
func edges() []edge {
	return []edge{
		{"cmd/garra", "*", "wires everything together"},
		{"adminapi", "gateway source", "shows and steers what the gateway has, and never reaches past it"},
		{"gateway", "policy catalog audit", "asks these on the one path of a call"},
		{"gateway", "source protocol mcpconfig", "reaches every kind of source through one interface, in MCP messages"},
		{"catalog", "source protocol", "lists what a source offers"},
		{"policy", "mcpconfig", "decides by the rules of an entry"},
		{"audit", "redact", "writes no secret"},
		{"supervisor", "source protocol mcpconfig", "is a source: the processes of entries"},
		{"supervisor", "internal/lifecycle internal/eras", "has what kinds of source share"},
		{"supervisor", "sandbox envbuild redact", "starts a child, says what it knows, and cleans what it writes"},
		{"remote", "source protocol mcpconfig", "is a source: MCP over HTTP"},
		{"remote", "internal/lifecycle internal/eras", "has what kinds of source share"},
		{"remote", "envbuild redact", "resolves references in urls, and cleans what servers write"},
		{"remote", "oauth", "sends the token of a login, and renews it"},
		{"internal/lifecycle", "source protocol mcpconfig", "is the life of a source that an entry describes"},
		{"internal/history", "source", "keeps the ends of a source's runs"},
		{"internal/lifecycle", "internal/history", "remembers how runs ended"},
		{"internal/eras", "source protocol", "is what garra says to servers as their client"},
		{"internal/lifecycle", "envbuild", "says what is wrong with an entry"},
		{"internal/secrets", "vault internal/stores", "answers references from the vault and the stores"},
		{"internal/secrets", "mcpconfig", "has the stores that a configuration names"},
		{"internal/edits", "mcpconfig vault", "changes both, and one with the other"},
		{"internal/stores", "mcpconfig vault", "has what is said of a store, and keeps what it got sealed"},
		{"internal/sourcetest", "source protocol mcpconfig", "is for tests of sources"},
		{"connector", "source protocol mcpconfig redact", "is a source: REST calls as tools"},
		{"provider", "source protocol mcpconfig sandbox envbuild redact", "is a source: local programs as tools"},
		{"source", "protocol", "speaks in MCP messages"},
	}
}

// leaves are the packages of the bottom, which import nothing but internal/*.
func leaves() []string {
	return []string{"sandbox", "envbuild", "vault", "redact", "mcpconfig", "protocol", "recipes", "oauth"}
}

// A ban keeps an import out of packages, or out of all when none is named.
type ban struct{ path, packages, why string }

func bans() []ban {
	return []ban{
		{"net", "vault envbuild", "what holds secrets has no way out"},
		{"net/http", "vault envbuild", "what holds secrets has no way out"},
		{"github.com/stretchr/testify", "", "tests compare plainly or with go-cmp"},
		{"github.com/pkg/errors", "", "the standard library wraps errors"},
		{"github.com/sirupsen/logrus", "", "logging goes through events and zerolog"},
		{"github.com/spf13/viper", "", "the configuration has a model with positions"},
		{"github.com/golang/mock", "", "tests use real processes and small fakes of an interface"},
		{"github.com/hashicorp/go-plugin", "", "MCP is the plugin protocol"},
		{"github.com/goccy/go-yaml", "", "it turns the string 0123 into 83"},
		{"gopkg.in/yaml.v3", "", "it is archived; go.yaml.in/yaml/v4 follows it"},
	}
}

// starters are the packages that may start processes. The tests of all may.
func starters() []string {
	return []string{
		"supervisor", "sandbox", "internal/misbehave", "internal/browser", "internal/stores", "internal/handover",
		"internal/pidone",
	}
}

// A source is one Go file of the module.
type source struct {
	name   string // with slashes, from the root
	text   string
	file   *ast.File
	fset   *token.FileSet
	isTest bool
}

func (s *source) folder() string { return path.Dir(s.name) }

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// at returns a place for a message.
func (s *source) at(p token.Pos) string { return fmt.Sprintf("%s:%d", s.name, s.line(p)) }

// imports returns the paths that the file imports.
func (s *source) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, name)
	}
	return paths
}

// readSources parses all Go files of the module.
func readSources(t *testing.T) []*source {
	t.Helper()
	var sources []*source
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(entry.Name())
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parseSource(filepath.ToSlash(name), text)
		sources = append(sources, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 2 {
		t.Fatalf("only %d Go files found", len(sources))
	}
	return sources
}

// parseSource parses one file.
func parseSource(name string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return &source{
		name: name, text: string(text), file: file, fset: fset, isTest: strings.HasSuffix(name, "_test.go"),
	}, err
}

func skipFolder(name string) error {
	hidden := strings.HasPrefix(name, ".") && name != "."
	if hidden || slices.Contains([]string{"node_modules", "testdata", "bin"}, name) {
		return filepath.SkipDir
	}
	return nil
}

// TestPackageComments wants one comment on each package, in one file.
func TestPackageComments(t *testing.T) {
	const maxLines = 15
	comments := make(map[string][]*source)
	for _, s := range readSources(t) {
		folder := s.folder()
		if s.isTest && folder != "." {
			continue
		}
		if s.file.Doc == nil {
			comments[folder] = append(comments[folder], nil...)
			continue
		}
		comments[folder] = append(comments[folder], s)
		lines := s.line(s.file.Doc.End()) - s.line(s.file.Doc.Pos()) + 1
		if lines > maxLines && path.Base(s.name) != "doc.go" {
			t.Errorf("%s: a package comment of %d lines belongs in doc.go", s.name, lines)
		}
	}
	for folder, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s: %d files have a package comment", folder, len(files))
		}
		if slices.Contains([]string{"util", "utils", "common", "helpers", "misc"}, path.Base(folder)) {
			t.Errorf("%s: a package is named for what it does", folder)
		}
	}
}

// TestImports checks the layers and the bans.
func TestImports(t *testing.T) {
	for _, s := range readSources(t) {
		for _, name := range s.imports(t) {
			if problem := importProblem(s, name); problem != "" {
				t.Errorf("%s: imports %s: %s", s.name, name, problem)
			}
		}
	}
}

// importProblem returns why a file must not import a package, "" when it may.
func importProblem(s *source, name string) string {
	for _, b := range bans() {
		inModule := strings.Contains(b.path, ".") && strings.HasPrefix(name, b.path+"/")
		concerned := b.packages == "" || !s.isTest && isIn(b.packages, s.folder())
		if concerned && (inModule || name == b.path) {
			return b.why
		}
	}
	if s.isTest || strings.HasPrefix(s.folder(), "test/") {
		return ""
	}
	if name == "os/exec" && !slices.Contains(starters(), s.folder()) {
		return fmt.Sprintf("only %q start processes", starters())
	}
	if to, own := strings.CutPrefix(name, module); own {
		return layerProblem(s.folder(), to)
	}
	return ""
}

// layerProblem returns why a package must not import another of the module,
// "" when it may.
func layerProblem(from, to string) string {
	if strings.HasPrefix(to, "internal/") && !slices.ContainsFunc(edges(), func(e edge) bool { return e.from == to }) {
		return ""
	}
	known := slices.Contains(leaves(), from)
	for _, e := range edges() {
		if e.from != from {
			continue
		}
		known = true
		if e.to == "*" || isIn(e.to, to) {
			return ""
		}
	}
	if !known && !strings.HasPrefix(from, "internal/") {
		return "the package has no place in edges of policy_test.go"
	}
	return "edges of policy_test.go lacks this import"
}

// isIn tells whether a word is in a list that blanks separate.
func isIn(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// TestEdgesPointDown makes sure that the table itself has no cycle.
func TestEdgesPointDown(t *testing.T) {
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if slices.Contains(above, name) {
			t.Fatalf("a cycle: %q", append(above, name))
		}
		for _, e := range edges() {
			if e.from == name && e.to != "*" {
				for next := range strings.FieldsSeq(e.to) {
					visit(next, append(slices.Clone(above), name))
				}
			}
		}
	}
	for _, e := range edges() {
		if e.why == "" || e.to == "" {
			t.Errorf("%s to %q is without a reason", e.from, e.to)
		}
		visit(e.from, nil)
	}
}

// TestRulesOfImports makes sure that what must not be imported is found.
func TestRulesOfImports(t *testing.T) {
	for _, c := range []struct {
		file, imports string
		allowed       bool
	}{
		{"gateway/x.go", module + "policy", true},
		{"gateway/x.go", module + "supervisor", false},
		{"supervisor/x.go", module + "vault", false},
		{"supervisor/x.go", module + "internal/version", true},
		{"supervisor/x.go", module + "internal/lifecycle", true},
		{"supervisor/x.go", module + "internal/sourcetest", false},
		{"gateway/x.go", module + "internal/lifecycle", false},
		{"internal/lifecycle/x.go", module + "source", true},
		{"internal/lifecycle/x.go", module + "supervisor", false},
		{"supervisor/x.go", "os/exec", true},
		{"policy/x.go", module + "gateway", false},
		{"internal/x/x.go", module + "protocol", false},
		{"internal/x/x.go", module + "internal/version", true},
		{"newcomer/x.go", module + "protocol", false},
		{"cmd/garra/x.go", module + "vault", true},
		{"envbuild/x.go", "net", false},
		{"envbuild/x.go", "os/exec", false},
		{"envbuild/x_test.go", "os/exec", true},
		{"gateway/x.go", "net/http", true},
		{"gateway/x_test.go", "github.com/stretchr/testify/require", false},
	} {
		s := &source{name: c.file, isTest: strings.HasSuffix(c.file, "_test.go")}
		if problem := importProblem(s, c.imports); (problem == "") != c.allowed {
			t.Errorf("%s imports %s: got %q", c.file, c.imports, problem)
		}
	}
}
