// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// canaries are variables of garra's own that no server has a need of.
func canaries() []string {
	names := []string{
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"DATABASE_URL", "PGPASSWORD", "SSH_AUTH_SOCK", "KUBECONFIG", "HTTPS_PROXY", "http_proxy", "NODE_OPTIONS",
		"NPM_TOKEN", "npm_config__auth", "PYTHONSTARTUP", "LD_LIBRARY_PATH", "OTEL_EXPORTER_OTLP_HEADERS",
		"GARRAIA_TOKEN", "GARRAIA_VAULT_PASSPHRASE", "SESSION_SECRET",
	}
	env := make([]string, len(names))
	for i, name := range names {
		env[i] = fmt.Sprintf("%s=canary-%d", name, i)
	}
	return env
}

// withCanaries puts them into garra's environment.
func withCanaries(o *Options) { o.Host.Env = append(o.Host.Env, canaries()...) }

// nowhere makes sure that a text is in nothing that a rig's supervisor told.
func nowhere(t *testing.T, r *rig, text string) {
	t.Helper()
	for _, name := range r.Names() {
		status := r.Server(name).Status()
		if got := fmt.Sprintf("%+v %+v", status, status.LastError); strings.Contains(got, text) {
			t.Errorf("in a status: %s", got)
		}
		lines, _ := r.Server(name).Logs(0)
		if got := fmt.Sprint(lines); strings.Contains(got, text) {
			t.Errorf("in the log of %s", name)
		}
	}
	if got := fmt.Sprintf("%+v %v %v", r.Events(), r.Heard(), r.Stderr()); strings.Contains(got, text) {
		t.Errorf("in what was told: %s", got)
	}
}

