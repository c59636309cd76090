// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"slices"
	"strings"
)

// target says which servers a field is for.
type target uint8

const (
	anyTarget    target = iota
	stdioTarget         // only servers that garra runs
	remoteTarget        // only servers at a URL
)

// format says what the text of a field must look like, beyond its type.
type format uint8

const (
	freeText format = iota
	envMap
	headerMap
	toolPatterns
)

// field is one key of a server entry.
type field struct {
	name     string   // as documented for mcp.json
	snake    string   // as documented for config.yml
	synonyms []string // further spellings
	// opposite is a flag's other name with the opposite meaning.
	opposite string

	// bind returns a pointer to the place in the model; its type says what values there are.
	bind    func(*Server) any
	min     float64 // of numbers, in the field's own unit
	max     float64
	choices []string // of text
	format  format
	target  target

	// process is set when a running process was built from the field.
	process bool
	// expands is set when references in its text are expanded when the server starts.
	expands bool
	// noEffect returns why a value has no effect in this version, or "". Nil means it has.
	noEffect func(*Server) string

	doc string // one line for the JSON Schema
}

// keys returns every spelling of the field, the documented ones first.
func (f *field) keys() []string {
	keys := []string{f.name}
	for _, key := range append([]string{f.snake}, f.synonyms...) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if f.opposite != "" {
		keys = append(keys, f.opposite)
	}
	return keys
}

// spelling returns the documented name of the field for a file.
func (f *field) spelling(file string) string {
	if isYAML(file) {
		return f.snake
	}
	return f.name
}

// The largest values that make sense. They catch slips and other units, not ambition.
const (
	maxSeconds   = 7 * 24 * 3600 // a week
	maxMemoryMB  = 16 << 20      // 16 TiB
	maxAddressMB = 128 << 20     // 128 TiB, what a process on x86-64 can address
	maxCores     = 1024
	maxProcesses = 1 << 22    // Linux' PID_MAX_LIMIT, see proc_sys_kernel(5)
	maxFiles     = 1073741816 // Linux' sysctl_nr_open_max
)

