// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

// fileVault is a real vault, unless err says why there is none.
type fileVault struct {
	*vault.Vault
	err error
}

func (f *fileVault) Usable() error { return f.err }

func (f *fileVault) Update(change func(*vault.Edit) error) error {
	if f.err != nil {
		return f.err
	}
	return f.Vault.Update(change)
}

// text returns a value of the vault, "" when there is none.
func (f *fileVault) text(key string) string {
	value, err := f.Value(key)
	if err != nil {
		return ""
	}
	text, err := value.Reveal()
	if err != nil {
		return err.Error()
	}
	return text
}

// tester is what the tests of this package and of rapid have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newVault(t tester, dir string) *fileVault {
	t.Helper()
	passphrase, err := vault.Seal([]byte("a passphrase"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.Create(vault.Options{Path: filepath.Join(dir, "vault.age"), WorkFactor: 1},
		vault.Passphrase(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	return &fileVault{Vault: v}
}

// newEditor edits these files of a folder of its own.
func newEditor(t *testing.T, files map[string]string) (*Editor, *fileVault) {
	t.Helper()
	dir := privateDir(t, t.TempDir())
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	v := newVault(t, dir)
	t.Cleanup(v.Close)
	return &Editor{Dir: dir, Lock: filepath.Join(dir, "lock"), Vault: v}, v
}

// privateDir is a folder of which nobody says that others may write to it.
func privateDir(t tester, base string) string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "config")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t tester, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t tester, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (e *Editor) servers(t tester) string {
	return read(t, filepath.Join(e.Dir, mcpconfig.ServersFile))
}

const (
	secret = "jK8s02nfLq71Zpw"                                   // under the name of one
	token  = "ghp_" + "16C7e42F292c6912E7710" + "c838347Ae178B4" // under any name
)

func TestAddMovesSecrets(t *testing.T) {
	e, v := newEditor(t, nil)
	result, err := e.Add("gh", []byte(`{"command":"x","args":["--token=`+secret+`","--port=80"],"env":{"API_TOKEN":"`+
		secret+`","NAME":"plain","REF":"${OTHER_TOKEN}"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "mcpServers": {
    "gh": {
      "command": "x",
      "args": ["--token=${vault:mcp.gh.TOKEN}","--port=80"],
      "env": {
        "API_TOKEN": "vault:mcp.gh.API_TOKEN",
        "NAME": "plain",
        "REF": "${OTHER_TOKEN}"
      }
    }
  }
}
`
	if diff := cmp.Diff(squeeze(want), squeeze(e.servers(t))); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"mcp.gh.TOKEN", "mcp.gh.API_TOKEN"} {
		if got := v.text(key); got != secret {
			t.Errorf("%s is %q", key, got)
		}
	}
	if len(result.Moved) != 2 || result.Server == nil || result.Server.Env["API_TOKEN"] != "vault:mcp.gh.API_TOKEN" {
		t.Errorf("%+v", result)
	}
	if _, err := e.Add("gh", []byte(`{"command":"y"}`)); !errors.Is(err, ErrExists) {
		t.Errorf("a second time: %v", err)
	}
}

// squeeze takes out the blanks that don't matter here.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

func TestWithoutAVaultNoSecretIsWritten(t *testing.T) {
	for name, why := range map[string]error{"none": vault.ErrNoVault, "locked": errors.New("it is locked")} {
		t.Run(name, func(t *testing.T) {
			e, v := newEditor(t, map[string]string{
				mcpconfig.ServersFile: `{"mcpServers": {"old": {"command": "x", "env": {"OLD_TOKEN": "` +
					secret + `"}}}}`,
			})
			v.err = why
			before := e.servers(t)
			_, err := e.Add("gh", []byte(`{"command":"x","env":{"API_TOKEN":"`+secret+`"}}`))
			_, isLocked := errors.AsType[*Locked](err)
			if !isLocked || !errors.Is(err, why) || !strings.Contains(err.Error(), "env.API_TOKEN") ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("adding: %v", err)
			}
			if e.servers(t) != before {
				t.Error("the file was changed all the same")
			}
			// What stands there already doesn't keep a person from changing something else.
			if _, err := e.Change("old", "", fieldsOf(t, `{"timeoutSecs": 7}`)); err != nil {
				t.Errorf("changing something else: %v", err)
			}
			if _, err := e.Change("old", "", fieldsOf(t, `{"env": {"NEW_TOKEN": "`+secret+`"}}`)); err == nil {
				t.Error("a new secret was written")
			}
			if _, err := e.Import(); !errors.Is(err, why) {
				t.Errorf("importing: %v", err)
			}
			e.AllowPlaintext = true
			if _, err := e.Add("gh", []byte(`{"command":"x","env":{"API_TOKEN":"`+secret+`"}}`)); err != nil {
				t.Errorf("allowed: %v", err)
			}
		})
	}
}

func fieldsOf(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestChange(t *testing.T) {
	e, v := newEditor(t, map[string]string{
		mcpconfig.ServersFile: `{"mcpServers": {
  // mine
  "s": {"command": "x", "disabled": true, "extra": 1}}}`,
		mcpconfig.GeneralFile: "mcp:\n  y: {command: y, enabled: false} # kept\n",
	})
	config, err := mcpconfig.Load(e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := config.Server("s")
	if _, err := e.Change("s", "another", fieldsOf(t, `{"timeoutSecs": 7}`)); !errors.Is(err, ErrChanged) {
		t.Errorf("with another tag: %v", err)
	}
	fields := fieldsOf(t, `{"disabled": null, "env": {"A_TOKEN": "`+secret+`"}, "timeoutSecs": 7}`)
	result, err := e.Change("s", Tag(s), fields)
	if err != nil {
		t.Fatal(err)
	}
	if !result.Server.Enabled || Tag(result.Server) == Tag(s) || v.text("mcp.s.A_TOKEN") != secret {
		t.Errorf("%+v", result.Server)
	}
	if text := e.servers(t); !strings.Contains(text, "// mine") || !strings.Contains(text, `"extra": 1`) {
		t.Errorf("what nobody asked to be changed was: %s", text)
	}
	if _, err := e.Change("y", "", fieldsOf(t, `{"disabled": null}`)); err != nil {
		t.Error(err)
	}
	if got := read(t, filepath.Join(e.Dir, mcpconfig.GeneralFile)); got != "mcp:\n  y: {command: y} # kept\n" {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]error{`{"timeoutSecs": 7}`: ErrUnknown} {
		if _, err := e.Change("nobody", "", fieldsOf(t, text)); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	_, err = e.Change("s", "", fieldsOf(t, `{"command": "", "timeoutSecs": -1}`))
	if refused, ok := errors.AsType[*Refused](err); !ok || len(refused.Findings) < 2 || refused.Advice() == "" {
		t.Errorf("two mistakes: %v", err)
	}
	if _, err := e.Change("s", "", fieldsOf(t, `{"nope": 1}`)); err == nil {
		t.Error("an unknown field was taken")
	}
}

// A secret that takes the place of a reference rotates what that refers to; one beside a
// reference gets a key of its own.
func TestKeysDontMeet(t *testing.T) {
	e, v := newEditor(t, nil)
	entry := `{"url":"https://h/","headers":{"X-Api-Key":"` + secret + `1","X_API_KEY":"` + secret + `2"}}`
	if _, err := e.Add("s", []byte(entry)); err != nil {
		t.Fatal(err)
	}
	if v.text("mcp.s.X_API_KEY") == v.text("mcp.s.X_API_KEY_2") || v.text("mcp.s.X_API_KEY_2") == "" {
		t.Errorf("%q and %q", v.text("mcp.s.X_API_KEY"), v.text("mcp.s.X_API_KEY_2"))
	}
	if _, err := e.Change("s", "", fieldsOf(t, `{"headers": {"X-Api-Key": "`+secret+`3"}}`)); err != nil {
		t.Fatal(err)
	}
	if got := v.text("mcp.s.X_API_KEY"); got != secret+"3" {
		t.Errorf("after the change %q", got)
	}
}

func TestRemoveTakesExactlyItsOwn(t *testing.T) {
	e, v := newEditor(t, map[string]string{
		mcpconfig.ServersFile: `{"mcpServers": {"a": {"command": "x"}, "a.b": {"command": "x"}}}`,
		mcpconfig.GeneralFile: "mcp: {a: {command: y}}\n",
	})
	value, err := vault.Seal([]byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"mcp.a.K", "mcp.a.L", "mcp.a.b.K", "shared"}
	err = v.Vault.Update(func(edit *vault.Edit) error {
		for _, name := range names {
			if err := edit.Set(name, value); err != nil {
				return err
			}
		}
		return edit.Share("shared", []string{"a"})
	})
	if err != nil {
		t.Fatal(err)
	}
	v.err = errors.New("it is locked")
	if _, err := e.Remove("a", ""); err == nil || !strings.Contains(e.servers(t), `"a":`) {
		t.Errorf("with a locked vault: %v, %s", err, e.servers(t))
	}
	v.err = nil
	result, err := e.Remove("a", "")
	if err != nil || !slices.Equal(result.Removed, []string{"mcp.a.K", "mcp.a.L"}) {
		t.Errorf("%+v, %v", result, err)
	}
	config, err := mcpconfig.Load(e.Dir)
	if err != nil || len(config.Servers) != 1 || config.Servers[0].Name != "a.b" {
		t.Errorf("%v, %v", config.Servers, err)
	}
	var left []string
	for _, entry := range v.Entries() {
		left = append(left, entry.Name)
	}
	if diff := cmp.Diff([]string{"mcp.a.b.K", "shared"}, left); diff != "" {
		t.Error(diff)
	}
	if _, err := e.Remove("a", ""); !errors.Is(err, ErrUnknown) {
		t.Errorf("a second time: %v", err)
	}
}

func TestImport(t *testing.T) {
	e, v := newEditor(t, map[string]string{
		mcpconfig.ServersFile: `{"mcpServers": {"s": {"url": "https://u:` + secret + `@h/mcp", "headers": {
      "Authorization": "Bearer ` + secret + `"}}}}`,
		mcpconfig.GeneralFile: "# head\nmcp:\n  y:\n    command: y\n    env: {DATABASE_URL: 'postgres://u:" + secret +
			"@db/x', MIXED_URL: \"postgres://u:" + secret + "@${HOST}/x\"} # tail\n",
	})
	result, err := e.Import()
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Moved) != 3 || len(result.Left) != 1 || result.Left[0].Field != "env.MIXED_URL" {
		t.Errorf("%+v", result)
	}
	general := read(t, filepath.Join(e.Dir, mcpconfig.GeneralFile))
	for _, want := range []string{"# head", "# tail", "vault:mcp.y.DATABASE_URL"} {
		if !strings.Contains(general, want) {
			t.Errorf("%q lacks %q", general, want)
		}
	}
	if strings.Contains(e.servers(t), secret) || v.text("mcp.y.DATABASE_URL") != "postgres://u:"+secret+"@db/x" {
		t.Errorf("%s, %q", e.servers(t), v.text("mcp.y.DATABASE_URL"))
	}
	if again, err := e.Import(); err != nil || len(again.Moved) > 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

// TestReferencesStayReferences makes random edits of random entries: what was a reference is
// one afterwards, or was replaced by its own edit, and no secret ever comes to the files.
func TestReferencesStayReferences(t *testing.T) {
	value := rapid.SampledFrom([]string{
		"vault:mcp.s.K", "x ${vault:shared} y", "${TOKEN}", "${env:TOKEN}", "${NAME:-default}", "plain", "$${literal}",
		token + "1", token + "2",
	})
	name := rapid.SampledFrom([]string{"A_TOKEN", "B_SECRET", "NAME", "PATH_TO"})
	envOf := rapid.MapOfN(name, value, 0, 4)
	e, v := newEditor(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		write(t, filepath.Join(e.Dir, mcpconfig.ServersFile), `{"mcpServers": {}}`)
		model := map[string]map[string]string{}
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			server := rapid.SampledFrom([]string{"s", "t"}).Draw(t, "server")
			env := envOf.Draw(t, "env")
			fields, err := json.Marshal(map[string]any{"command": "x", "env": env})
			if err != nil {
				t.Fatal(err)
			}
			switch _, there := model[server]; {
			case !there:
				_, err = e.Add(server, fields)
				model[server] = env
			case rapid.Bool().Draw(t, "remove"):
				_, err = e.Remove(server, "")
				delete(model, server)
			case rapid.Bool().Draw(t, "other field"):
				_, err = e.Change(server, "", map[string]json.RawMessage{"timeoutSecs": json.RawMessage("9")})
			default:
				var raw []byte
				raw, err = json.Marshal(env)
				if err != nil {
					t.Fatal(err)
				}
				_, err = e.Change(server, "", map[string]json.RawMessage{"env": raw})
				model[server] = env
			}
			if err != nil {
				t.Fatal(err)
			}
			compare(t, e, v, model)
		}
	})
}

// compare wants the files to say what the model does, with references for secrets.
func compare(t *rapid.T, e *Editor, v *fileVault, model map[string]map[string]string) {
	t.Helper()
	if text := e.servers(t); strings.Contains(text, token) {
		t.Fatalf("a secret is in the file: %s", text)
	}
	config, err := mcpconfig.Load(e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]map[string]string)
	for _, s := range config.Servers {
		env := maps.Clone(s.Env)
		for name, text := range env {
			key := strings.TrimPrefix(text, "vault:")
			if stored := v.text(key); strings.HasPrefix(text, "vault:mcp."+s.Name+"."+name) && stored != "" {
				env[name] = strings.ReplaceAll(stored, "${", "$${") // as it was written
			}
		}
		got[s.Name] = env
	}
	if fmt.Sprint(got) != fmt.Sprint(model) {
		t.Fatalf("the files say %v, want %v", got, model)
	}
}
