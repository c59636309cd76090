// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// corpusServer returns a server of a case of the corpus.
func corpusServer(t *testing.T, dir, name string) *Server {
	t.Helper()
	s, ok := loadCase(t, filepath.Join("testdata/good", dir)).Server(name)
	if !ok {
		t.Fatalf("%s has no server %s", dir, name)
	}
	return s
}

// ignorePlace leaves out what depends on where an entry stands.
var ignorePlace = cmp.Options{
	cmpopts.IgnoreUnexported(Server{}),
	cmpopts.IgnoreFields(Server{}, "Origin"),
}

func TestEveryField(t *testing.T) {
	want := &Server{
		Name:                "s",
		Transport:           Stdio,
		Command:             "npx",
		Args:                []string{"-y", "server"},
		Cwd:                 "work",
		Env:                 map[string]string{"A": "1"},
		EnvFile:             ".env",
		Enabled:             false,
		Timeout:             30 * time.Second,
		CallTimeout:         500 * time.Millisecond,
		MaxRestarts:         0,
		RestartDelay:        2 * time.Second,
		Start:               StartLazy,
		IdleStop:            10 * time.Minute,
		Sharing:             SharingSession,
		MemoryLimitMB:       512,
		AddressSpaceLimitMB: 4096,
		CPULimit:            1.5,
		MaxProcesses:        50,
		MaxOpenFiles:        256,
		Tools:               ToolsAll,
		AllowedTools:        []string{"read_*", "{list,search}_files"},
		DeniedTools:         []string{"write_*"},
		ConfirmTools:        []string{"move_file"},
		InheritEnv:          true,
		ForwardRoots:        true,
		Era:                 EraAuto,
		Sandbox: Sandbox{
			Asked:   true,
			Mode:    SandboxRequired,
			Read:    []string{"/usr"},
			Write:   []string{"~/x"},
			Network: Network{Mode: NetworkListed, Hosts: []string{"example.com:443", "[::1]:80"}},
		},
	}
	for _, dir := range []string{"all-fields-camel-json", "all-fields-snake-yaml"} {
		if diff := cmp.Diff(want, corpusServer(t, dir, "s"), ignorePlace); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
	}
	camel, snake := corpusServer(t, "all-fields-camel-yaml", "s"), corpusServer(t, "all-fields-snake-json", "s")
	if diff := cmp.Diff(camel, snake, ignorePlace); diff != "" {
		t.Errorf("-camelCase in YAML +snake_case in JSON:\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	want := &Server{
		Name: "time", Transport: Stdio, Command: "uvx", Args: []string{"mcp-server-time"},
		Enabled: true, Timeout: 60 * time.Second, CallTimeout: 300 * time.Second,
		MaxRestarts: 5, RestartDelay: 5 * time.Second,
		Start: StartEager, Sharing: SharingShared, Tools: ToolsAll, Era: EraAuto,
		Sandbox: Sandbox{Mode: SandboxBestEffort},
	}
	for _, dir := range []string{"minimal-json", "minimal-yaml"} {
		if diff := cmp.Diff(want, corpusServer(t, dir, "time"), ignorePlace); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
	}
}

func TestRemoteServers(t *testing.T) {
	config := loadCase(t, "testdata/good/remote-servers")
	for name, want := range map[string]Transport{
		"plain": HTTP, "typed": HTTP, "events": SSE, "kebab": HTTP, "camel": HTTP,
		"windsurf": HTTP, "gemini": HTTP, "expanded": HTTP, "garraia": HTTP,
	} {
		if s, ok := config.Server(name); !ok || s.Transport != want || s.URL == "" {
			t.Errorf("%s is %+v, want a server over %s", name, s, want)
		}
	}
	plain, _ := config.Server("plain")
	if got := plain.Headers["Authorization"]; got != "Bearer ${TOKEN}" {
		t.Errorf("the header is %q", got)
	}
}

func TestTextStaysAsWritten(t *testing.T) {
	fromYAML := corpusServer(t, "yaml-text-stays-text", "s")
	wantEnv := map[string]string{
		"PIN": "0123", "VERSION": "1.10", "FLAG": "true", "BIG": "123456789012345678901234567890",
		"DATE": "2026-01-02", "ON": "on", "TILDE": "~", "OCTAL": "0o17",
	}
	if diff := cmp.Diff(wantEnv, fromYAML.Env); diff != "" {
		t.Errorf("env: -want +got:\n%s", diff)
	}
	wantArgs := []string{"8080", "0x1F", "1_000", "yes", "2026-01-02", "1.50"}
	if diff := cmp.Diff(wantArgs, fromYAML.Args); diff != "" {
		t.Errorf("args: -want +got:\n%s", diff)
	}
	fromJSON := corpusServer(t, "json-text-stays-text", "s")
	if diff := cmp.Diff([]string{"8080", "1.50", "true", "1e3"}, fromJSON.Args); diff != "" {
		t.Errorf("args of mcp.json: -want +got:\n%s", diff)
	}
	if got := fromJSON.Env["BIG"]; got != "123456789012345678901234567890" {
		t.Errorf("BIG is %q", got)
	}
	blocks := corpusServer(t, "yaml-block-scalars", "s")
	wantArgs = []string{"one\ntwo\n", "folded text", "plain text over lines"}
	if diff := cmp.Diff(wantArgs, blocks.Args); diff != "" {
		t.Errorf("args: -want +got:\n%s", diff)
	}
	if got := blocks.Env["CERT"]; got != "keep\n\n" {
		t.Errorf("CERT is %q", got)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	config := loadCase(t, "testdata/good/yaml-anchors-and-merge")
	for name, want := range map[string]Server{
		"one":   {Args: []string{"one"}, Env: map[string]string{"A": "1", "B": "2"}},
		"two":   {Args: []string{"two"}, Env: map[string]string{"A": "1", "B": "3"}},
		"three": {Env: map[string]string{"A": "1", "B": "2"}},
	} {
		s, ok := config.Server(name)
		if !ok {
			t.Fatalf("no server %s", name)
		}
		got := Server{Args: s.Args, Env: s.Env}
		if diff := cmp.Diff(want, got, ignorePlace); diff != "" || s.Command != "npx" {
			t.Errorf("%s runs %q: -want +got:\n%s", name, s.Command, diff)
		}
	}
	one, _ := config.Server("one")
	if got := one.Position("env.A"); got.Line != 3 {
		t.Errorf("a merged value stands at %v, want line 3", got)
	}
}

func TestPosition(t *testing.T) {
	s := corpusServer(t, "all-fields-camel-json", "s")
	for field, want := range map[string]Position{
		"command":            {"mcp.json", 5, 18},
		"args":               {"mcp.json", 6, 15},
		"args[1]":            {"mcp.json", 6, 22},
		"env":                {"mcp.json", 8, 14},
		"env.A":              {"mcp.json", 8, 20},
		"envFile":            {"mcp.json", 9, 18},
		"env_file":           {"mcp.json", 9, 18},
		"enabled":            {"mcp.json", 10, 19},
		"timeout":            {"mcp.json", 11, 22},
		"allowed_tools[1]":   {"mcp.json", 20, 34},
		"sandbox.mode":       {"mcp.json", 25, 27},
		"sandbox.read[0]":    {"mcp.json", 25, 48},
		"sandbox.network[1]": {"mcp.json", 25, 106},
		"url":                s.Origin,
		"env.B":              s.Origin,
		"nonsense":           s.Origin,
	} {
		if got := s.Position(field); got != want {
			t.Errorf("%s stands at %+v, want %+v", field, got, want)
		}
	}
	if got := s.Origin.String(); got != "mcp.json:3" {
		t.Errorf("the entry stands at %s", got)
	}
	if got := (Position{File: "mcp.json"}).String(); got != "mcp.json" {
		t.Errorf("a whole file is %s", got)
	}
}

// TestNeedsRestart changes each field and compares with what the table says of it.
func TestNeedsRestart(t *testing.T) {
	restarts := map[string]bool{}
	for _, f := range fields() {
		a, b := NewServer("s", Position{}, Settings{}), NewServer("s", Position{Line: 5}, Settings{})
		if a.NeedsRestart(b) {
			t.Fatal("equal servers need a restart")
		}
		value := reflect.ValueOf(f.bind(b)).Elem()
		switch value.Kind() {
		case reflect.String:
			value.SetString("changed")
		case reflect.Bool:
			value.SetBool(!value.Bool())
		case reflect.Int, reflect.Int64:
			value.SetInt(value.Int() + 1)
		case reflect.Float64:
			value.SetFloat(7)
		case reflect.Slice:
			value.Set(reflect.ValueOf([]string{"changed"}))
		case reflect.Map:
			value.Set(reflect.ValueOf(map[string]string{"A": "changed"}))
		default:
			if f.name == "oauth" {
				value.Set(reflect.ValueOf(OAuth{ClientID: "changed"}))
				break
			}
			value.Set(reflect.ValueOf(Sandbox{Mode: SandboxOff}))
		}
		restarts[f.name] = a.NeedsRestart(b)
	}
	want := map[string]bool{
		"type": true, "command": true, "args": true, "cwd": true, "env": true, "envFile": true,
		"url": true, "headers": true, "disabled": false, "timeoutSecs": false,
		"callTimeoutSecs": false, "memoryLimitMb": true, "addressSpaceLimitMb": true,
		"cpuLimit": true, "maxProcesses": true, "maxOpenFiles": true, "maxRestarts": false,
		"restartDelaySecs": false, "allowedTools": false, "deniedTools": false,
		"confirmTools": false, "notSecret": true, "inheritEnv": true,
		"forwardRoots": true, "sandbox": true, "oauth": true,
		"protocolEra": true, "allowPrivateAddresses": true,
		"start": false, "idleStopSecs": false, "sharing": true, "tools": false,
	}
	if diff := cmp.Diff(want, restarts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	digest := func(name, text string) string {
		t.Helper()
		s, ok := loadText(t, name, text).Server("s")
		if !ok {
			t.Fatalf("no server in %s", text)
		}
		return s.Digest()
	}
	const base = `{"mcpServers": {"s": {"command": "x", "args": ["a"]}}}`
	same := []string{
		`{"mcpServers": {"s": {"command": "x", "args": ["a"]}, "t": {"command": "y"}}}`,
		"// comment\n{\"mcpServers\":\n\n{\"s\": {\"command\": \"x\", \"args\": [\"a\"]}}}",
	}
	other := []string{
		`{"mcpServers": {"s": {"command": "x", "args": ["b"]}}}`,
		`{"mcpServers": {"s": {"command": "x", "args": ["a"] }}}`,
		`{"mcpServers": {"s": {"command": "x", /* note */ "args": ["a"]}}}`,
		`{"mcpServers": {"s": {"args": ["a"], "command": "x"}}}`,
	}
	for _, text := range same {
		if digest(ServersFile, text) != digest(ServersFile, base) {
			t.Errorf("the digest changed with %s", text)
		}
	}
	for _, text := range other {
		if digest(ServersFile, text) == digest(ServersFile, base) {
			t.Errorf("the digest did not change with %s", text)
		}
	}
	yaml := digest(GeneralFile, "b: &b {cwd: x}\nmcp:\n  s:\n    <<: *b\n    command: c\n  t: {command: y}\n")
	if digest(GeneralFile, "b: &b {cwd: y}\nmcp:\n  s:\n    <<: *b\n    command: c\n  t: {command: y}\n") == yaml {
		t.Error("the digest did not change with a merged value")
	}
	if digest(GeneralFile, "\n\nb: &b {cwd: x}\nmcp:\n  s:\n    <<: *b\n    command: c\n  t: {command: z}\n") != yaml {
		t.Error("the digest changed with another entry")
	}
}

func TestSettings(t *testing.T) {
	defaults := Settings{ListWait: 10 * time.Second, DefaultTimeout: 60 * time.Second, Tools: ToolsAll}
	search := defaults
	search.Tools = ToolsSearch
	for _, tt := range []struct {
		text string
		want Settings
	}{
		{"", defaults},
		{
			"tools: {listWaitSecs: 0, mode: search}\ntimeouts: {mcp: {default_secs: 20}}\n" +
				"agent: {tool_confirmation_enabled: true}\napprovals: {require: token}\n",
			Settings{
				Tools: ToolsSearch, DefaultTimeout: 20 * time.Second, ToolConfirmation: true, ApprovalProof: "token",
			},
		},
		{
			"tools: {list_wait_secs: -5}\ntimeouts: {mcp: {default_secs: soon}}\n" +
				"agent: {tool_confirmation_enabled: 1}\n",
			defaults,
		},
		{"timeouts: 5\nagent: [x]\n", defaults},
		{"tools: search\n", search},
		{"tools: {mode: few}\n", defaults},
	} {
		if diff := cmp.Diff(tt.want, loadText(t, GeneralFile, tt.text).Settings); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.text, diff)
		}
	}
	config := loadText(t, GeneralFile, lines(
		"timeouts: {mcp: {default_secs: 20}}",
		"mcp: {a: {command: x}, b: {command: x, timeout: 5}}",
	))
	for name, want := range map[string]time.Duration{"a": 20 * time.Second, "b": 5 * time.Second} {
		if s, _ := config.Server(name); s.Timeout != want {
			t.Errorf("%s has timeout %v, want %v", name, s.Timeout, want)
		}
	}
}

func TestVaultAvailable(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, ServersFile),
		`{"mcpServers": {"s": {"command": "x", "env": {"A": "vault:has", "B": "x ${vault:lacks}"}}}}`)
	config, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	findings := config.Unavailable(func(server, key string) error {
		if server == "s" && key == "has" {
			return nil
		}
		return errors.New("the vault lacks it")
	})
	const want = `"lacks", which is not available: the vault lacks it`
	if len(findings) != 1 || !strings.Contains(findings[0].Message, want) {
		t.Errorf("findings %v, want one for the key that lacks", findings)
	}
	if got := config.UsersOf("has"); !slices.Equal(got, []string{"s"}) {
		t.Errorf("it is used by %v", got)
	}
}

