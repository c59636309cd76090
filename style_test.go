// SPDX-License-Identifier: Apache-2.0

package garra_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits. A function's lines are counted without the tables in it.
const (
	maxFunctionLines = 80
	maxFileLines     = 600
	maxNesting       = 4
	maxParameters    = 5
	maxColumns       = 120
	tabColumns       = 4
)

// TestSource checks each file on its own.
func TestSource(t *testing.T) {
	sources := readSources(t)
	for _, rule := range []struct {
		name  string
		check func(*source) []string
	}{
		{"licence", checkLicence},
		{"lines", checkLines},
		{"exported identifiers have comments", checkExported},
		{"functions", checkFunctions},
		{"no init", checkInit},
		{"package variables", checkVariables},
		{"goroutines have comments", checkGoroutines},
		{"no sleeping tests", checkSleep},
		{"nothing left to do", checkLeftovers},
	} {
		t.Run(rule.name, func(t *testing.T) {
			for _, s := range sources {
				for _, problem := range rule.check(s) {
					t.Error(problem)
				}
			}
		})
	}
}

func checkLicence(s *source) []string {
	if !strings.HasPrefix(s.text, "// SPDX-License-Identifier: Apache-2.0\n\n") {
		return []string{s.name + ": does not begin with the SPDX line and a blank line"}
	}
	return nil
}

func checkLines(s *source) []string {
	lines := strings.Split(strings.TrimSuffix(s.text, "\n"), "\n")
	var problems []string
	if len(lines) > maxFileLines {
		problems = append(problems, fmt.Sprintf("%s: %d lines", s.name, len(lines)))
	}
	for i, line := range lines {
		columns := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
		if columns > maxColumns {
			problems = append(problems, fmt.Sprintf("%s:%d: %d columns", s.name, i+1, columns))
		}
	}
	return problems
}

func checkExported(s *source) []string {
	if s.isTest {
		return nil
	}
	var problems []string
	missing := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		commented := slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil })
		if name.IsExported() && !commented {
			problems = append(problems, fmt.Sprintf("%s: %s has no comment", s.at(name.Pos()), name.Name))
		}
	}
	for _, decl := range s.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil || ast.IsExported(receiver(decl)) {
				missing(decl.Name, decl.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				names, own := declared(spec)
				for _, name := range names {
					missing(name, append(own, decl.Doc)...)
				}
			}
		}
	}
	return problems
}

// declared returns the names that a part of a declaration introduces, and the
// part's comments.
func declared(spec ast.Spec) ([]*ast.Ident, []*ast.CommentGroup) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}, []*ast.CommentGroup{spec.Doc, spec.Comment}
	case *ast.ValueSpec:
		return spec.Names, []*ast.CommentGroup{spec.Doc, spec.Comment}
	}
	return nil, nil
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func checkFunctions(s *source) []string {
	var problems []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		var name string
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.FuncType:
			if count := n.Params.NumFields(); count > maxParameters {
				problems = append(problems, fmt.Sprintf("%s: %d parameters", s.at(n.Pos()), count))
			}
			return true
		case *ast.FuncDecl:
			name, body = n.Name.Name, n.Body
		case *ast.FuncLit:
			name, body = "function literal", n.Body
		}
		if body == nil {
			return true
		}
		if count := functionLines(s, body); count > maxFunctionLines {
			problems = append(problems, fmt.Sprintf("%s: %s has %d lines", s.at(n.Pos()), name, count))
		}
		if depth := nesting(body.List); depth > maxNesting {
			problems = append(problems, fmt.Sprintf("%s: %s is nested %d deep", s.at(n.Pos()), name, depth))
		}
		return true
	})
	return problems
}

// functionLines counts the lines of a body, each outermost composite literal
// as one.
func functionLines(s *source, body *ast.BlockStmt) int {
	count := s.line(body.End()) - s.line(body.Pos()) + 1
	ast.Inspect(body, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			count -= s.line(literal.End()) - s.line(literal.Pos())
			return false
		}
		return true
	})
	return count
}

// nesting returns how deep the deepest branch or loop in statements is. An
// else-if is as deep as its if, and a function literal begins anew.
func nesting(statements []ast.Stmt) int {
	deepest := 0
	for _, statement := range statements {
		deepest = max(deepest, depth(statement))
	}
	return deepest
}

