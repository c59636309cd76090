// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Load reads both files of the configuration folder. It returns an error only when the folder
// itself can't be read; a folder or file that doesn't exist is an empty configuration, and
// everything else that is wrong is in the findings.
func Load(dir string) (*Config, error) { return loadFolder(dir, nil) }

// loadFolder loads a folder; a source that is given stands for the file of its name.
func loadFolder(dir string, given *source) (*Config, error) {
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	l := newLoader()
	real := realFolder(dir) // before it is read: a change meanwhile is seen by a watch
	open := func(name string) *source {
		if given != nil && given.name == name {
			return given
		}
		return l.read(filepath.Join(dir, name))
	}
	general, servers := open(GeneralFile), open(ServersFile)
	l.settings = l.readSettings(general)
	entries := append(l.generalEntries(general), l.serversEntries(servers)...)
	config := &Config{
		Dir:      dir,
		Files:    []File{servers.file(), general.file()},
		Settings: l.settings,
		realDir:  real,
	}
	config.Servers, config.LeftOut = l.servers(entries)
	l.checkExposed(servers, general)
	l.checkIgnored(dir)
	if !servers.exists && !general.exists {
		l.report(servers.at(-1), CodeConfigNone,
			fmt.Sprintf("create %s, with {\"mcpServers\": {\"NAME\": {\"command\": …}}}", servers.path),
			"there is no configuration yet")
	}
	l.findings.sort()
	config.Findings, config.Secrets = l.findings, l.secrets
	for _, s := range config.LeftOut {
		s.invalid = firstError(l.findings.Of(s.Name))
	}
	return config, nil
}

// firstError returns the first finding that is an error, or nil.
func firstError(findings Findings) *Finding {
	for i := range findings {
		if findings[i].Severity == Error {
			return &findings[i]
		}
	}
	return nil
}

// checkFolder returns an error unless dir is a folder that can be read, or nothing.
func checkFolder(dir string) error {
	info, err := os.Stat(dir) // opening would wait for who writes to a pipe
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		what := "a file"
		if !info.Mode().IsRegular() {
			what = describeMode(info.Mode())
		}
		return fmt.Errorf("reading the configuration folder: %s is %s; name the folder that holds %s",
			dir, what, ServersFile)
	}
	if err != nil {
		return fmt.Errorf("reading the configuration folder: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("reading the configuration folder: %w", err)
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the configuration folder: %w", err)
	}
	return nil
}

// loader gathers what one load finds.
type loader struct {
	table    []field
	index    map[string]*field // by every spelling
	settings Settings
	findings Findings
	secrets  []SecretUse
}

func newLoader() *loader {
	l := &loader{table: fields(), index: map[string]*field{}}
	for i := range l.table {
		for _, key := range l.table[i].keys() {
			l.index[key] = &l.table[i]
		}
	}
	return l
}

// spot is what a finding is about.
type spot struct {
	src    *source
	offset int    // negative when the whole file is meant
	server string // empty when no single server is meant
}

// at returns the spot at an offset of the file.
func (s *source) at(offset int) spot { return spot{src: s, offset: offset} }

// report adds a finding.
func (l *loader) report(at spot, code Code, fix, format string, args ...any) {
	p := at.src.position(at.offset)
	l.findings = append(l.findings, Finding{
		Severity: code.Severity(),
		Code:     code,
		File:     p.File,
		Line:     p.Line,
		Column:   p.Column,
		Server:   at.server,
		Message:  fmt.Sprintf(format, args...),
		Fix:      fix,
	})
}

// read reads one file and reports why it can't be used.
func (l *loader) read(path string) *source {
	s, ferr := readSource(path)
	if ferr == nil && s.root != nil && !s.isMap() {
		ferr = wholeFile(CodeFileUnparsable, "see docs/config.md for what the file holds",
			"the file holds %s where a map of keys is expected", s.root.kind.noun())
		ferr.offset = s.root.start
		s.root = nil
	}
	if ferr != nil {
		l.report(s.at(ferr.offset), ferr.code, ferr.fix, "%s", ferr.message)
	}
	return s
}

