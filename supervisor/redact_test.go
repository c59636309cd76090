// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/garraia/garra/source"
)

const canary = "canary-4f1d"

// withSecret runs a server that has a secret, and another that hasn't.
func withSecret(t *testing.T, change ...func(*Options)) (*rig, string) {
	t.Helper()
	vault := &secrets{text: canary}
	vault.unlock()
	r := newRig(t, append(change, func(o *Options) { o.Secrets = vault })...)
	r.apply(map[string]fields{"s": misbehaving().With("env", args{"T": "vault:KEY"}), "other": misbehaving()})
	r.ready("s", "other")
	return r, canary + "sKEY"
}

// What a server was given doesn't come back, from whichever server, in whatever form.
func TestSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	r, secret := withSecret(t)
	for name, text := range map[string]string{
		"as it is": secret, "base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)),
		"hex": fmt.Sprintf("%x", secret), "JSON in JSON": fmt.Sprintf("{\"a\":%q}", secret),
	} {
		for _, server := range []string{"s", "other"} {
			got := use(t, r.Server(server), "echo", args{"text": "before " + text + " after"})
			if !strings.Contains(got, "[redacted:KEY]") || !strings.HasPrefix(got, "before ") ||
				!strings.HasSuffix(got, " after") || strings.Contains(got, text) {
				t.Errorf("%s, from %s: %q", name, server, got)
			}
		}
	}
	spelled := strings.ReplaceAll(secret, "a", `\u0061`)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":$id,"result":{"structuredContent":{"` + secret + `":["` + spelled + `"]},"content":[]}}`,
		`{"jsonrpc":"2.0","id":$id,"error":{"code":-32000,"message":"no: ` + secret + `","data":"` + spelled + `"}}`,
	} {
		result, err := r.Server("s").Call(t.Context(), tool("say", args{"line": line}))
		text := string(result) + fmt.Sprintf("%v %+v", err, err)
		shows := strings.Contains(text, canary) || strings.Contains(text, spelled)
		if !strings.Contains(text, "[redacted:KEY]") || shows {
			t.Errorf("%s", text)
		}
	}
	use(t, r.Server("s"), "emit", args{"method": "notifications/tools/list_changed", "params": args{"x": secret}})
	use(t, r.Server("s"), "say_stderr", args{"text": "log: " + secret})
	eventually(t, "the line is in the log", func() bool {
		lines, _ := r.Server("s").Logs(0)
		return len(lines) > 0 && strings.Contains(lines[len(lines)-1].Text, "log: [redacted:KEY]")
	})
	_, err := r.Server("s").Call(t.Context(), tool("crash", args{"code": 3}))
	contains(t, failed(t, err, source.ServerCrashed).Error(), "[redacted:KEY]")
	r.ready("s")
	nowhere(t, r, canary)
}

// What holds a secret with the policy block doesn't leave at all.
func TestSecretsAreKeptBack(t *testing.T) {
	t.Parallel()
	r, secret := withSecret(t, func(o *Options) { o.Blocked = func(key string) bool { return key == "KEY" } })
	_, err := r.Server("other").Call(t.Context(), tool("echo", args{"text": secret}))
	contains(t, failed(t, err, source.SecretBlocked).Error(), "KEY", "block")
	if got := use(t, r.Server("other"), "echo", args{"text": "harmless"}); got != "harmless" {
		t.Errorf("%q", got)
	}
	contains(t, use(t, r.Server("s"), "ask_elicitation", args{"text": secret}), "kept back")
	nowhere(t, r, canary)
}

// A secret in the name of a folder is not shown by what tells how a server is run.
func TestSecretsInNamesOfFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Host.Env = append(o.Host.Env, "PLACE_TOKEN="+canary) })
	if err := os.Mkdir(filepath.Join(r.dir, canary), 0o700); err != nil {
		t.Fatal(err)
	}
	s := r.only(misbehaving().With("cwd", "${PLACE_TOKEN}"))
	command := s.Status().Command
	if want := filepath.Join(r.dir, "[redacted:PLACE_TOKEN]"); command.Dir != want {
		t.Errorf("it runs in %s, not %s", command.Dir, want)
	}
	r.apply(map[string]fields{"s": {"command": "sh", "env": args{"PATH": "/${PLACE_TOKEN}:/bin"}}})
	eventually(t, "the other command is shown", func() bool { return len(s.Status().Command.SearchPath) > 0 })
	if got := s.Status().Command.SearchPath[0]; got != "/[redacted:PLACE_TOKEN]" {
		t.Errorf("it was searched for in %s", got)
	}
	nowhere(t, r, canary)
}

// A secret is one as long as somebody runs with it.
func TestSecretsAreForgotten(t *testing.T) {
	t.Parallel()
	r, secret := withSecret(t)
	if err := r.Server("s").Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := use(t, r.Server("other"), "echo", args{"text": secret}); got != secret {
		t.Errorf("%q, although nobody has the secret any more", got)
	}
}
