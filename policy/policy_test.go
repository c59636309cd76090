// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/garraia/garra/mcpconfig"
)

func rules(t *testing.T, allowed, denied []string) *Rules {
	t.Helper()
	entry := mcpconfig.NewServer("s", mcpconfig.Position{File: "mcp.json", Line: 3}, mcpconfig.Settings{})
	entry.AllowedTools, entry.DeniedTools = allowed, denied
	r, err := Compile(entry)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDecisions(t *testing.T) {
	for _, tt := range []struct {
		allowed, denied []string
		tool            string
		want            bool
		reason          string
	}{
		{nil, nil, "x", true, "no allowedTools"},
		{[]string{}, nil, "x", true, "no allowedTools"},
		{[]string{"read_*"}, nil, "read_file", true, "read_*"},
		{[]string{"read_*"}, nil, "write_file", false, "doesn't have it"},
		{[]string{"*"}, []string{"delete*"}, "delete/all", false, "delete*"},
		{[]string{"a"}, []string{"a"}, "a", false, "deniedTools"},
		{[]string{"{a,b}"}, nil, "b", true, "{a,b}"},
		{nil, []string{"A"}, "a", true, ""}, // names differ by case
		{[]string{"a?"}, nil, "ab", true, "a?"},
		{nil, []string{"*"}, "", false, "*"},
	} {
		d := rules(t, tt.allowed, tt.denied).Tool(tt.tool)
		if d.Allowed != tt.want || !strings.Contains(d.Reason, tt.reason) {
			t.Errorf("allowed %v, denied %v, %q: %+v", tt.allowed, tt.denied, tt.tool, d)
		}
		if tt.denied != nil && !d.Allowed && d.Rule != "mcp.json:3" {
			t.Errorf("the rule's place is %q", d.Rule)
		}
	}
}

// The place of a rule is that of the one item that decided.
func TestRulesHavePlaces(t *testing.T) {
	dir := t.TempDir()
	text := "{\"mcpServers\": {\"s\": {\"command\": \"x\",\n\"allowedTools\": [\n\"a\",\n\"b\"]}}}"
	if err := os.WriteFile(filepath.Join(dir, "mcp.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := mcpconfig.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compile(config.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"a": "mcp.json:3", "b": "mcp.json:4", "c": "mcp.json:2"} {
		if got := r.Tool(tool).Rule; got != want {
			t.Errorf("the rule for %s is at %s, want %s", tool, got, want)
		}
	}
}

func TestBadPatternsAreRefused(t *testing.T) {
	entry := mcpconfig.NewServer("s", mcpconfig.Position{}, mcpconfig.Settings{})
	entry.DeniedTools = []string{"odd[name"}
	if _, err := Compile(entry); err == nil || !strings.Contains(err.Error(), `"odd[name"`) {
		t.Errorf("got %v", err)
	}
}

func TestAPatternMatchesTheNameThatItSpells(t *testing.T) {
	if d := rules(t, nil, []string{"what?*"}).Tool("what?*"); d.Allowed {
		t.Error("a name with characters of globs can't be denied")
	}
}

func TestUnused(t *testing.T) {
	got := rules(t, []string{"a", "b*", "nobody"}, []string{"c", "x*"}).Unused([]string{"a", "bb", "c"})
	want := []Pattern{{"allowedTools[2]", "nobody"}, {"deniedTools[1]", "x*"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheZeroRulesAllow(t *testing.T) {
	if d := new(Rules).Tool("x"); !d.Allowed {
		t.Errorf("got %+v", d)
	}
}