// isMap reports whether the file holds a map. An empty YAML file counts as an empty one.
func (s *source) isMap() bool {
	return s.root.kind == mapNode || s.root.kind == nullNode && isYAML(s.name)
}

// file returns what became of the file.
func (s *source) file() File {
	return File{Path: s.path, Exists: s.exists, Parsed: s.root != nil, Hash: s.hash}
}

// holdsValues reports whether any server in the file has values in env or headers, or a secret
// in oauth, that stand there themselves, rather than as references.
func (s *source) holdsValues(stores []string) bool {
	for _, root := range []string{"mcpServers", "servers", "mcp"} {
		for _, server := range s.root.get(root).children() {
			if server.value.get("env").holdsText(stores) || server.value.get("headers").holdsText(stores) ||
				server.value.get("oauth").holdsSecret(stores) {
				return true
			}
		}
	}
	return false
}

// holdsText reports whether a map has a value that is more than references.
func (n *node) holdsText(stores []string) bool {
	for _, m := range n.children() {
		if m.value.text != "" && len(references(fileSecret(m.value.text, stores), true, stores)) == 0 {
			return true
		}
	}
	return false
}

// isNote reports a key that people use for a comment where JSON has none.
func isNote(key string) bool { return strings.HasPrefix(key, "//") }

// serversEntries returns the entries of mcp.json and reports what else is in it.
func (l *loader) serversEntries(s *source) []entry {
	if s.root == nil {
		return nil
	}
	l.checkSectionKeys(s, s.root, "")
	root := s.root.member("mcpServers")
	for i := range s.root.members {
		m := &s.root.members[i]
		switch {
		case m.key == "mcpServers" || m.key == "$schema" || isNote(m.key):
		case m.key == "servers" && root == nil:
			root = m
			l.report(s.at(m.keyStart), CodeRootDialect, "rename the key to mcpServers",
				"servers is VS Code's key; it is read as mcpServers")
		case isDialectRoot(m.key):
			l.report(s.at(m.keyStart), CodeRootUnread, unreadFix(m.key),
				"%s is another client's key and is not read", m.key)
		default:
			l.reportRootKey(s, m, root == nil)
		}
	}
	if root == nil {
		return nil
	}
	return l.sectionEntries(s, root)
}

// isDialectRoot reports whether other clients keep servers or their inputs under the key.
func isDialectRoot(key string) bool {
	switch key {
	case "servers", "inputs", "context_servers", "mcp_servers", "mcp":
		return true
	}
	return false
}

// unreadFix is what to do about a key at the root that another client has.
func unreadFix(key string) string {
	if key == "inputs" {
		return "write ${env:NAME} where an entry has ${input:…}, and set NAME where garra is started"
	}
	return "move the servers to mcpServers"
}

// reportRootKey reports a key of mcp.json that is not known there. Where there is no root for
// servers, a map with command or url is most likely a server in the wrong place.
func (l *loader) reportRootKey(s *source, m *member, noRoot bool) {
	if noRoot && (m.value.get("command") != nil || m.value.get("url") != nil) {
		l.report(s.at(m.keyStart), CodeRootMissing,
			`put all servers into {"mcpServers": {…}}`,
			"the server %q stands outside of mcpServers", shorten(m.key))
		return
	}
	consequence := ""
	if noRoot && Nearest(m.key, []string{"mcpServers"}) != "" {
		consequence = ", so no server in it is read"
	}
	l.report(s.at(m.keyStart), CodeKeyUnknown, didYouMean(m.key, []string{"mcpServers"}),
		"unknown key %q%s", shorten(m.key), consequence)
}

// generalEntries returns the entries of config.yml.
func (l *loader) generalEntries(s *source) []entry {
	if m := s.root.member("mcp"); m != nil {
		return l.sectionEntries(s, m)
	}
	return nil
}