func depth(statement ast.Stmt) int {
	switch statement := statement.(type) {
	case *ast.IfStmt:
		deepest := 1 + nesting(statement.Body.List)
		switch other := statement.Else.(type) {
		case *ast.IfStmt:
			deepest = max(deepest, depth(other))
		case *ast.BlockStmt:
			deepest = max(deepest, 1+nesting(other.List))
		}
		return deepest
	case *ast.ForStmt:
		return 1 + nesting(statement.Body.List)
	case *ast.RangeStmt:
		return 1 + nesting(statement.Body.List)
	case *ast.SwitchStmt:
		return 1 + nesting(statement.Body.List)
	case *ast.TypeSwitchStmt:
		return 1 + nesting(statement.Body.List)
	case *ast.SelectStmt:
		return 1 + nesting(statement.Body.List)
	case *ast.CaseClause:
		return nesting(statement.Body)
	case *ast.CommClause:
		return nesting(statement.Body)
	case *ast.BlockStmt:
		return nesting(statement.List)
	case *ast.LabeledStmt:
		return depth(statement.Stmt)
	}
	return 0
}

func checkInit(s *source) []string {
	var problems []string
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			problems = append(problems, s.at(f.Pos())+": init runs unasked")
		}
	}
	return problems
}

// processWide returns the variables that hold state of the whole process, which
// no value that is handed around could hold better.
func processWide() []struct{ file, name, why string } {
	return []struct{ file, name, why string }{
		{"vault/memory.go", "memory", "the system's limit on locked memory is for the process, as is memguard's key"},
	}
}

// isProcessWide tells whether a variable is in that list.
func isProcessWide(file, name string) bool {
	for _, v := range processWide() {
		if v.file == file && v.name == name {
			return true
		}
	}
	return false
}

// checkVariables finds package variables that could hold state. Sentinel
// errors, compiled patterns, embedded files and assertions of an interface are
// none; a table is returned by a function.
func checkVariables(s *source) []string {
	if s.isTest {
		return nil
	}
	var problems []string
	for _, decl := range s.file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR || isEmbedded(group) {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			name := value.Names[0].Name
			if name != "_" && !isProcessWide(s.name, name) && (len(value.Values) == 0 || !allConstant(value.Values)) {
				problems = append(problems, fmt.Sprintf("%s: package variable %s", s.at(value.Pos()), name))
			}
		}
	}
	return problems
}

// isEmbedded tells whether a variable is the content of a file.
func isEmbedded(group *ast.GenDecl) bool {
	return group.Doc != nil && slices.ContainsFunc(group.Doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// allConstant tells whether all values are made by functions whose results
// nobody can change.
func allConstant(values []ast.Expr) bool {
	return !slices.ContainsFunc(values, func(value ast.Expr) bool {
		call, ok := value.(*ast.CallExpr)
		return !ok || !isIn("errors.New regexp.MustCompile", types.ExprString(call.Fun))
	})
}

// checkGoroutines wants a comment above each go statement, on its line or in
// its function, that says when the goroutine ends and who waits for it.
func checkGoroutines(s *source) []string {
	if s.isTest {
		return nil
	}
	var problems []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		start, ok := n.(*ast.GoStmt)
		if !ok {
			return true
		}
		first, last := s.line(start.Pos()), s.line(start.End())
		commented := slices.ContainsFunc(s.file.Comments, func(c *ast.CommentGroup) bool {
			return s.line(c.End()) >= first-1 && s.line(c.Pos()) <= last
		})
		if !commented {
			problems = append(problems, s.at(start.Pos())+": go statement without a comment on its end")
		}
		return true
	})
	return problems
}

