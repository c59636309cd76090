// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"slices"
	"strings"
)

// reservers are the programs that reserve far more addresses than they use memory:
// V8, for one, takes gigabytes for each WebAssembly memory, of which fetch has one.
func reservers() []string {
	return []string{
		"node", "nodejs", "npx", "npm", "pnpm", "pnpx", "yarn", "tsx", "ts-node",
		"bun", "bunx", "deno", "java", "javaw", "jbang",
		"chrome", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge", "firefox",
	}
}

// checkAddressSpace reports a limit of addresses that breaks the program.
func (d *decoder) checkAddressSpace() {
	m, ok := d.usable("addressSpaceLimitMb")
	if !ok || d.server.Transport != Stdio {
		return
	}
	program := programName(d.server.Command)
	if !slices.Contains(reservers(), program) {
		return
	}
	d.report(m.keyStart, CodeMemoryAddressSpace, "write memoryLimitMb, which limits what is used",
		"%s counts what %s reserves, which is gigabytes more than it uses, so that it may fail, or fetch in it",
		m.key, program)
}

// programName returns the name of a command without its folder and the endings that
// programs have on Windows.
func programName(command string) string {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\\`)+1:])
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}
