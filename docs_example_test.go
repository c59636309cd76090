// SPDX-License-Identifier: Apache-2.0

package garra_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/policy"
)

// TestExamplesAreJSON wants JSON in the blocks that say that it is.
func TestExamplesAreJSON(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, "README.md") {
		for _, block := range jsonBlocks(readText(t, name)) {
			if !json.Valid([]byte(block)) {
				t.Errorf("%s: not JSON:\n%s", name, block)
			}
		}
	}
}

// TestExamplesOfAdminAPI compares the keys in the examples of docs/admin-api.md
// with what the routes answer.
func TestExamplesOfAdminAPI(t *testing.T) {
	var list struct{ Servers []json.RawMessage }
	decode(t, example(t, "GET /admin/mcp"), &list)
	sameKeys[gateway.ServerInfo](t, list.Servers...)
	sameKeys[gateway.ToolInfo](t, example(t, "GET /admin/mcp/{name}"))
	var logs struct{ Lines []json.RawMessage }
	decode(t, example(t, "GET /admin/mcp/{name}/logs"), &logs)
	sameKeys[adminapi.LogLine](t, logs.Lines...)
	sameKeys[adminapi.RestartResult](t, example(t, "POST /admin/mcp/{name}/{action}"))
	_, event, _ := strings.Cut(section(t, "GET /admin/events"), "\ndata: ")
	event, _, _ = strings.Cut(event, "\n")
	sameKeys[adminapi.Event](t, json.RawMessage(event))
}

// TestExampleOfReadingOnly holds the first example of the README to what is said of
// it: of the tools of that server it allows those that only read.
func TestExampleOfReadingOnly(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, mcpconfig.ServersFile)
	if err := os.WriteFile(file, []byte(jsonBlocks(readText(t, "README.md"))[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := mcpconfig.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, ok := config.Server("files")
	if !ok {
		t.Fatalf("no server files: %v", config.Findings)
	}
	rules, err := policy.Compile(files)
	if err != nil {
		t.Fatal(err)
	}
	for tool, reads := range map[string]bool{
		"read_file": true, "read_text_file": true, "read_media_file": true, "read_multiple_files": true,
		"list_directory": true, "list_directory_with_sizes": true, "list_allowed_directories": true,
		"directory_tree": true, "search_files": true, "get_file_info": true,
		"write_file": false, "edit_file": false, "create_directory": false, "move_file": false,
	} {
		if got := rules.Tool(tool); got.Allowed != reads {
			t.Errorf("%s: allowed %v, want %v", tool, got.Allowed, reads)
		}
	}
}

// sameKeys wants examples that have every key which a T always has, and none
// that it never has.
func sameKeys[T any](t *testing.T, examples ...json.RawMessage) {
	t.Helper()
	var zero T
	text, err := json.Marshal(zero)
	if err != nil {
		t.Fatal(err)
	}
	var always map[string]json.RawMessage
	decode(t, text, &always)
	if len(examples) == 0 {
		t.Errorf("no example of %T", zero)
	}
	for _, text := range examples {
		reader := json.NewDecoder(bytes.NewReader(text))
		reader.DisallowUnknownFields()
		if err := reader.Decode(new(T)); err != nil {
			t.Errorf("no %T: %v in %s", zero, err, text)
		}
		var keys map[string]json.RawMessage
		decode(t, text, &keys)
		for key := range always {
			if _, ok := keys[key]; !ok {
				t.Errorf("the example of %T lacks %s", zero, key)
			}
		}
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// example returns the first block of JSON in a route's section.
func example(t *testing.T, route string) json.RawMessage {
	t.Helper()
	blocks := jsonBlocks(section(t, route))
	if len(blocks) == 0 {
		t.Fatalf("%s has no example", route)
	}
	return json.RawMessage(blocks[0])
}

// section returns what docs/admin-api.md says of a route.
func section(t *testing.T, route string) string {
	t.Helper()
	_, text, ok := strings.Cut(readText(t, apiDoc), "\n## `"+route+"`\n")
	if !ok {
		t.Fatalf("%s has no section for %s", apiDoc, route)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func jsonBlocks(page string) []string {
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}
