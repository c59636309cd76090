// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"net/url"
	"regexp"
	"strings"
)

// validate checks what no single value shows, once all fields are decoded. What is wrong
// already hides nothing else, and isn't told again as something that follows from it.
func (d *decoder) validate() {
	if d.resolveTransport() {
		d.checkTargets()
	}
	d.checkCommand()
	d.checkURL()
	d.checkAddressSpace()
	d.checkSandbox()
	d.checkPolicy()
	d.checkReferences()
	d.checkEffects()
	d.checkPlaintext()
}

// checkSandbox warns of a server that nothing confines.
func (d *decoder) checkSandbox() {
	m, ok := d.usable("sandbox")
	if ok && d.server.Transport == Stdio && d.server.Sandbox.Mode == SandboxOff {
		d.report(m.value.start, CodeSandboxOff,
			"remove mode, and name what the server needs in read, write and network",
			"%s is off: the server can touch all that you can", m.key)
	}
}

// resolveTransport decides how the server is reached, and reports when the entry doesn't make
// that clear. It returns whether it is.
func (d *decoder) resolveTransport() (clear bool) {
	s := d.server
	command, hasCommand := d.given["command"]
	address, hasURL := d.given["url"]
	// Some writers put an empty string where the other kind of server has its field.
	if hasURL && s.Command == "" && s.URL != "" {
		hasCommand = false
	}
	if hasCommand && s.URL == "" && s.Command != "" {
		hasURL = false
	}
	if s.Transport == "" {
		s.Transport = inferTransport(hasCommand, hasURL)
	}
	switch remote := s.Transport != Stdio; {
	case s.broken["type"] || s.broken["command"] || s.broken["url"]:
		return false
	case hasCommand && (hasURL || remote):
		d.report(command.keyStart, CodeServerTwoTargets,
			"remove command for a server at a URL, or url and a remote type for one that garra runs",
			"command is for a server that garra runs, %s for one at a URL", d.remoteSign(address))
	case !hasCommand && !remote && hasURL:
		d.report(d.given["type"].keyStart, CodeServerTwoTargets, "write http or sse as the type",
			"the type is stdio, but the entry has %s", address.key)
	case !hasCommand && !hasURL:
		d.report(d.entry.member.keyStart, CodeServerNoTarget,
			"add command (for a server that garra runs) or url (for one that runs elsewhere)",
			"the entry has neither command nor url")
	default:
		return true
	}
	d.breaks("command", "url", "type")
	return false
}

// inferTransport returns the transport of an entry without a type.
func inferTransport(hasCommand, hasURL bool) Transport {
	if hasURL && !hasCommand {
		return HTTP
	}
	return Stdio
}

// remoteSign names the key that makes an entry one of a remote server.
func (d *decoder) remoteSign(address member) string {
	if address.key != "" {
		return address.key
	}
	return "this type"
}

// checkTargets reports fields that this kind of server doesn't have.
func (d *decoder) checkTargets() {
	stdio := d.server.Transport == Stdio
	for _, f := range d.table {
		m, ok := d.given[f.name]
		if ok && d.misplaced(&f) && f.name != "command" && f.name != "url" {
			d.report(m.keyStart, CodeFieldNotApplicable, "remove it",
				"%s means nothing for a server of type %s", m.key, d.server.Transport)
		}
	}
	stops := d.server.Start == StartLazy || d.server.Sharing == SharingSession
	if d.server.broken["start"] || d.server.broken["sharing"] {
		return
	}
	if m, ok := d.usable("idleStopSecs"); ok && stdio && !stops {
		d.report(m.keyStart, CodeFieldNotApplicable, "add start: lazy or sharing: session, or remove it",
			"%s means nothing for a server that is neither lazy nor each client's own", m.key)
	}
}

// misplaced reports whether a field is for the other kind of server.
func (d *decoder) misplaced(f *field) bool {
	if d.server.Transport == Stdio {
		return f.target == remoteTarget
	}
	return f.target == stdioTarget
}

