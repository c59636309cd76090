// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

const (
	// maxScripts bounds scripts whose interpreter is a script. Linux runs four.
	maxScripts = 4
	// maxShebang is the length in bytes of a first line that Linux looks at.
	maxShebang = 256
)

// checkInterpreters makes sure that what a script asks for in its first line
// can be found too. "#!/usr/bin/env node" searches the child's PATH: where npx
// was found in a well-known folder, node must be found as well.
func (b *builder) checkInterpreters(file string) {
	if b.sys.windows {
		return
	}
	for range maxScripts {
		program, byName := b.sys.interpreter(file)
		if program == "" {
			return
		}
		next, obstacle := b.findInterpreter(program, byName)
		if next == "" {
			b.reportInterpreter(file, program, byName, obstacle)
			return
		}
		file = next
	}
}

func (b *builder) findInterpreter(program string, byName bool) (file string, obstacle *Error) {
	if byName {
		return b.search(program)
	}
	return b.sys.examine(program)
}

func (b *builder) reportInterpreter(script, program string, byName bool, obstacle *Error) {
	problem := &Error{
		Kind: ErrNotFound, Subject: program,
		Message: fmt.Sprintf("script %q needs %q, which is not there", script, program),
		Fix:     "install it",
	}
	switch {
	case obstacle != nil:
		problem.Kind, problem.Cause = obstacle.Kind, obstacle
		problem.Message = fmt.Sprintf("script %q needs %q", script, program)
	case byName:
		problem.Fix = "install it, or set a PATH in env that has it (" + b.searchedText() + ")"
	}
	b.report(b.at("command"), problem)
}

// interpreter reads the first line of a script. It returns the path of the
// program that runs it, or the name that env is to search for; "" for a file
// that is no script, can't be read, or asks env for more than a name.
func (s *system) interpreter(file string) (program string, byName bool) {
	start, err := s.readStart(file, maxShebang)
	if err != nil || !bytes.HasPrefix(start, []byte("#!")) {
		return "", false
	}
	line, _, _ := strings.Cut(string(start[len("#!"):]), "\n")
	words := strings.Fields(line)
	if len(words) == 0 || !s.isAbs(words[0]) {
		return "", false
	}
	if path.Base(words[0]) != "env" {
		return words[0], false
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], "=/\"'$\\") {
		return "", false
	}
	return words[0], true
}
