// SPDX-License-Identifier: Apache-2.0

// Package policy decides whether a call may run. It is the one place that does:
// listing and calling ask the same function, so a tool that is listed can be
// called and one that is not listed cannot.
package policy

import (
	"fmt"
	"slices"

	"github.com/gobwas/glob"

	"github.com/garraia/garra/mcpconfig"
)

// A Decision is what was decided, and why in words that a person can act on.
type Decision struct {
	Allowed bool
	Reason  string
	Rule    string // where the rule stands, "config.yml:7"; empty when none decided
}

// Rules are the tool rules of one server. They never change and are safe for
// concurrent use. The zero Rules allow everything.
type Rules struct {
	allowed, denied []pattern
	where           func(field string) string
}

// A pattern is a tool name or a glob of an entry's list.
type pattern struct {
	text  string
	match *glob.Pattern
}

// Compile reads the rules of a server's entry. It fails on a pattern that is no
// glob, which the configuration's own check has reported already.
func Compile(entry *mcpconfig.Server) (*Rules, error) {
	r := &Rules{where: func(field string) string { return entry.Position(field).String() }}
	var err error
	if r.allowed, err = compile(entry.AllowedTools); err != nil {
		return nil, fmt.Errorf("allowed_tools of %q: %w", entry.Name, err)
	}
	if r.denied, err = compile(entry.DeniedTools); err != nil {
		return nil, fmt.Errorf("denied_tools of %q: %w", entry.Name, err)
	}
	return r, nil
}

func compile(texts []string) ([]pattern, error) {
	var list []pattern
	for _, text := range texts {
		g, err := glob.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", text, err)
		}
		list = append(list, pattern{text, g})
	}
	return list, nil
}

// Tool decides on a tool by the name that its server gives it. denied_tools
// wins over allowed_tools; no allowed_tools, or an empty list, allow every tool.
func (r *Rules) Tool(name string) Decision {
	if i := find(r.denied, name); i >= 0 {
		return Decision{
			Reason: fmt.Sprintf("deniedTools has %q", r.denied[i].text), Rule: r.item("deniedTools", i),
		}
	}
	if len(r.allowed) == 0 {
		return Decision{Allowed: true, Reason: "no allowedTools: every tool is allowed"}
	}
	if i := find(r.allowed, name); i >= 0 {
		return Decision{
			Allowed: true, Reason: fmt.Sprintf("allowedTools has %q", r.allowed[i].text),
			Rule: r.item("allowedTools", i),
		}
	}
	return Decision{Reason: "allowedTools doesn't have it", Rule: r.where("allowedTools")}
}

// item is where an item of a list stands.
func (r *Rules) item(field string, i int) string { return r.where(fmt.Sprintf("%s[%d]", field, i)) }

// find returns the first pattern that matches, -1 when none does. A pattern
// always matches the name that it spells, also when that holds characters of
// globs.
func find(list []pattern, name string) int {
	return slices.IndexFunc(list, func(p pattern) bool { return p.text == name || p.match.Match(name) })
}

// A Pattern is a name or glob of an entry's tool lists.
type Pattern struct {
	Field   string // "allowedTools[2]"
	Pattern string
}

// Unused returns the patterns that none of the server's tools bears.
func (r *Rules) Unused(tools []string) (unused []Pattern) {
	collect := func(field string, list []pattern) {
		for i, p := range list {
			if !slices.ContainsFunc(tools, func(t string) bool { return p.text == t || p.match.Match(t) }) {
				unused = append(unused, Pattern{fmt.Sprintf("%s[%d]", field, i), p.text})
			}
		}
	}
	collect("allowedTools", r.allowed)
	collect("deniedTools", r.denied)
	return unused
}
