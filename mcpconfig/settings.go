// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one value outside of server entries that garra reads from config.yml.
type setting struct {
	section string
	keys    []string // spellings; the first is the documented one. Dots lead into maps
	// alone is set for the one value that a section may be instead of a map.
	alone bool
	// foreign is set for a value of GarraIA's own sections: what is wrong with it is
	// GarraIA's business, and garra keeps its default.
	foreign bool
	// set stores the value and returns what it should have been, or "".
	set      func(*Settings, *node) string
	noEffect string
}

// settings returns the table of settings.
func settings() []setting {
	return []setting{
		{
			section: "tools", keys: []string{"list_wait_secs", "listWaitSecs"},
			set: func(s *Settings, n *node) string { return setSeconds(&s.ListWait, n, 0, 300) },
		},
		{
			section: "tools", keys: []string{"mode"}, alone: true, set: setTools,
		},
		{
			section: "approvals", keys: []string{"require"},
			set:      setApprovalProof,
			noEffect: "there are no approvals",
		},
		{section: "vault", keys: []string{"recipients"}, set: func(s *Settings, n *node) string {
			return setTexts(&s.Vault.Recipients, n)
		}},
		{section: "vault", keys: []string{"identity"}, set: func(s *Settings, n *node) string {
			return setTexts(&s.Vault.Identities, n)
		}},
		{section: "vault", keys: []string{"lock_memory", "lockMemory"}, set: func(s *Settings, n *node) string {
			s.Vault.Unlocked = n.kind == boolNode && strings.EqualFold(n.text, "false")
			return setBool(n)
		}},
		{
			section: "timeouts", keys: []string{"mcp.default_secs", "mcp.defaultSecs"}, foreign: true,
			set: func(s *Settings, n *node) string {
				return setSeconds(&s.DefaultTimeout, n, 1, maxSeconds)
			},
		},
		{
			section: "agent", keys: []string{"tool_confirmation_enabled", "toolConfirmationEnabled"},
			foreign: true, set: setToolConfirmation,
		},
	}
}

// ownSections are garra's sections of config.yml. All others belong to GarraIA.
func ownSections() []string {
	return []string{"mcp", "vault", "secrets", "catalog", "tools", "approvals", "log"}
}

// readSettings reads the settings and checks garra's own sections.
func (l *loader) readSettings(s *source) Settings {
	values := Settings{ListWait: DefaultListWait, DefaultTimeout: DefaultTimeout, Tools: ToolsAll}
	if s.root == nil {
		return values
	}
	l.checkOwnKeys(s)
	values.Stores = l.readStores(s)
	table := settings()
	for _, section := range ownSections() {
		if m := s.root.member(section); m != nil && section != "mcp" && section != storesSection {
			l.checkOwnSection(s, m, table)
		}
	}
	for _, setting := range table {
		if n := s.root.get(setting.section); setting.alone && n != nil && n.kind == stringNode {
			l.apply(s, setting, setting.section, n, &values)
			continue
		}
		for _, key := range setting.keys {
			path := append([]string{setting.section}, strings.Split(key, ".")...)
			if n := s.root.at(path...); n != nil && n.kind != nullNode {
				l.apply(s, setting, strings.Join(path, "."), n, &values)
				break
			}
		}
	}
	return values
}

// at returns the value under a path of keys, or nil.
func (n *node) at(path ...string) *node {
	for _, key := range path {
		n = n.get(key)
	}
	return n
}

// apply stores one setting and reports when it can't or when it has no effect.
func (l *loader) apply(s *source, setting setting, path string, n *node, values *Settings) {
	want := setting.set(values, n)
	switch {
	case want != "" && setting.foreign:
		l.report(s.at(n.start), CodeSettingIgnored, "write "+want,
			"%s is not %s: the default is used", path, want)
	case want != "":
		l.report(s.at(n.start), settingCode(n, setting), "write "+want, "%s is not %s", path, want)
	case setting.noEffect != "":
		l.report(s.at(n.start), CodeFieldNoEffect, "don't rely on it yet",
			"%s has no effect in this version: %s", path, setting.noEffect)
	}
}