// fields returns the table of all fields. To add a field, add it to [Server] and here.
func fields() []field {
	return []field{
		{
			name: "type", snake: "type", synonyms: []string{"transport", "transportType"},
			bind: func(s *Server) any { return &s.Transport }, process: true,
			doc: "How garra speaks to the server; taken from command or url when absent.",
		},
		{
			name: "command", snake: "command", target: stdioTarget, process: true, expands: true,
			bind: func(s *Server) any { return &s.Command },
			doc:  "The program to run, without a shell, looked up in the child's PATH.",
		},
		{
			name: "args", snake: "args", target: stdioTarget, process: true, expands: true,
			bind: func(s *Server) any { return &s.Args },
			doc:  "The arguments of the program.",
		},
		{
			name: "cwd", snake: "cwd", target: stdioTarget, process: true, expands: true,
			bind: func(s *Server) any { return &s.Cwd },
			doc:  "The folder to run in, relative to the configuration folder.",
		},
		{
			name: "env", snake: "env", target: stdioTarget, process: true, expands: true,
			bind: func(s *Server) any { return &s.Env }, format: envMap,
			doc: "Environment variables of the child, on top of the allowlist.",
		},
		{
			name: "envFile", snake: "env_file", target: stdioTarget, process: true, expands: true,
			bind: func(s *Server) any { return &s.EnvFile },
			doc:  "A dotenv file below env, relative to the configuration folder.",
		},
		{
			name: "url", snake: "url", target: remoteTarget, process: true, expands: true,
			synonyms: []string{"serverUrl", "server_url", "httpUrl", "http_url"},
			bind:     func(s *Server) any { return &s.URL },
			doc:      "The address of a remote server.",
		},
		{
			name: "headers", snake: "headers", target: remoteTarget, process: true, expands: true,
			bind: func(s *Server) any { return &s.Headers }, format: headerMap,
			doc: "HTTP headers that are sent to a remote server.",
		},
		{
			name: "allowPrivateAddresses", snake: "allow_private_addresses", target: remoteTarget, process: true,
			bind: func(s *Server) any { return &s.AllowPrivateAddresses },
			doc:  "Lets the url's host be resolved to an address that is not on the internet.",
		},
		{
			name: "oauth", snake: "oauth", target: remoteTarget, process: true, expands: true,
			bind: func(s *Server) any { return &s.OAuth },
			doc:  "Who garra is to the authorization server of a remote server.",
		},
		{
			name: "disabled", snake: "disabled", opposite: "enabled",
			bind: func(s *Server) any { return &s.Enabled },
			doc:  "Keeps the server from being started; the opposite of enabled.",
		},
		{
			name: "timeoutSecs", snake: "timeout", synonyms: []string{"timeout_secs"},
			bind: func(s *Server) any { return &s.Timeout }, min: 0.001, max: maxSeconds,
			doc: "Seconds that the server has to become ready.",
		},
		{
			name: "callTimeoutSecs", snake: "call_timeout",
			synonyms: []string{"call_timeout_secs", "callTimeout"},
			bind:     func(s *Server) any { return &s.CallTimeout }, min: 0.001, max: maxSeconds,
			doc: "Seconds that one tool call may take; progress starts them again.",
		},
		{
			name: "memoryLimitMb", snake: "memory_limit_mb", target: stdioTarget, process: true,
			bind: func(s *Server) any { return &s.MemoryLimitMB }, min: 1, max: maxMemoryMB,
			doc: "Megabytes of memory that the server's process tree may use.",
		},
		{
			name: "addressSpaceLimitMb", snake: "address_space_limit_mb", target: stdioTarget,
			bind: func(s *Server) any { return &s.AddressSpaceLimitMB }, process: true,
			min: 1, max: maxAddressMB,
			doc: "Megabytes of address space of each of its processes (RLIMIT_AS); rarely what is meant.",
		},
		{
			name: "cpuLimit", snake: "cpu_limit", target: stdioTarget, process: true,
			bind: func(s *Server) any { return &s.CPULimit }, min: 0.01, max: maxCores,
			doc: "Processor cores that the server may use.",
		},
		{
			name: "maxProcesses", snake: "max_processes", target: stdioTarget, process: true,
			bind: func(s *Server) any { return &s.MaxProcesses }, min: 1, max: maxProcesses,
			doc: "Processes and threads that the server's process tree may have.",
		},
		{
			name: "maxOpenFiles", snake: "max_open_files", target: stdioTarget, process: true,
			bind: func(s *Server) any { return &s.MaxOpenFiles }, min: 8, max: maxFiles,
			doc: "Files that each process of the server may have open.",
		},
		{
			name: "maxRestarts", snake: "max_restarts",
			bind: func(s *Server) any { return &s.MaxRestarts }, min: 0, max: 1_000_000,
			doc: "Restarts in a row before the server is parked; 0 means never restart.",
		},
		{
			name: "restartDelaySecs", snake: "restart_delay_secs",
			bind: func(s *Server) any { return &s.RestartDelay }, min: 0.1, max: 300,
			doc: "Seconds before the first restart; later ones wait longer.",
		},
		{
			name: "tools", snake: "tools",
			bind:    func(s *Server) any { return &s.Tools },
			choices: []string{string(ToolsAll), string(ToolsSearch)},
			doc:     "Whether clients of all servers get its tools in their list, or find them by asking.",
		},
		{
			name: "allowedTools", snake: "allowed_tools",
			synonyms: []string{"includeTools", "include_tools"}, format: toolPatterns,
			bind: func(s *Server) any { return &s.AllowedTools },
			doc:  "Names or globs of the tools that may be used; absent or empty means all.",
		},
		{
			name: "deniedTools", snake: "denied_tools", format: toolPatterns,
			synonyms: []string{"excludeTools", "exclude_tools", "disabledTools", "disabled_tools"},
			bind:     func(s *Server) any { return &s.DeniedTools },
			doc:      "Names or globs of the tools that may not be used, whatever is allowed.",
		},
		{
			name: "confirmTools", snake: "confirm_tools", format: toolPatterns,
			bind:     func(s *Server) any { return &s.ConfirmTools },
			noEffect: notYet("nobody is asked before a call"),
			doc:      "Names or globs of the tools that a person confirms at each call.",
		},
		{
			name: "notSecret", snake: "not_secret", process: true,
			bind: func(s *Server) any { return &s.NotSecret },
			doc:  "Names of variables and headers, or args[2] and url, whose values are no secrets.",
		},
		{
			name: "inheritEnv", snake: "inherit_env", target: stdioTarget, process: true,
			bind: func(s *Server) any { return &s.InheritEnv },
			doc:  "Gives the child garra's whole environment.",
		},
		{
			name: "forwardRoots", snake: "forward_roots", process: true,
			bind: func(s *Server) any { return &s.ForwardRoots },
			doc:  "Forwards the roots that the client declares to the server.",
		},
		{
			name: "protocolEra", snake: "protocol_era", process: true,
			bind:    func(s *Server) any { return &s.Era },
			choices: []string{string(EraAuto), string(EraLegacy), string(EraModern)}, noEffect: onlyGreeted,
			doc: "How the server is spoken to: with a handshake (legacy), without (modern), or as it answers.",
		},
		{
			name: "sandbox", snake: "sandbox", target: stdioTarget, process: true,
			bind: func(s *Server) any { return &s.Sandbox },
			doc:  "What the server may read, write and connect to.",
		},
		{
			name: "start", snake: "start", target: stdioTarget,
			bind:    func(s *Server) any { return &s.Start },
			choices: []string{string(StartEager), string(StartLazy)},
			doc:     "When the server is started: with garra, or when it is first needed.",
		},
		{
			name: "idleStopSecs", snake: "idle_stop_secs", target: stdioTarget,
			bind: func(s *Server) any { return &s.IdleStop }, min: 1, max: maxSeconds,
			doc: "Seconds without a call after which a lazy server, or a client's own, is stopped.",
		},
		{
			name: "sharing", snake: "sharing", target: stdioTarget, process: true,
			bind:    func(s *Server) any { return &s.Sharing },
			choices: []string{string(SharingShared), string(SharingSession)},
			doc:     "Whether clients share one child or have one per session.",
		},
	}
}