// sectionEntries returns the entries of one section, one for each name.
func (l *loader) sectionEntries(s *source, section *member) []entry {
	switch section.value.kind {
	case nullNode:
		return nil
	case mapNode:
	default:
		l.report(s.at(section.value.start), CodeSectionNotMap, "write it as a map of names and servers",
			"%s is %s, not a map", section.key, section.value.kind.noun())
		return nil
	}
	l.checkSectionKeys(s, section.value, section.key+".")
	var entries []entry
	index := map[string]int{}
	for _, m := range section.value.members {
		i, again := index[m.key]
		switch {
		case m.invalid || isNote(m.key):
		case again:
			entries[i].again = m.keyStart
		default:
			index[m.key] = len(entries)
			entries = append(entries, entry{src: s, name: m.key, member: m})
		}
	}
	return entries
}

// checkSectionKeys reports keys of a section that stand there twice or aren't text.
func (l *loader) checkSectionKeys(s *source, section *node, path string) {
	checkKeys(s, section, path, func(offset int, code Code, fix, format string, args ...any) {
		l.report(s.at(offset), code, fix, format, args...)
	})
}

// checkKeys reports keys that a map has twice, and keys that aren't text. The path is that of
// the map with a dot at its end, or empty.
func checkKeys(
	s *source, n *node, path string,
	report func(offset int, code Code, fix, format string, args ...any),
) {
	seen := map[string]int{}
	for _, m := range n.members {
		first, again := seen[m.key]
		switch {
		case m.invalid:
			report(m.keyStart, CodeKeyInvalid, "write text as the key",
				"a key is a list, a map or a tagged value")
		case again && isNote(m.key):
		case again:
			report(m.keyStart, CodeKeyDuplicate, "keep one of them",
				"%s is there twice, first at %s", showPath(path+m.key), s.position(first))
		default:
			seen[m.key] = m.keyStart
		}
	}
}

// serverName is what a server may be called.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// servers decodes the entries, those of config.yml first, and returns those that are in force,
// sorted by name: the valid ones, and the others.
func (l *loader) servers(entries []entry) (valid, leftOut []*Server) {
	first := map[string]entry{}
	similar := map[string]entry{}
	for _, e := range entries {
		if !serverName.MatchString(e.name) {
			l.report(e.src.at(e.member.keyStart), CodeServerInvalidName,
				"use letters, digits, _, - and ., at most 64, a letter or digit first",
				"a server can't have the name %q", shorten(e.name))
			continue
		}
		if winner, ok := first[e.name]; ok {
			l.report(e.spot(), CodeServerShadowed, "keep one of the two",
				"this entry is not used: the one at %s replaces it as a whole", winner.place())
			continue
		}
		first[e.name] = e
		folded := strings.ToLower(e.name)
		if other, ok := similar[folded]; ok {
			l.report(e.spot(), CodeServerSimilarName, "rename one of them",
				"the name differs from %q at %s only in case", other.name, other.place())
		} else {
			similar[folded] = e
		}
		if e.again > 0 {
			leftOut = append(leftOut, l.ambiguous(e))
			continue
		}
		if server, ok := l.decode(e); ok {
			valid = append(valid, server)
		} else {
			leftOut = append(leftOut, server)
		}
	}
	slices.SortFunc(valid, byName)
	slices.SortFunc(leftOut, byName)
	return valid, leftOut
}

// ambiguous returns an entry whose name is there twice, and has what was reported say whose name
// that is.
func (l *loader) ambiguous(e entry) *Server {
	at := e.src.position(e.again)
	for i := range l.findings {
		if f := &l.findings[i]; f.Code == CodeKeyDuplicate && f.Position() == at {
			f.Server = e.name
		}
	}
	server := NewServer(e.name, e.place(), l.settings)
	server.Transport, server.digest = Stdio, e.digest()
	return server
}

// place returns where the entry's name stands.
func (e entry) place() Position { return e.src.position(e.member.keyStart) }

// spot returns the entry's name as what a finding is about.
func (e entry) spot() spot { return spot{e.src, e.member.keyStart, e.name} }

// checkIgnored reports files that people take for configuration and that aren't read.
func (l *loader) checkIgnored(dir string) {
	for name, instead := range map[string]string{
		"config.yaml": GeneralFile,
		"config.toml": GeneralFile,
		".mcp.json":   ServersFile,
	} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			l.report((&source{name: name}).at(-1), CodeFileIgnored,
				"move what it says to "+instead, "this file is not read, only %s is", instead)
		}
	}
}
