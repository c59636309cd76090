// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpconfig

import (
	"regexp"
	"strings"
)

// checkExposed notes files with values of environment variables or headers in them that other
// users of the machine may read.
func (l *loader) checkExposed(sources ...*source) {
	for _, s := range sources {
		if s.mode&0o077 == 0 || !s.holdsValues(l.settings.storeNames()) {
			continue
		}
		l.report(s.at(-1), CodeFileExposed, "chmod 600 "+shellWord(s.path),
			"the file holds values of env or headers and has mode %#o: other users may read it", s.mode)
	}
}

// plainWord is text that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@:+-]+$`)

// shellWord returns text as one word of a POSIX shell.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
