// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
)

// The same entry is the same server, whichever file it stands in.
func TestFilesExpandAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mcp.json": `{"mcpServers": {"a": {"command": "/bin/${SH}", "args": ["${A:-d}", "$${A}"], "cwd": "${DIR}",
			"envFile": "${DIR}/x.env", "env": {"T": "Bearer ${env:TOKEN}", "PIN": "0123", "K": "vault:KEY"}}}}`,
		"config.yml": "mcp:\n  b:\n    command: /bin/${SH}\n    args: [\"${A:-d}\", \"$${A}\"]\n    cwd: ${DIR}\n" +
			"    env_file: ${DIR}/x.env\n    env: {T: \"Bearer ${env:TOKEN}\", PIN: 0123, K: \"vault:KEY\"}\n",
		"x.env": "FILE=1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := mcpconfig.Load(dir)
	if err != nil || len(config.Servers) != 2 {
		t.Fatalf("%v: %v", err, config.Findings)
	}
	host := envbuild.Host{
		Env: []string{"PATH=/bin", "SH=sh", "DIR=" + dir, "TOKEN=t-o-k-e-n"}, Home: dir, GOOS: "linux",
	}
	vault := &secrets{text: "same"}
	vault.unlock()
	var built []*envbuild.Spec
	for _, s := range config.Servers {
		entry := EntryOf(s, dir)
		entry.Server = "s" // the vault of the tests has another value for each server
		spec, err := envbuild.Build(t.Context(), entry, host, vault)
		if err != nil {
			t.Fatal(err)
		}
		built = append(built, spec)
	}
	a, b := built[0], built[1]
	if diff := cmp.Diff(a.Environ(), b.Environ()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string(a.Args), []string(b.Args)); diff != "" || a.Dir != b.Dir || a.Path != b.Path {
		t.Errorf("%s %s, %s %s: %s", a.Path, b.Path, a.Dir, b.Dir, diff)
	}
	if v := a.Environ(); len(v) < 6 || a.Args[1] != "d" || a.Args[2] != "${A}" {
		t.Errorf("%q is not what the entry says", []string(a.Args))
	}
}
