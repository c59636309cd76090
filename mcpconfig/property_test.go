// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestEditsKeepMeaning edits documents at random, next to a plain map that is changed in the
// same way, and compares what the document reads as with the map after every edit. The lines
// that are comments have to survive all of them.
func TestEditsKeepMeaning(t *testing.T) {
	for name, text := range map[string]string{
		ServersFile: "// one\n{\n  // two\n  \"mcpServers\": {}, // three\n  \"other\": [1.0],\n}\n",
		GeneralFile: "# one\nagent: {name: x}\nmcp: # two\n  seed:\n    command: x # three\n# four\nzzz: 1\n",
		"flow.yml":  "{agent: {name: x}, mcp: {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { editAtRandom(t, name, text) })
		})
	}
}

func editAtRandom(t *rapid.T, name, text string) {
	d := &Document{src: &source{name: name, path: name}}
	if ferr := d.src.setData([]byte(text)); ferr != nil {
		t.Fatal(ferr)
	}
	model := map[string]map[string]string{}
	for _, m := range d.section().children() {
		model[m.key] = map[string]string{}
	}
	names := rapid.SampledFrom([]string{"a", "b", "seed", "1.5", "true", "long-name_9"})
	keys := rapid.SampledFrom([]string{"A", "B", "null", "WITH SPACE", "é", "a.b", "#"})
	values := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", " ", "yes", "0123", "a: b", "- x", "x # y", "'", `"`, `\`, "*a", "&a", "!t", "{", "[", "%", "@", "|",
		"line\nbreak", "tab\t", "\u2028\u2029\ufeff\u0085", "//", "/*", "$${X}",
	}))
	t.Repeat(map[string]func(*rapid.T){
		"set server": func(t *rapid.T) {
			server, key, value := names.Draw(t, "server"), keys.Draw(t, "key"), values.Draw(t, "value")
			fields, err := encodeJSON(map[string]any{"command": "x", "env": map[string]string{key: value}})
			if err == nil {
				err = d.SetServer(server, fields)
			}
			mustEdit(t, d, err)
			model[server] = map[string]string{key: strings.ToValidUTF8(value, "\ufffd")}
		},
		"set part": func(t *rapid.T) {
			server, key, value := names.Draw(t, "server"), keys.Draw(t, "key"), values.Draw(t, "value")
			err := d.SetField(server, "env."+key, value)
			if model[server] == nil {
				wantNoServer(t, err)
				return
			}
			mustEdit(t, d, err)
			model[server][key] = strings.ToValidUTF8(value, "\ufffd")
		},
		"remove part": func(t *rapid.T) {
			server, key := names.Draw(t, "server"), keys.Draw(t, "key")
			err := d.RemoveField(server, "env."+key)
			if model[server] == nil {
				wantNoServer(t, err)
				return
			}
			mustEdit(t, d, err)
			delete(model[server], key)
		},
		"remove server": func(t *rapid.T) {
			server := names.Draw(t, "server")
			err := d.RemoveServer(server)
			if model[server] == nil {
				wantNoServer(t, err)
				return
			}
			mustEdit(t, d, err)
			delete(model, server)
		},
		"rename": func(t *rapid.T) {
			from, to := names.Draw(t, "from"), names.Draw(t, "to")
			err := d.RenameServer(from, to)
			switch {
			case model[from] == nil:
				wantNoServer(t, err)
			case model[to] != nil:
				if !errors.Is(err, ErrServerExists) {
					t.Fatalf("renaming to a name that is taken: %v", err)
				}
			default:
				mustEdit(t, d, err)
				model[to] = model[from]
				delete(model, from)
			}
		},
		"": func(t *rapid.T) { compareModel(t, d, model) },
	})
}

func mustEdit(t *rapid.T, d *Document, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v in:\n%s", err, d.Bytes())
	}
}

func wantNoServer(t *rapid.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrNoServer) {
		t.Fatalf("editing a server that isn't there: %v", err)
	}
}

// compareModel reads the document anew and compares it with the map.
func compareModel(t *rapid.T, d *Document, model map[string]map[string]string) {
	t.Helper()
	fresh := &source{name: d.src.name}
	if ferr := fresh.setData(d.Bytes()); ferr != nil {
		t.Fatalf("%v in:\n%s", ferr, d.Bytes())
	}
	got := map[string]map[string]string{}
	for _, m := range fresh.root.get(d.sectionKey()).children() {
		got[m.key] = map[string]string{}
		for _, v := range m.value.get("env").children() {
			got[m.key][v.key] = v.value.text
		}
	}
	if diff := cmp.Diff(model, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("-want +got:\n%s\n%s", diff, d.Bytes())
	}
	for _, comment := range []string{"one", "four"} {
		if d.src.name == GeneralFile && !strings.Contains(string(d.Bytes()), "# "+comment+"\n") {
			t.Fatalf("the comment %q is gone from:\n%s", comment, d.Bytes())
		}
	}
	if d.src.name == ServersFile && strings.Count(string(d.Bytes()), "// ") < 3 {
		t.Fatalf("a comment is gone from:\n%s", d.Bytes())
	}
}