func TestUnparsable(t *testing.T) {
	for dir, want := range map[string][]string{
		"testdata/bad/one-file-broken": {ServersFile},
		"testdata/bad/pipe-in-place":   {GeneralFile},
		"testdata/bad/json-null":       {ServersFile},
		"testdata/bad/dangling-link":   {ServersFile},
		"testdata/bad/section-is-list": nil,
		"testdata/good/empty-yaml":     nil,
	} {
		var got []string
		for _, path := range loadCase(t, dir).Unparsable() {
			got = append(got, filepath.Base(path))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
	}
}

func TestLoadFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	config, err := Load(missing)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Findings) != 1 || config.Findings[0].Code != CodeConfigNone {
		t.Errorf("a missing folder has findings %v", config.Findings)
	}
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	if _, err := Load(file); err == nil {
		t.Error("a file was loaded as a folder")
	}
	for _, f := range config.Files {
		if f.Exists || f.Parsed || f.Hash != "" {
			t.Errorf("a missing file is %+v", f)
		}
	}
}

// TestFindingJSON pins the form that scripts read.
func TestFindingJSON(t *testing.T) {
	config := loadText(t, ServersFile, "{\"mcpServers\": {\"s\": {\n\"comand\": 1, \"command\": \"x\"}}}")
	got, err := json.Marshal(config.Findings)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"severity":"warning","code":"key.unknown","file":"mcp.json","line":2,"column":1,` +
		`"server":"s","message":"unknown key \"comand\"","fix":"did you mean \"command\"?"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const line = `mcp.json:2:1: warning: server "s": unknown key "comand" (did you mean "command"?) [key.unknown]`
	if diff := cmp.Diff(line, config.Findings[0].String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFindingsKeepSecrets puts a secret into every value of every field and checks that no
// finding repeats it.
func TestFindingsKeepSecrets(t *testing.T) {
	const secret = "hunter2secret"
	forms := []string{
		`"%s"`, `["%s"]`, `{"A": "%s"}`, `"${env:%s"`, `"vault: %s"`, `"%s\u0000"`,
		`"https://u:%s@exa mple"`, `{"A": "%s\n"}`, `"${input:%s}"`, `"${%s"`, `{"network": ["%s"]}`,
	}
	visible := map[string]bool{
		"type": true, "start": true, "sharing": true, "sandbox": true, "protocolEra": true, "tools": true,
	}
	for _, f := range fields() {
		for _, form := range forms {
			if visible[f.name] || f.format == toolPatterns {
				continue // words and names, which messages do show
			}
			for _, target := range []string{`"command": "x"`, `"url": "https://example.com"`} {
				value := fmt.Sprintf(form, secret)
				text := `{"mcpServers": {"s": {` + target + `, "` + f.keys()[0] + `": ` + value + `}}}`
				found, _ := json.Marshal(loadText(t, ServersFile, text).Findings)
				if strings.Contains(string(found), secret) {
					t.Errorf("%s: a finding shows the value: %s", text, found)
				}
			}
		}
	}
	for name, text := range map[string]string{
		ServersFile: `{"mcpServers": {"s": {"env": {"A": "` + secret + `\x"}}}}`,
		GeneralFile: "mcp:\n  s:\n    env: {A: \"" + secret + "\\z\"}\n",
	} {
		found, _ := json.Marshal(loadText(t, name, text).Findings)
		if len(found) < 10 || strings.Contains(string(found), secret) {
			t.Errorf("findings of a broken file: %s", found)
		}
	}
}

// TestFieldTable checks what the table of fields promises its readers.
func TestFieldTable(t *testing.T) {
	seen := map[string]string{}
	for _, f := range fields() {
		if f.doc == "" || !strings.HasSuffix(f.doc, ".") {
			t.Errorf("%s has no description", f.name)
		}
		for _, key := range f.keys() {
			if other, ok := seen[key]; ok {
				t.Errorf("%s is a key of both %s and %s", key, other, f.name)
			}
			seen[key] = f.name
			if foreignKey(key) != "" {
				t.Errorf("%s is a field and foreign", key)
			}
		}
	}
}

func TestLeftOut(t *testing.T) {
	config := loadCase(t, "testdata/bad/several-errors")
	all := config.Entry
	for name, want := range map[string]struct{ message, fix, broken, usable string }{
		"all":     {"mcp.json:5:29: args[1] must be a string, not a map", "write one string", "env", "command"},
		"command": {"mcp.json:11:28: command must be a string, not a number", "put it in quotes", "command", "cwd"},
		"type":    {`mcp.json:12:22: type "x" is not known`, "write stdio, http or sse", "type", "url"},
		"list":    {"mcp.json:13:49: allowedTools must be", "write it in brackets", "allowed_tools", "command"},
	} {
		s, ok := all(name)
		if !ok {
			t.Fatalf("%s is not there", name)
		}
		message, fix := s.Invalid()
		if !strings.HasPrefix(message, "its entry can't be used: "+want.message) || !strings.HasPrefix(fix, want.fix) {
			t.Errorf("%s: %s; %s", name, message, fix)
		}
		if !s.Broken(want.broken) || s.Broken(want.usable) || len(s.AllowedTools) > 0 {
			t.Errorf("%s: broken %v", name, s.broken)
		}
	}
	if len(config.Servers) > 0 || len(config.Entries()) != 4 {
		t.Errorf("servers %v", config.Servers)
	}

	twice := loadCase(t, "testdata/bad/duplicate-server")
	a, ok := twice.Entry("a")
	if message, _ := a.Invalid(); !ok || !strings.Contains(message, "mcp.json:3:3: mcpServers.a is there twice") {
		t.Errorf("%v %s", ok, message)
	}
	valid := corpusServer(t, "minimal-json", "time")
	if message, fix := valid.Invalid(); message+fix != "" || valid.Broken("command") {
		t.Errorf("a valid entry: %s %s", message, fix)
	}
}