// checkCommand reports a command that can't be run.
func (d *decoder) checkCommand() {
	m, ok := d.usable("command")
	if !ok || d.server.Transport != Stdio {
		return
	}
	command := d.server.Command
	switch {
	case strings.TrimSpace(command) == "":
		d.breaks("command")
		d.report(m.value.start, CodeFieldInvalid, "write the program to run", "%s is empty", m.key)
	case strings.ContainsAny(command, " \t") && !strings.ContainsAny(command, `/\`):
		d.report(m.value.start, CodeCommandSpaces,
			"write the program alone in command, and each argument as an item of args",
			"%s has blanks in it and is run without a shell, as one file name", m.key)
	}
}

// checkURL reports an address that can't be one. An address with references in it isn't known
// before they are expanded.
func (d *decoder) checkURL() {
	m, ok := d.usable("url")
	if !ok || d.server.Transport == Stdio || strings.Contains(d.server.URL, "${") ||
		len(references(d.server.URL, true, d.settings.storeNames())) > 0 {
		return
	}
	u, err := url.Parse(d.server.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		d.report(m.value.start, CodeURLInvalid, "write an address such as https://example.com/mcp",
			"%s is not an http or https address", m.key)
	}
}

// checkPolicy reports what makes a server more powerful than its owner may think.
func (d *decoder) checkPolicy() {
	if m, ok := d.usable("allowedTools"); ok && len(d.server.AllowedTools) == 0 {
		d.report(m.value.start, CodeToolsEmptyAllow,
			"remove it, or list the tools; to allow none, deny \"*\"",
			"%s is empty, which allows every tool", m.key)
	}
	if m, ok := d.given["inheritEnv"]; ok && d.server.InheritEnv && d.server.Transport == Stdio {
		d.report(m.value.start, CodeEnvInherited,
			"remove it, and name the variables that the server needs in env",
			"the server gets garra's whole environment, with every secret in it")
	}
}

// clientVariable matches a variable that only an editor sets.
var clientVariable = regexp.MustCompile(
	`\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|fileWorkspaceFolder)\}`)

// checkReferences reports vault references that can't be resolved and text that looks like a
// reference and isn't one.
func (d *decoder) checkReferences() {
	for _, f := range d.table {
		m, ok := d.given[f.name]
		if !ok || !f.expands || d.misplaced(&f) {
			continue
		}
		d.checkReference(m.key, m.value, f.name == "url")
		for i, item := range m.value.items {
			d.checkReference(indexPath(m.key, i), item, true)
		}
		for _, item := range m.value.members {
			value := *item.value
			if f.format == envMap {
				value.text = fileSecret(value.text, d.settings.storeNames())
			}
			d.checkReference(showPath(m.key+"."+item.key), &value, true)
		}
	}
}

// checkReference checks the references in one text. Where whole is set, it may be one to a secret
// as a whole.
func (d *decoder) checkReference(key string, n *node, whole bool) {
	if n.kind != stringNode {
		return
	}
	for _, r := range references(n.text, whole, d.settings.storeNames()) {
		switch {
		case (r.kind == secretReference || r.kind == storeReference) && !r.valid():
			d.report(n.start, CodeVaultReference, "name a key of the vault; it has letters, digits, _, . and -",
				"%s has a reference to a secret without a valid key", key)
		case r.kind == secretReference, r.kind == storeReference:
			d.secrets = append(d.secrets, SecretUse{
				Server: d.entry.name, Key: r.name, Field: key, Position: d.entry.src.position(n.start),
			})
			if strings.HasPrefix(key, "args[") {
				d.report(n.start, CodeSecretArgument, "hand it over in env, if the server takes it from there",
					"%s holds a secret, and every user of the machine can read the arguments of a process", key)
			}
		case r.kind == nestedReference:
			d.report(n.start, CodeExpandNested, "write the default as it is to be",
				"%s has a reference in the default of ${%s}", key, r.name)
		case r.kind == brokenReference:
			d.report(n.start, CodeExpandLiteral,
				"write ${NAME}, ${NAME:-default}, ${env:NAME} or ${vault:KEY}, or $${ for a literal ${",
				"%s holds %q, which is not a reference and stays as it is", key, r.name)
		}
	}
	if name := clientVariable.FindString(n.text); name != "" {
		d.report(n.start, CodeExpandClient, "write the path itself",
			"%s holds %s, which an editor sets; garra takes it from its own environment", key, name)
	}
}

// checkEffects reports fields that this version accepts and does not act on.
func (d *decoder) checkEffects() {
	s := d.server
	for _, f := range d.table {
		m, ok := d.usable(f.name)
		if !ok || f.noEffect == nil || d.misplaced(&f) { // that was reported, and is enough
			continue
		}
		if consequence := f.noEffect(s); consequence != "" {
			d.report(m.keyStart, CodeFieldNoEffect, "don't rely on it yet",
				"%s has no effect in this version: %s", m.key, consequence)
		}
	}
}
