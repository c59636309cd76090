// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// textEdit is an edit of a whole text and what the text becomes.
type textEdit struct {
	name, file, text string
	edit             edit
	want             string
}

func TestEditWholeTexts(t *testing.T) {
	for _, tt := range append(jsonTextEdits(), yamlTextEdits()...) {
		t.Run(tt.file+"/"+tt.name, func(t *testing.T) {
			d := openText(t, tt.file, tt.text)
			if err := tt.edit(d); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(d.Bytes())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func jsonTextEdits() []textEdit {
	return []textEdit{
		{
			"empty map", ServersFile, "{}",
			setServer("a", `{"command":"x"}`),
			`{"mcpServers": {"a": {"command": "x"}}}`,
		},
		{
			"empty section", ServersFile, "{\n\t\"mcpServers\": {}\n}\n", setServer("a", `{"command":"x"}`),
			"{\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t}\n}\n",
		},
		{
			"comment in an empty map", ServersFile, "{\n  // none\n}\n", setServer("a", `{}`),
			"{\n  // none\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
		},
		{
			"servers", ServersFile,
			`{"servers": {"a": {}}}`,
			setField("a", "url", "u"),
			`{"servers": {"a": {"url": "u"}}}`,
		},
		{
			"null section", ServersFile,
			`{"mcpServers": null}`,
			setServer("a", `{}`),
			`{"mcpServers": {"a": {}}}`,
		},
		{
			"null field", ServersFile,
			`{"mcpServers": {"a": {"env": null}}}`,
			setField("a", "env.K", "v"),
			`{"mcpServers": {"a": {"env": {"K": "v"}}}}`,
		},
		{
			"only server", ServersFile,
			`{"mcpServers": {"a": {}}}`,
			removeServer("a"),
			`{"mcpServers": {}}`,
		},
		{
			"comment after comma", ServersFile,
			"{\"mcpServers\": {\n\"a\": {}, // a\n\"b\": {} // b\n}}",
			removeServer("b"),
			"{\"mcpServers\": {\n\"a\": {} // a\n// b\n}}",
		},
		{
			"first of two", ServersFile,
			`{"mcpServers": {"a": {}, "b": {}}}`,
			removeServer("a"),
			`{"mcpServers": {"b": {}}}`,
		},
		{
			"last of two", ServersFile,
			`{"mcpServers": {"a": {}, "b": {}}}`,
			removeServer("b"),
			`{"mcpServers": {"a": {}}}`,
		},
		{
			"opposite flag", ServersFile,
			`{"mcpServers": {"a": {"enabled": true}}}`,
			setField("a", "disabled", true),
			`{"mcpServers": {"a": {"enabled": false}}}`,
		},
		{
			"same flag", ServersFile,
			`{"mcpServers": {"a": {"disabled": true}}}`,
			setField("a", "disabled", false),
			`{"mcpServers": {"a": {"disabled": false}}}`,
		},
		{
			"other spelling", ServersFile,
			`{"mcpServers": {"a": {"timeout": 5}}}`,
			setField("a", "timeoutSecs", 6),
			`{"mcpServers": {"a": {"timeout": 6}}}`,
		},
		{
			"both spellings", ServersFile,
			`{"mcpServers": {"a": {"timeout": 5, "timeoutSecs": 5}}}`,
			setField("a", "timeoutSecs", 6),
			`{"mcpServers": {"a": {"timeout": 6}}}`,
		},
		{
			"all spellings", ServersFile,
			`{"mcpServers": {"a": {"timeout": 5, "x": 1, "timeoutSecs": 5}}}`,
			removeField("a", "timeoutSecs"),
			`{"mcpServers": {"a": {"x": 1}}}`,
		},
		{
			"html", ServersFile,
			`{"mcpServers": {"a": {"cwd": ""}}}`,
			setField("a", "cwd", "<&>"),
			`{"mcpServers": {"a": {"cwd": "<&>"}}}`,
		},
		{
			"dotted name", ServersFile,
			`{"mcpServers": {"a": {"headers": {"X.Y": "1"}}}}`,
			setField("a", "headers.X.Y", "2"),
			`{"mcpServers": {"a": {"headers": {"X.Y": "2"}}}}`,
		},
		{
			"sandbox item", ServersFile,
			`{"mcpServers": {"a": {"sandbox": {"read": ["x"]}}}}`,
			setField("a", "sandbox.read[0]", "y"),
			`{"mcpServers": {"a": {"sandbox": {"read": ["y"]}}}}`,
		},
	}
}

func yamlTextEdits() []textEdit {
	return []textEdit{
		{"nothing", GeneralFile, "", setServer("a", `{"command":"x"}`), "mcp:\n  a:\n    command: x\n"},
		{
			"comments", GeneralFile, "# none yet",
			setServer("a", `{"command":"x"}`),
			"# none yet\nmcp:\n  a:\n    command: x\n",
		},
		{
			"no section", GeneralFile,
			"agent:\n    name: g\n",
			setServer("a", `{"command":"x"}`),
			"agent:\n    name: g\nmcp:\n    a:\n        command: x\n",
		},
		{
			"null section", GeneralFile,
			"mcp: # none\nagent: {}\n",
			setServer("a", `{"command":"x"}`),
			"mcp:\n  a:\n    command: x # none\nagent: {}\n",
		},
		{
			"braces", GeneralFile,
			"{mcp: {a: {command: x}}}\n",
			setField("a", "env.A", "1"),
			"{mcp: {a: {command: x, env: {A: \"1\"}}}}\n",
		},
		{
			"empty braces", GeneralFile,
			"mcp: {}\n",
			setServer("a", `{"command":"x"}`),
			"mcp: {a: {command: x}}\n",
		},
		{
			"trailing comma", GeneralFile,
			"mcp: {a: {command: x,}}\n",
			setField("a", "cwd", "z"),
			"mcp: {a: {command: x, cwd: z}}\n",
		},
		{
			"no line end", GeneralFile,
			"mcp:\n  a:\n    command: x",
			setField("a", "cwd", "z"),
			"mcp:\n  a:\n    command: x\n    cwd: z",
		},
		{
			"null field", GeneralFile,
			"mcp:\n  a:\n    env:\n    command: x\n",
			setField("a", "env.A", "b"),
			"mcp:\n  a:\n    env:\n      A: b\n    command: x\n",
		},
		{
			"only part", GeneralFile,
			"mcp:\n  a:\n    env:\n      A: b\n    command: x\n",
			removeField("a", "env.A"),
			"mcp:\n  a:\n    env: {}\n    command: x\n",
		},
		{
			"only server", GeneralFile,
			"mcp:\n  a:\n    command: x\nagent: {}\n",
			removeServer("a"),
			"mcp: {}\nagent: {}\n",
		},
		{
			"list at the margin", GeneralFile,
			"mcp:\n  a:\n    args:\n    - x\n    - y\n    command: z\n",
			setField("a", "args", []int{1}),
			"mcp:\n  a:\n    args: [1]\n    command: z\n",
		},
		{
			"folded text", GeneralFile,
			"mcp:\n  a:\n    command: >-\n      x\n      y\n    cwd: z\n",
			setField("a", "command", "w"),
			"mcp:\n  a:\n    command: w\n    cwd: z\n",
		},
		{
			"kept lines", GeneralFile,
			"mcp:\n  a:\n    command: |+\n      x\n\n  b:\n    command: y\n",
			removeServer("a"),
			"mcp:\n  b:\n    command: y\n",
		},
		{
			"plain text over lines", GeneralFile,
			"mcp:\n  a:\n    cwd: one\n      two\n\n      three\n    command: x\n",
			setField("a", "cwd", "four"),
			"mcp:\n  a:\n    cwd: four\n    command: x\n",
		},
		{
			"quoted over lines", GeneralFile,
			"mcp:\n  a:\n    cwd: \"one\n      two\"\n    command: x\n",
			setField("a", "cwd", "é\u2028"),
			"mcp:\n  a:\n    cwd: \"é\\u2028\"\n    command: x\n",
		},
		{
			"over a merged value", GeneralFile,
			"b: &b {cwd: x}\nmcp:\n  a:\n    <<: *b\n    command: c\n",
			setField("a", "cwd", "z"),
			"b: &b {cwd: x}\nmcp:\n  a:\n    <<: *b\n    command: c\n    cwd: z\n",
		},
		{
			"alias replaced", GeneralFile,
			"b: &b {A: x}\nmcp:\n  a:\n    env: *b\n",
			setField("a", "env", map[string]string{"B": "z"}),
			"b: &b {A: x}\nmcp:\n  a:\n    env:\n      B: z\n",
		},
		{
			"quoted key", GeneralFile,
			"mcp:\n  'a': {command: x}\n",
			renameServer("a", "1.5"),
			"mcp:\n  \"1.5\": {command: x}\n",
		},
		{
			"document end", GeneralFile,
			"---\nmcp:\n  a: {command: x}\n...\n",
			setServer("b", `{"command":"z"}`),
			"---\nmcp:\n  a: {command: x}\n  b:\n    command: z\n...\n",
		},
	}
}
