// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"regexp"
	"slices"
	"strings"

	"github.com/garraia/garra/source"
)

// A vain start is one that ends the same way each time, until somebody changes what it
// ends for.
type vain struct {
	words *regexp.Regexp // on standard error; nil for any
	codes []int          // exit codes; none for any
	what  string
	fix   string
}

// What runtimes write when starting them again would change nothing.
var (
	npmHasNone    = regexp.MustCompile(`(?m)^npm (error|ERR!) code (E404|ETARGET|ENOVERSIONS)\b`)
	npmNoName     = regexp.MustCompile(`(?m)^npm (error|ERR!) code EINVALIDPACKAGENAME\b`)
	npmNoProgram  = regexp.MustCompile(`(?m)^npm (error|ERR!) could not determine executable to run`)
	uvHasNone     = regexp.MustCompile(`was not found in the package registry|No solution found when resolving tool`)
	nodeHasNone   = regexp.MustCompile(`(?m)^Error: Cannot find module '`)
	pythonHasNone = regexp.MustCompile(`(?m)^\S*python\S*: (can't open file|No module named) `)
)

// vainStarts are the ways in which starts are known to end in vain.
func vainStarts() []vain {
	return []vain{
		{
			words: npmHasNone,
			what:  "npm has no such package, or no such version of it",
			fix:   "correct the package in args",
		},
		{
			words: npmNoName,
			what:  "npm says that this is no name of a package",
			fix:   "correct the package in args",
		},
		{
			words: npmNoProgram,
			what:  "the package has no program that npx could run",
			fix:   "name the program in args: -p PACKAGE PROGRAM",
		},
		{
			words: uvHasNone,
			what:  "uv has no such package, or no such version of it",
			fix:   "correct the package in args",
		},
		{
			words: nodeHasNone,
			codes: []int{1},
			what:  "Node.js can't find the program, or what that needs",
			fix:   "correct the path in args, or install what it needs",
		},
		{
			words: pythonHasNone,
			codes: []int{1, 2},
			what:  "Python can't find the program",
			fix:   "correct the path or the module in args",
		},
		{
			codes: []int{127}, // of a shell, and of env(1)
			what:  "a command in it was not found",
			fix:   "install what it runs, or set PATH in its env",
		},
		{
			codes: []int{126},
			what:  "a command in it can't be executed",
			fix:   "make it executable, or correct its path",
		},
		{
			codes: []int{78}, // EX_CONFIG (sysexits.h)
			what:  "it says that its configuration is wrong (exit status 78)",
			fix:   "correct its env and args",
		},
	}
}

// inVain returns why starting the server again would end as this start did, nil when it
// might not.
func (a *attendance) inVain() *vain {
	exit := a.proc.Exit()
	if a.ready || exit.Lost || exit.Signal != 0 || exit.Code == 0 {
		return nil
	}
	said := a.words()
	for _, v := range vainStarts() {
		if v.ends(exit.Code, said) {
			return &v
		}
	}
	return nil
}

// ends reports whether this is how a start ended.
func (v *vain) ends(code int, said string) bool {
	return (len(v.codes) == 0 || slices.Contains(v.codes, code)) && (v.words == nil || v.words.MatchString(said))
}

// words are what the server wrote to standard error in this run, as far as it is kept.
func (a *attendance) words() string {
	lines, _ := a.ring.after(a.stderr)
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(line.Text)
		text.WriteByte('\n')
	}
	return text.String()
}

// explainVain completes the failure of a start that ends the same way each time.
func explainVain(f *source.Failure, v *vain) {
	f.Code = source.ServerFailed
	f.Message = v.what + ": " + f.Message
	f.Fix = v.fix + "; " + f.Fix
}