// What garra knows reaches no server, and nothing that people see.
func TestCanaries(t *testing.T) {
	t.Parallel()
	r := newRig(t, withCanaries)
	dump := filepath.Join(r.dir, "dump")
	r.apply(map[string]fields{
		"s":       misbehaving("--env-dump", dump),
		"crashes": misbehaving("--traceback"),
		"shell":   shell("env >&2; exec $SERVER"),
		"missing": misbehaving().With("args", []string{"${OPENAI_API_KEY}", "${NOT_SET}"}),
	})
	r.ready("s", "shell")
	r.state("crashes", source.Backoff)
	r.state("missing", source.Failed)
	own, shells := use(t, r.Server("s"), "env", nil), use(t, r.Server("shell"), "env", nil)
	for _, text := range []string{own, shells, read(t, dump)} {
		if strings.Contains(text, "canary-") {
			t.Errorf("in a server's environment: %q", text)
		}
	}
	nowhere(t, r, "canary-")
	status := r.Server("s").Status()
	if status.Env.Mode != source.EnvIsolated || status.Env.Forced || !slices.Contains(status.Env.Names, "PATH") {
		t.Errorf("%+v", status.Env)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// An entry that asks for garra's environment gets it, with a warning at each
// start, until a person restarts the server; then not until its text changes.
func TestInheritedEnvironment(t *testing.T) {
	t.Parallel()
	r := newRig(t, withCanaries)
	inherits := misbehaving().With("inheritEnv", true)
	s := r.only(inherits)
	has := func(s *Server) bool { return strings.Contains(use(t, s, "env", nil), "OPENAI_API_KEY=") }
	if got := s.Status().Env; !has(s) || got.Mode != source.EnvInherited || got.Forced {
		t.Errorf("at first: %+v", got)
	}
	warned := r.Count("inherit")
	if warned != 1 || !strings.Contains(r.Saw("inherit"), `"s"`) {
		t.Errorf("%d warnings: %q", warned, r.Saw("inherit"))
	}
	if _, err := s.Call(t.Context(), tool("kill_self", nil)); err == nil {
		t.Error("it lives")
	}
	if !has(s) || r.Count("inherit") != 2 { // a restart by garra itself
		t.Errorf("after a crash: %+v, %d warnings", s.Status().Env, r.Count("inherit"))
	}

	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := s.Status().Env
	if has(s) || env.Mode != source.EnvIsolated || !env.Forced {
		t.Errorf("after a restart: %+v", env)
	}
	for _, pair := range canaries() {
		name, _, _ := strings.Cut(pair, "=")
		if name != "GARRAIA_VAULT_PASSPHRASE" && !slices.Contains(env.Dropped, name) {
			t.Errorf("%s isn't reported as dropped: %q", name, env.Dropped)
		}
	}
	if !slices.IsSorted(env.Dropped) || slices.Contains(env.Dropped, "PATH") {
		t.Errorf("dropped %q", env.Dropped)
	}
	contains(t, r.Saw("kept from it"), `"s"`, "inherit_env has no effect")
	if _, err := s.Call(t.Context(), tool("kill_self", nil)); err == nil {
		t.Error("it lives")
	}
	if has(s) {
		t.Error("inherited again after a crash")
	}
	nowhere(t, r, "canary-")

	r.apply(map[string]fields{"s": inherits.With("callTimeoutSecs", 100)})
	eventually(t, "the edit is in force", func() bool { return s.Status().Env.Mode == source.EnvInherited })
	r.ready("s")
	if !has(s) || s.Status().Env.Forced || len(s.Status().Env.Dropped) != 0 {
		t.Errorf("after an edit: %+v", s.Status().Env)
	}
}

// That a server runs isolated outlives garra, unless the entry was edited.
func TestIsolationOutlivesGarra(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "isolated.json")
	inherits := misbehaving().With("inheritEnv", true)
	again := func(t *testing.T, f fields) source.Env {
		t.Helper()
		r := newRig(t, withCanaries, func(o *Options) { o.IsolationFile = file })
		return r.only(f).Status().Env
	}
	t.Run("force", func(t *testing.T) {
		r := newRig(t, withCanaries, func(o *Options) { o.IsolationFile = file })
		s := r.only(inherits)
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if exists(file) {
			t.Error("a stop isolates")
		}
		if err := s.Start(t.Context()); err != nil { // which is as good as a restart
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if strings.Contains(read(t, file), "canary-") {
			t.Error("the file holds a value")
		}
	})
	if env := again(t, inherits); !env.Forced || env.Mode != source.EnvIsolated {
		t.Errorf("the same text: %+v", env)
	}
	if env := again(t, inherits.With("callTimeoutSecs", 100)); env.Forced || env.Mode != source.EnvInherited {
		t.Errorf("another text: %+v", env)
	}
	if env := again(t, misbehaving()); env.Forced || env.Mode != source.EnvIsolated {
		t.Errorf("nothing to force: %+v", env)
	}
}

func TestIsolationFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "isolated.json")
	open := func(t *testing.T) *isolation {
		t.Helper()
		i, err := openIsolation(file)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	entry := func(callTimeout int) *mcpconfig.Server {
		f := fields{"command": "server", "inheritEnv": true, "callTimeoutSecs": callTimeout}
		return sourcetest.Load(t, t.TempDir(), map[string]fields{"s": f}).Servers[0]
	}
	one, two := entry(1), entry(2)
	nowhere := entryNamed("s") // has no digest
	nowhere.InheritEnv = true
	if i := open(t); i.holds(nowhere) || i.holds(one) {
		t.Error("nobody forced it")
	} else if err := i.force(one); err != nil {
		t.Fatal(err)
	}
	if forced, err := ReadIsolation(file); err != nil || !forced(one) || forced(two) {
		t.Errorf("read from outside: %v", err)
	}
	i := open(t)
	if !i.holds(one) || i.holds(two) || i.holds(nowhere) {
		t.Errorf("%+v", i.digests)
	}
	one.InheritEnv = false
	if i.holds(one) {
		t.Error("it is isolated anyway, but as if it were forced")
	}
	one.InheritEnv = true
	if err := i.lift("s"); err != nil || open(t).holds(one) {
		t.Errorf("lifted: %v", err)
	}
	for _, text := range []string{"null", "{}"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(t).force(one); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "[1]", `{"s":1}`, "{"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Options{PrivateDir: t.TempDir(), IsolationFile: file})
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What can't be remembered isn't done: the server would inherit again.
func TestIsolationThatCannotBeKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "no", "such", "folder", "isolated.json")
	r := newRig(t, withCanaries, func(o *Options) { o.IsolationFile = file })
	s := r.only(misbehaving().With("inheritEnv", true))
	pid := s.Status().PID
	for range 2 {
		contains(t, failed(t, s.Restart(t.Context()), source.ServerFailed).Error(), "isolated")
	}
	if got := s.Status(); got.PID != pid || got.State != source.Ready {
		t.Errorf("%+v", got)
	}
}

// An edit of a forced server's entry lifts the isolation, in force at once when
// that changes the environment. A text that comes back is no longer forced.
func TestEditsOfAForcedServer(t *testing.T) {
	t.Parallel()
	inherits := misbehaving().With("inheritEnv", true)
	for name, next := range map[string]fields{
		"that still inherits":  inherits.With("callTimeoutSecs", 7),
		"that doesn't inherit": misbehaving(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.only(inherits)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.apply(map[string]fields{"s": next})
			eventually(t, "the edit is in force", func() bool {
				now := s.Status()
				return now.State == source.Ready && now.Hello.Generation == 3 && !now.Env.Forced
			})
			r.apply(map[string]fields{"s": inherits})
			r.ready("s")
			if env := s.Status().Env; env.Forced || env.Mode != source.EnvInherited {
				t.Errorf("%+v", env)
			}
		})
	}
}
