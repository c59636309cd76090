// SPDX-License-Identifier: Apache-2.0

package garra_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// apiDoc is the page of the HTTP routes.
const apiDoc = "docs/admin-api.md"

// TestRoutesAreDocumented compares the headings of docs/admin-api.md with the
// patterns that adminapi registers.
func TestRoutesAreDocumented(t *testing.T) {
	routes, constants := map[string]bool{}, map[string]string{}
	sources := slices.DeleteFunc(readSources(t), func(s *source) bool { return s.isTest || s.folder() != "adminapi" })
	for _, s := range sources {
		maps.Copy(constants, stringConstants(s))
	}
	for _, s := range sources {
		for _, pattern := range patterns(s, constants) {
			if pattern != "/" { // what answers that there is nothing
				routes[pattern] = true
			}
		}
	}
	headings := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^#+ `([^`]+)`$").FindAllStringSubmatch(readText(t, apiDoc), -1) {
		headings[match[1]] = true
	}
	if diff := cmp.Diff(sorted(routes), sorted(headings)); diff != "" {
		t.Errorf("-adminapi +%s:\n%s", apiDoc, diff)
	}
}

// patterns returns what a file registers with a mux, or through a function
// named handle.
func patterns(s *source, constants map[string]string) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 || !slices.Contains([]string{"handle", "Handle", "HandleFunc"}, called(call)) {
			return true
		}
		if text, ok := stringOf(call.Args[0], constants); ok {
			found = append(found, text)
		}
		return true
	})
	return found
}

// called returns the name of the function or method that a call is of.
func called(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		return function.Sel.Name
	}
	return ""
}

// stringConstants returns the text constants of a file by their names.
func stringConstants(s *source) map[string]string {
	constants := map[string]string{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != len(spec.Values) {
			return true
		}
		for i, name := range spec.Names {
			if text, ok := stringOf(spec.Values[i], nil); ok {
				constants[name.Name] = text
			}
		}
		return true
	})
	return constants
}

// stringOf returns the text of a literal, of a constant, or of a sum of such.
func stringOf(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.Ident:
		text, ok := constants[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok := stringOf(e.X, constants)
		right, also := stringOf(e.Y, constants)
		return left + right, ok && also
	}
	return "", false
}

// TestCodesAreDocumented wants each code of an error or a finding in the docs,
// and no other there.
func TestCodesAreDocumented(t *testing.T) {
	inSource := map[string]bool{}
	for _, s := range readSources(t) {
		if s.isTest || strings.HasPrefix(s.name, "internal/") {
			continue
		}
		for _, code := range codes(s) {
			inSource[code] = true
		}
	}
	inDocs := map[string]bool{}
	row := regexp.MustCompile("(?m)^\\|(?: [0-9]{3} \\|)? ((?:`[a-z0-9_]+(?:\\.[a-z0-9_]+)*`,? )+)\\|")
	code := regexp.MustCompile("`([^`]+)`")
	for _, name := range []string{"docs/errors.md", "docs/findings.md", apiDoc} {
		for _, match := range row.FindAllStringSubmatch(readText(t, name), -1) {
			for _, c := range code.FindAllStringSubmatch(match[1], -1) {
				inDocs[c[1]] = true
			}
		}
	}
	for c := range inSource {
		if !inDocs[c] {
			t.Errorf("%s has no row in docs/errors.md, docs/findings.md or %s", c, apiDoc)
		}
	}
	for c := range inDocs {
		if strings.Contains(c, ".") && !inSource[c] {
			t.Errorf("%s is documented, and nothing has that code", c)
		}
	}
}

// codes returns the codes that a file has: constants of a type named Code, the
// code given to errorf, and literals that stand for a field named Code.
func codes(s *source) []string {
	var found []string
	constants := stringConstants(s)
	add := func(e ast.Expr) {
		if text, ok := stringOf(e, constants); ok {
			found = append(found, text)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if name, ok := n.Type.(*ast.Ident); ok && name.Name == "Code" {
				for _, value := range n.Values {
					add(value)
				}
			}
		case *ast.CallExpr:
			if called(n) == "errorf" && len(n.Args) > 1 {
				add(n.Args[1])
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
				add(n.Value)
			}
		}
		return true
	})
	return found
}

// TestLinksOfDocumentation wants a file, and a heading, behind each link
// within the repository.
func TestLinksOfDocumentation(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, name := range append(files, "README.md", "SECURITY.md", "CONTRIBUTING.md") {
		for _, match := range link.FindAllStringSubmatch(readText(t, name), -1) {
			target := name
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(name), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: links to %s, which is not there", name, match[1])
				continue
			}
			if match[2] != "" && !slices.Contains(anchors(readText(t, target)), match[2]) {
				t.Errorf("%s: %s has no heading #%s", name, target, match[2])
			}
		}
	}
}

// anchors returns what links to the headings of a page end in.
func anchors(page string) []string {
	var list []string
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		list = append(list, strings.ReplaceAll(text, " ", "-"))
	}
	return list
}

// TestRulesOfDocumentation makes sure that routes and codes are found.
func TestRulesOfDocumentation(t *testing.T) {
	s, err := parseSource("x.go", []byte(`package x
const path = "/a"
const C Code = "a.b"
func f() {
	mux.HandleFunc("POST "+path, g)
	handle("GET /b", role, g)
	errorf(400, "c.d", "", "text")
	_ = T{Code: "e.f", Message: "g.h"}
}`))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(patterns(s, stringConstants(s)), codes(s), anchors("# `GET /a/{b}` and c_d\n"))
	if want := "[POST /a GET /b] [a.b c.d e.f] [get-ab-and-c_d]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
