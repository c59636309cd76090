// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how much a [Finding] matters.
type Severity string

// The severities. Only an Error keeps something from being used.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Position is a place in one of the configuration files. The zero Position is no place.
type Position struct {
	File   string // base name, such as mcp.json
	Line   int    // from 1; 0 when the whole file is meant
	Column int    // in characters, from 1; 0 when the whole file is meant
}

// String returns "mcp.json:12", or the bare file name when there is no line.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Finding is one thing that a person should know about the configuration.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	File     string   `json:"file"`   // base name, such as mcp.json
	Line     int      `json:"line"`   // from 1; 0 when the whole file is meant
	Column   int      `json:"column"` // in characters, from 1; 0 when the whole file is meant
	Server   string   `json:"server"` // empty when no single server is meant
	Message  string   `json:"message"`
	Fix      string   `json:"fix"` // what to do about it
}

// Position returns the place that the finding is about.
func (f Finding) Position() Position {
	return Position{File: f.File, Line: f.Line, Column: f.Column}
}

// String returns the finding in one line, in the form that compilers use.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	fmt.Fprintf(&b, ": %s: ", f.Severity)
	if f.Server != "" {
		fmt.Fprintf(&b, "server %q: ", f.Server)
	}
	b.WriteString(f.Message)
	if f.Fix != "" {
		fmt.Fprintf(&b, " (%s)", f.Fix)
	}
	fmt.Fprintf(&b, " [%s]", f.Code)
	return b.String()
}

// Findings is a list of findings, sorted by place.
type Findings []Finding

// Count returns how many findings have the severity s.
func (f Findings) Count(s Severity) int {
	n := 0
	for _, finding := range f {
		if finding.Severity == s {
			n++
		}
	}
	return n
}

// Of returns the findings about one server.
func (f Findings) Of(server string) Findings {
	var own Findings
	for _, finding := range f {
		if finding.Server == server {
			own = append(own, finding)
		}
	}
	return own
}

// With returns the findings of both lists, sorted by place. Neither list changes.
func (f Findings) With(more Findings) Findings {
	all := slices.Concat(f, more)
	all.sort()
	return all
}

// sort orders by file, line and column; findings at one place keep their order.
func (f Findings) sort() {
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
}
