// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tailscale/hujson"
)

// resolveSchema returns the schema ready to validate, as a reader of the text would have it.
func resolveSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Schema != schemaDialect {
		t.Errorf("$schema is %q", schema.Schema)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// decodeJSONC reads JSON with comments the way a validator would see it.
func decodeJSONC(t *testing.T, text []byte) any {
	t.Helper()
	standard, err := hujson.Standardize(append([]byte(strings.TrimPrefix(string(text), bom)), '\n'))
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(standard, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestSchemaAcceptsGoodCorpus validates each good mcp.json.
func TestSchemaAcceptsGoodCorpus(t *testing.T) {
	schema := resolveSchema(t)
	paths, err := filepath.Glob("testdata/good/*/mcp.json")
	if err != nil || len(paths) < 20 {
		t.Fatalf("only %d files: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(decodeJSONC(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaAgreesWithLoad checks for single values of each field, and of each of its
// spellings, that the schema and the loader judge them alike.
func TestSchemaAgreesWithLoad(t *testing.T) {
	schema := resolveSchema(t)
	values := []string{
		`null`, `true`, `"x"`, `""`, `0`, `1`, `-1`, `0.5`, `300`, `1e9`, `[]`, `["a"]`, `[1]`, `[null]`,
		`[["a"]]`, `{}`, `{"A": "1"}`, `{"A": 1}`, `{"A": null}`, `{"A": []}`, `{"": "1"}`, `{"A=": "1"}`,
		`"stdio"`, `"http"`, `"eager"`, `"lazy"`, `"session"`, `{"mode": "off"}`, `{"mode": "x"}`,
		`{"read": ["/"]}`, `{"network": "all"}`, `{"network": ["a:1"]}`, `{"network": ["a"]}`,
	}
	for _, f := range fields() {
		if f.name == "command" || f.name == "url" || f.name == "type" {
			continue // whether these are right depends on each other
		}
		for _, key := range f.keys() {
			for _, value := range values {
				text := `{"mcpServers": {"s": {"command": "c", "` + key + `": ` + value + `}}}`
				if f.target == remoteTarget {
					text = strings.Replace(text, `"command": "c"`, `"url": "https://example.com"`, 1)
				}
				loaded := !slices.ContainsFunc(loadText(t, ServersFile, text).Findings, func(found Finding) bool {
					return found.Severity == Error && found.Code != CodeToolsBadPattern
				})
				err := schema.Validate(decodeJSONC(t, []byte(text)))
				if loaded != (err == nil) {
					t.Errorf("%s: %s: loaded %v, schema says %v", key, value, loaded, err)
				}
			}
		}
	}
}

func TestSchemaRefusesBadEntries(t *testing.T) {
	schema := resolveSchema(t)
	for _, text := range []string{
		`[]`,
		`{"mcpServers": []}`,
		`{"mcpServers": {"s": "npx"}}`,
		`{"mcpServers": {"s": {}}}`,
		`{"mcpServers": {"-s": {"command": "x"}}}`,
		`{"mcpServers": {"s": {"command": ""}}}`,
		`{"mcpServers": {"s": {"command": "x", "url": "https://example.com"}}}`,
		`{"mcpServers": {"s": {"command": "x", "type": "ws"}}}`,
	} {
		if err := schema.Validate(decodeJSONC(t, []byte(text))); err == nil {
			t.Errorf("the schema accepts %s", text)
		}
		if loadText(t, ServersFile, text).Findings.Count(Error) == 0 {
			t.Errorf("the loader accepts %s", text)
		}
	}
}

// loadText loads a folder with one file of that text.
func loadText(t testing.TB, name, text string) *Config {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, name), text)
	config, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