// notYet is a noEffect of a field that has none whatever its value is.
func notYet(consequence string) func(*Server) string {
	return func(*Server) string { return consequence }
}

// onlyGreeted is the noEffect of protocolEra: HTTP+SSE is older than the other era.
func onlyGreeted(s *Server) string {
	if s.Transport == SSE && s.Era == EraModern {
		return "servers of the older HTTP+SSE are greeted with a handshake"
	}
	return ""
}

// transportOf returns the transport that a word names, in any of its spellings.
func transportOf(word string) (Transport, bool) {
	switch word {
	case "stdio":
		return Stdio, true
	case "http", "streamable-http", "streamableHttp", "streamable_http", "streamablehttp":
		return HTTP, true
	case "sse":
		return SSE, true
	}
	return "", false
}

// transportWords returns every word that transportOf knows.
func transportWords() []string {
	return []string{
		"stdio", "http", "sse",
		"streamable-http", "streamableHttp", "streamable_http", "streamablehttp",
	}
}

// foreignKey returns what a key means that other clients know and garra does not, or "".
func foreignKey(key string) string {
	switch key {
	case "autoApprove", "alwaysAllow", "trust", "alwaysApprove":
		return "it lets a client call tools without asking, which is not a server's entry to say"
	case "auth", "authProviderType", "headersHelper", "oauth_resource":
		return "it tells another client how to sign in to a remote server"
	case "description", "title", "name", "icon", "gallery", "version", "$schema", "metadata":
		return "it describes the server to people"
	case "dev", "sandboxEnabled", "supportsParallelToolCalls", "required", "source", "instructions":
		return "it is a setting of another client"
	}
	return ""
}

// canonicalPath returns a field path with the documented camelCase name first, so that
// "env_file" and "envFile" are one.
func canonicalPath(path string) string {
	key, rest := path, ""
	if i := strings.IndexAny(path, ".["); i >= 0 {
		key, rest = path[:i], path[i:]
	}
	if f := fieldOf(key); f != nil {
		key = f.name
	}
	return key + rest
}

// fieldOf returns the field that has the key as one of its spellings, or nil.
func fieldOf(key string) *field {
	for _, f := range fields() {
		if slices.Contains(f.keys(), key) {
			return &f
		}
	}
	return nil
}