func checkSleep(s *source) []string {
	if !s.isTest {
		return nil
	}
	virtual := func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` }
	if slices.ContainsFunc(s.file.Imports, virtual) {
		return nil // sleeping is how time passes there
	}
	var problems []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if name, ok := n.(*ast.SelectorExpr); ok && types.ExprString(name) == "time.Sleep" {
			problems = append(problems, s.at(name.Pos())+": a test that sleeps")
		}
		return true
	})
	return problems
}

func checkLeftovers(s *source) []string {
	var problems []string
	for _, group := range s.file.Comments {
		for _, word := range []string{"TODO", "FIXME", "XXX", "HACK"} {
			if strings.Contains(group.Text(), word) {
				problems = append(problems, fmt.Sprintf("%s: a comment with %s", s.at(group.Pos()), word))
			}
		}
	}
	return problems
}

// TestRulesOfSource makes sure that each rule finds what it is for.
func TestRulesOfSource(t *testing.T) {
	const licence = "// SPDX-License-Identifier: Apache-2.0\n\n"
	for _, c := range []struct {
		name, text string
		check      func(*source) []string
		problem    string // "" when there is none
	}{
		{"x.go", "package x", checkLicence, "SPDX"},
		{"x.go", licence + "package x", checkLicence, ""},
		{"x.go", "package x\n" + strings.Repeat("\n//", maxFileLines), checkLines, "lines"},
		{"x.go", "package x\n\n// " + strings.Repeat("ä", maxColumns-3), checkLines, ""},
		{"x.go", "package x\n\n// " + strings.Repeat("ä", maxColumns-2), checkLines, "columns"},
		{"x.go", "package x; func F() {}", checkExported, "F has no comment"},
		{"x.go", "package x; type t int; func (*t) F() {}", checkExported, ""},
		{"x.go", "package x; type T[A any] int /* t */; func (*T[A]) F() {}", checkExported, "F has no comment"},
		{"x.go", "package x\n\nconst A, B = 1, 2", checkExported, "B has no comment"},
		{"x.go", "package x\n\n// These.\nconst (\n\tA = 1\n)", checkExported, ""},
		{"x.go", "package x; func f(a, b, c, d, e int) {}", checkFunctions, ""},
		{"x.go", "package x; func f(a, b, c, d, e int, g bool) {}", checkFunctions, "6 parameters"},
		{"x.go", "package x; func f() {" + strings.Repeat("\n", maxFunctionLines) + "}", checkFunctions, "81 lines"},
		{"x.go", "package x; var a = func() {" + strings.Repeat("\n", maxFunctionLines) + "}", checkFunctions, "81"},
		{"x.go", "package x; func f() { _ = []int{" + strings.Repeat("\n", 99) + "} }", checkFunctions, ""},
		{"x.go", nested("if true {}"), checkFunctions, "5 deep"},
		{"x.go", nested("switch { case true: }"), checkFunctions, "5 deep"},
		{"x.go", nested("if true {} else if true {}"), checkFunctions, "5 deep"},
		{"x.go", nested("func() { if true {} }()"), checkFunctions, ""},
		{"x.go", "package x; func init() {}", checkInit, "init"},
		{"x.go", "package x; var state map[string]int", checkVariables, "state"},
		{"x.go", "package x; var table = []int{1}", checkVariables, "table"},
		{"vault/memory.go", "package x; var memory int", checkVariables, ""},
		{"vault/memory.go", "package x; var other int", checkVariables, "other"},
		{"x.go", `package x; var ErrX = errors.New("x")`, checkVariables, ""},
		{"x.go", "package x\n\n//go:embed f\nvar f string", checkVariables, ""},
		{"x.go", "package x\nfunc f() {\n\tgo f()\n}", checkGoroutines, "go statement"},
		{"x.go", "package x\nfunc f() {\n\t// Ends with f.\n\tgo f()\n}", checkGoroutines, ""},
		{"x_test.go", "package x; func f() { time.Sleep(1) }", checkSleep, "sleeps"},
		{"x.go", "package x; func f() { time.Sleep(1) }", checkSleep, ""},
		{"x_test.go", "package x; import \"testing/synctest\"; func f() { time.Sleep(1) }", checkSleep, ""},
		{"x.go", "package x // " + "TO" + "DO: y", checkLeftovers, "comment with"},
	} {
		s, err := parseSource(c.name, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(c.check(s), "\n")
		if (got == "") != (c.problem == "") || !strings.Contains(got, c.problem) {
			t.Errorf("%.60q: got %q, want %q", c.text, got, c.problem)
		}
	}
}

// nested is a function that holds a statement in blocks of the greatest depth.
func nested(statement string) string {
	return "package x; func f() {" + strings.Repeat("for {", maxNesting) + statement +
		strings.Repeat("}", maxNesting) + "}"
}