// settingCode tells a value of the wrong type from one that is out of range or unknown.
func settingCode(n *node, setting setting) Code {
	switch {
	case setting.section == "approvals" && n.kind == stringNode:
		return CodeFieldChoice
	case setting.alone && n.kind == stringNode:
		return CodeFieldChoice
	case setting.section == "tools" && n.kind == numberNode:
		return CodeFieldRange
	}
	return CodeFieldType
}

// checkOwnKeys reports own sections that stand in the file twice.
func (l *loader) checkOwnKeys(s *source) {
	own := &node{kind: mapNode}
	for _, m := range s.root.members {
		if slices.Contains(ownSections(), m.key) {
			own.members = append(own.members, m)
		}
	}
	l.checkSectionKeys(s, own, "")
}

// checkOwnSection reports what garra doesn't know in one of its own sections.
func (l *loader) checkOwnSection(s *source, section *member, table []setting) {
	switch section.value.kind {
	case nullNode:
		return
	case mapNode:
	case stringNode:
		if slices.ContainsFunc(table, func(x setting) bool { return x.alone && x.section == section.key }) {
			return
		}
		fallthrough
	default:
		l.report(s.at(section.value.start), CodeSectionNotMap, "write it as a map of keys and values",
			"%s is %s, not a map", section.key, section.value.kind.noun())
		return
	}
	var known []string
	for _, setting := range table {
		if setting.section == section.key {
			known = append(known, setting.keys...)
		}
	}
	if known == nil {
		l.report(s.at(section.keyStart), CodeFieldNoEffect, "don't rely on it yet",
			"the section %s has no effect in this version", section.key)
		return
	}
	l.checkSectionKeys(s, section.value, section.key+".")
	for _, m := range section.value.members {
		if !m.invalid && !slices.Contains(known, m.key) {
			l.report(s.at(m.keyStart), CodeKeyUnknown, didYouMean(m.key, known),
				"unknown key %q in %s", shorten(m.key), section.key)
		}
	}
}

// setSeconds stores a duration between two numbers of seconds.
func setSeconds(p *time.Duration, n *node, least, most float64) string {
	number, err := strconv.ParseFloat(n.text, 64)
	if n.kind != numberNode || err != nil || !plainNumber.MatchString(n.text) ||
		number < least || number > most {
		return fmt.Sprintf("a number of seconds from %s to %s", showNumber(least), showNumber(most))
	}
	*p = time.Duration(number * float64(time.Second))
	return ""
}

// setTexts stores one text or several.
func setTexts(p *[]string, n *node) string {
	texts := []*node{n}
	if n.kind == listNode {
		texts = n.items
	}
	for _, text := range texts {
		if text.kind != stringNode || text.text == "" {
			return "a string or a list of strings"
		}
		*p = append(*p, text.text)
	}
	return ""
}

func setApprovalProof(s *Settings, n *node) string {
	if n.kind != stringNode || n.text != "passphrase" && n.text != "token" {
		return "passphrase or token"
	}
	s.ApprovalProof = n.text
	return ""
}

func setTools(s *Settings, n *node) string {
	if n.kind != stringNode || n.text != string(ToolsAll) && n.text != string(ToolsSearch) {
		return "all or search"
	}
	s.Tools = Tools(n.text)
	return ""
}

// setBool returns what a value that is neither true nor false should have been.
func setBool(n *node) string {
	if n.kind != boolNode {
		return "true or false"
	}
	return ""
}

func setToolConfirmation(s *Settings, n *node) string {
	if want := setBool(n); want != "" {
		return want
	}
	s.ToolConfirmation = strings.EqualFold(n.text, "true")
	return ""
}
