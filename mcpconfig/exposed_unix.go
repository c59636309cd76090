// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpconfig

// checkExposed notes files with values of environment variables or headers in them that other
// users of the machine may read.
func (l *loader) checkExposed(sources ...*source) {
	for _, s := range sources {
		if s.mode&0o077 == 0 || !s.holdsValues() {
			continue
		}
		l.report(s.at(-1), CodeFileExposed, "chmod 600 "+s.path,
			"the file holds values of env or headers and has mode %#o: other users may read it", s.mode)
	}
}
