// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"context"
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

	"github.com/garraia/garra/internal/sensitive"
)

// vaultMap is a vault for tests: the secrets by "server/key".
type vaultMap map[string]string

// Stores implements Secrets: there is one, named op.
func (v vaultMap) Stores() []string { return []string{"op"} }

func (v vaultMap) Secret(_ context.Context, server, key string) (string, error) {
	value, ok := v[server+"/"+key]
	if !ok {
		return "", errors.New("no such key")
	}
	return value, nil
}

// texts are the values that a child's output must not show.
func texts(spec *Spec) (all []string) {
	for _, secret := range spec.Secrets {
		all = append(all, secret.Text())
	}
	return all
}

// unixHost is a Linux host with a home of its own and the given variables.
func unixHost(t *testing.T, env ...string) Host {
	t.Helper()
	home := t.TempDir()
	return Host{Env: append([]string{"PATH=/usr/bin:/bin", "HOME=" + home}, env...), GOOS: "linux"}
}

// homeOf returns the HOME of a host.
func homeOf(h Host) string { return newSystem(h).home }

// mustBuild builds an entry that has no problems.
func mustBuild(t *testing.T, e Entry, h Host, s Secrets) *Spec {
	t.Helper()
	spec, err := Build(t.Context(), e, h, s)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// values returns a spec's environment by name.
func values(s *Spec) map[string]string {
	all := make(map[string]string)
	for _, entry := range s.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = value
	}
	return all
}

// origins returns where a spec's variables came from.
func origins(s *Spec) map[string]Origin {
	all := make(map[string]Origin)
	for _, v := range s.Vars {
		all[v.Name] = v.Origin
	}
	return all
}

// writeFile makes a file, and its folder, below dir.
func writeFile(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// canaries are variables of a host that no child may see, each with a value of
// its own.
func canaries() []string {
	var env []string
	for i, name := range []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "NODE_AUTH_TOKEN",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL",
		"HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME",
		"NODE_OPTIONS", "npm_config__auth", "npm_config_//registry.example/:_authToken", "LD_PRELOAD",
		"LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "SSH_AUTH_SOCK", "KUBECONFIG", "XDG_RUNTIME_DIR",
		"GARRAIA_VAULT_PASSPHRASE", "GARRAIA_JWT_SECRET", "GARRAIA_CONFIG_DIR", "PATHX", "PREFIX", "path",
	} {
		env = append(env, fmt.Sprintf("%s=canary-%02d-value", name, i))
	}
	return env
}

func TestNoCanaryReachesAnIsolatedChild(t *testing.T) {
	spec := mustBuild(t, Entry{Server: "s", Command: "/bin/sh"}, unixHost(t, canaries()...), nil)
	for _, entry := range spec.Environ() {
		if strings.Contains(entry, "canary") {
			t.Errorf("the child gets %q", entry)
		}
	}
	if want := []string{"HOME", "PATH"}; !slices.Equal(spec.Names(), want) || spec.Mode != ModeIsolated {
		t.Errorf("got %s with %q, want %q", spec.Mode, spec.Names(), want)
	}
	if len(spec.Warnings) > 0 {
		t.Errorf("warnings: %q", spec.Warnings)
	}
}

func TestAllowlistHoldsNoSecretNames(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		for _, name := range allowed(newPlatform(goos), true) {
			if sensitive.Name(name) || withheld(name) {
				t.Errorf("%s is on the allowlist", name)
			}
		}
	}
}

func TestAllowlist(t *testing.T) {
	names := allowed(newPlatform("linux"), false)
	var env []string
	for _, name := range names {
		env = append(env, name+"=/value-of-"+name)
	}
	spec := mustBuild(t, Entry{Server: "s", Command: "/bin/sh"}, Host{Env: env, GOOS: "linux"}, nil)
	got := spec.Environ()
	slices.Sort(env)
	if diff := cmp.Diff(env, got); diff != "" {
		t.Error(diff)
	}
	for name, origin := range origins(spec) {
		if origin != OriginHost {
			t.Errorf("%s has origin %s", name, origin)
		}
	}
}

func TestInheritEnv(t *testing.T) {
	host := unixHost(t, canaries()...)
	host.Env = append(host.Env, "GarraIA_VAULT_PASSPHRASE=canary-old", "BAD=\xff\xfe", "TWICE=1", "TWICE=2")
	spec := mustBuild(t, Entry{Server: "loose", Command: "/bin/sh", InheritEnv: true}, host, nil)
	got := values(spec)
	for _, entry := range canaries() {
		name, value, _ := strings.Cut(entry, "=")
		if withheld(name) {
			if _, ok := got[name]; ok {
				t.Errorf("the child gets %s", name)
			}
			continue
		}
		if got[name] != value || origins(spec)[name] != OriginInherited {
			t.Errorf("%s is %q from %q", name, got[name], origins(spec)[name])
		}
	}
	if got["TWICE"] != "1" || got["BAD"] != "" || got["GarraIA_VAULT_PASSPHRASE"] != "" {
		t.Errorf("TWICE=%q BAD=%q", got["TWICE"], got["BAD"])
	}
	warnings := strings.Join(spec.Warnings, "\n")
	if spec.Mode != ModeInherited || !strings.Contains(warnings, `server "loose": inherit_env`) ||
		!strings.Contains(warnings, `"BAD"`) || strings.Contains(warnings, "canary") {
		t.Errorf("mode %s, warnings %s", spec.Mode, warnings)
	}
	if !slices.Contains(texts(spec), "canary-02-value") {
		t.Error("an inherited token is not among the values to redact")
	}
	if slices.ContainsFunc(texts(spec), func(value string) bool { return !strings.Contains(value, "canary") }) {
		t.Error("a value that is none is among the secrets")
	}
}

func TestDefaultsWhenGarraHasNoEnvironment(t *testing.T) {
	home := t.TempDir()
	spec := mustBuild(t, Entry{Server: "s", Command: "sh"}, Host{GOOS: "linux", Home: home}, nil)
	want := map[string]string{"HOME": home, "PATH": defaultPath}
	if diff := cmp.Diff(want, values(spec)); diff != "" {
		t.Error(diff)
	}
	if o := origins(spec); o["HOME"] != OriginDefault || o["PATH"] != OriginDefault {
		t.Errorf("origins are %v", o)
	}
	if spec.Dir != home {
		t.Errorf("the working directory is %s", spec.Dir)
	}
}

func TestLayers(t *testing.T) {
	host := unixHost(t, "LANG=host", "TZ=host", "TERM=host", "OUTER=outer")
	dir := t.TempDir()
	writeFile(t, dir, "s.env", "TZ=file\nTERM=file\nONLY=${OUTER}\nFROM=${vault:f}\n", 0o600)
	e := Entry{
		Server: "s", Command: "/bin/sh", EnvFile: "s.env", Dir: dir,
		Env: map[string]string{
			"TERM": "env", "OUT": "<${OUTER}>", "LIT": "$${OUTER}", "TOK": "vault:k", "AUTH": "Bearer ${vault:k}",
		},
		Where: func(field string) string { return "mcp.json:" + field },
	}
	spec := mustBuild(t, e, host, vaultMap{"s/k": "kk", "s/f": "ff"})
	want := map[string]string{
		"HOME": homeOf(host), "PATH": "/usr/bin:/bin", "LANG": "host", "TZ": "file", "TERM": "env",
		"ONLY": "${OUTER}", "FROM": "ff", "OUT": "<outer>", "LIT": "${OUTER}", "TOK": "kk", "AUTH": "Bearer kk",
	}
	if diff := cmp.Diff(want, values(spec)); diff != "" {
		t.Error(diff)
	}
	file := filepath.Join(dir, "s.env")
	for _, v := range []Var{
		{Name: "LANG", Origin: OriginHost},
		{Name: "TZ", Origin: OriginEnvFile, Where: file + ":1"},
		{Name: "TERM", Origin: OriginEnv, Where: "mcp.json:env.TERM"},
		{Name: "FROM", Origin: OriginVault, Where: file + ":4"},
		{Name: "TOK", Origin: OriginVault, Where: "mcp.json:env.TOK"},
	} {
		i := slices.IndexFunc(spec.Vars, func(got Var) bool { return got.Name == v.Name })
		if got := spec.Vars[i]; got.Origin != v.Origin || got.Where != v.Where {
			t.Errorf("%s is from %s at %q", got.Name, got.Origin, got.Where)
		}
	}
	if want := []string{"Bearer kk", "ff", "kk"}; !slices.Equal(texts(spec), want) {
		t.Errorf("%d values to redact", len(spec.Secrets))
	}
}

func TestExpansionOfEveryField(t *testing.T) {
	host := unixHost(t, "DIR=sub", "SH=sh", "A=arg", "MY_TOKEN=token-value")
	dir := t.TempDir()
	writeFile(t, dir, "sub/x.env", "X=1\n", 0o600)
	e := Entry{
		Server: "s", Command: "/bin/${SH}", Cwd: "${env:DIR}", EnvFile: "${DIR}/x.env", Dir: dir,
		Args: []string{
			"${A}", "--x=${NONE:-d}", "~", "~/f", "--h=~/f", "$${A}", "", "${MY_TOKEN}", "${NONE:-vault:1.13}",
		},
	}
	spec := mustBuild(t, e, host, nil)
	home := homeOf(host)
	want := []string{
		"/bin/sh", "arg", "--x=d", home, home + "/f", "--h=~/f", "${A}", "", "token-value", "vault:1.13",
	}
	if diff := cmp.Diff(want, []string(spec.Args)); diff != "" {
		t.Error(diff)
	}
	if spec.Dir != filepath.Join(dir, "sub") || spec.Path != "/bin/sh" || values(spec)["X"] != "1" {
		t.Errorf("got %v", spec)
	}
	if !slices.Contains(texts(spec), "token-value") {
		t.Error("a token on the command line is not among the values to redact")
	}
}

func TestSecretsOfAllKinds(t *testing.T) {
	vault := vaultMap{"s/k": "of-the-vault", "s/op://V/i": "of-the-store"}
	spec := mustBuild(t, Entry{
		Server: "s", Command: "sh", Args: []string{"vault:k", "--t=${op://V/i}"}, FileDir: "/run/files",
		Env: map[string]string{"A": "op://V/i", "KEY_FILE": "vaultfile:k", "OTHER": "vaultfile:op://V/i"},
	}, unixHost(t), vault)
	got := values(spec)
	want := map[string]string{
		"A": "of-the-store", "KEY_FILE": "/run/files/KEY_FILE", "OTHER": "/run/files/OTHER",
	}
	for name, value := range want {
		if got[name] != value || origins(spec)[name] != OriginVault {
			t.Errorf("%s is %q from %s", name, got[name], origins(spec)[name])
		}
	}
	if !slices.Equal(spec.Args, []string{"sh", "of-the-vault", "--t=of-the-store"}) {
		t.Errorf("arguments are %q", []string(spec.Args))
	}
	if len(spec.Files) != 2 || spec.Files[0].Content() != "of-the-vault" || spec.Files[1].Content() != "of-the-store" {
		t.Errorf("files are %v", spec.Files)
	}
	if !slices.Equal(spec.Keys, []string{"k", "op://V/i"}) {
		t.Errorf("keys are %q", spec.Keys)
	}
	if len(spec.Warnings) != 2 || !strings.Contains(spec.Warnings[0], "args[0] holds a secret") {
		t.Errorf("warnings are %q", spec.Warnings)
	}
	if diff := cmp.Diff([]string{"op://V/i", "k"}, []string{spec.Secrets[0].Name, spec.Secrets[1].Name}); diff != "" {
		t.Error(diff)
	}
}

func TestHomeIsOnlyReadFromTheTextItself(t *testing.T) {
	host := unixHost(t, "TILDE=~/x")
	bin := writeFile(t, homeOf(host), "bin/tool", "", 0o755)
	e := Entry{Server: "s", Command: "~/bin/tool", Args: []string{"${TILDE}", "~other"}, Cwd: "~"}
	spec := mustBuild(t, e, host, nil)
	if spec.Path != bin || spec.Dir != homeOf(host) || spec.Args[1] != "~/x" || spec.Args[2] != "~other" {
		t.Errorf("got %s in %s with %q", spec.Path, spec.Dir, []string(spec.Args))
	}
}

// TestProblems has one entry for each way in which an entry is wrong.
func TestProblems(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir, "file", "", 0o644)
	writeFile(t, dir, "bad.env", "A=1\noops\n", 0o600)
	env := func(name, value string) map[string]string { return map[string]string{name: value} }
	for _, c := range []struct {
		name  string
		entry Entry
		kind  error
		field string
		want  string // what the message says after server and place
	}{
		{"command unset", Entry{Command: "${NO}"}, ErrUnset, "command", `variable "NO" is not set`},
		{"arg unset", Entry{Args: []string{"", "${NO}"}}, ErrUnset, "args[1]", `variable "NO" is not set`},
		{"cwd unset", Entry{Cwd: "${NO}"}, ErrUnset, "cwd", `variable "NO" is not set`},
		{"env unset", Entry{Env: env("T", "x${env:NO}")}, ErrUnset, "env.T", `variable "NO" is not set`},
		{"envFile unset", Entry{EnvFile: "${NO}"}, ErrUnset, "envFile", `variable "NO" is not set`},
		{
			"no vault",
			Entry{Env: env("T", "vault:k.T")},
			ErrSecret, "env.T", `secret "k.T" is not available: there is no vault; make one with`,
		},
		{
			"secret as folder",
			Entry{Cwd: "${vault:k}"},
			ErrSecret, "cwd", `secret "k" is not available: file names ` +
				`can be read by every user of the machine; hand it over in env`,
		},
		{
			"secret by default",
			Entry{Env: env("T", "${NO:-vault:k}")},
			ErrInvalid, "env.T", "the expanded value is a reference",
		},
		{"no name", Entry{Env: env("", "x")}, ErrInvalid, "env.", `"" is not the name of a variable`},
		{
			"equals in name",
			Entry{Env: env("A=B", "x")},
			ErrInvalid, "env.A=B", `"A=B" is not the name of a variable`,
		},
		{
			"NUL in name",
			Entry{Env: env("A\x00", "x")},
			ErrInvalid, "env.A\x00", `"A\x00" is not the name of a variable`,
		},
		{"NUL in value", Entry{Env: env("A", "\x00")}, ErrInvalid, "env.A", "the text holds a NUL"},
		{"NUL in argument", Entry{Args: []string{"\x00"}}, ErrInvalid, "args[0]", "the text holds a NUL"},
		{
			"cwd missing",
			Entry{Cwd: "gone"},
			ErrCwd, "cwd", `opening the working directory "` + dir + `/gone": no such`,
		},
		{"cwd a file", Entry{Cwd: file}, ErrCwd, "cwd", `working directory "` + file + `" is not a folder`},
		{
			"envFile missing",
			Entry{EnvFile: "no.env"},
			ErrEnvFile, "envFile", `reading the env file "` + dir + `/no.env": no such`,
		},
		{
			"envFile a folder",
			Entry{EnvFile: "."},
			ErrEnvFile, "envFile", `reading the env file "` + dir + `": not a regular`,
		},
		{
			"envFile a device",
			Entry{EnvFile: "/dev/zero"},
			ErrEnvFile, "envFile", `reading the env file "/dev/zero": not a regular`,
		},
		{
			"envFile malformed",
			Entry{EnvFile: "bad.env"},
			ErrEnvFile, "envFile", `reading the env file "` + dir + `/bad.env": line 2: no "="`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.entry.Server, c.entry.Dir = "s", dir
			c.entry.Where = func(field string) string { return "at " + field }
			if c.entry.Command == "" {
				c.entry.Command = "/bin/sh"
			}
			spec, err := Build(t.Context(), c.entry, unixHost(t), nil)
			problems, ok := errors.AsType[Errors](err)
			if spec != nil || !ok || len(problems) != 1 {
				t.Fatalf("got %v, %v; want one problem", spec, err)
			}
			want := fmt.Sprintf(`server "s": %s (at %s): %s`, c.field, c.field, c.want)
			if !errors.Is(err, c.kind) || !strings.HasPrefix(err.Error(), want) || problems[0].Fix == "" {
				t.Errorf("got %v; want %s", err, want)
			}
		})
	}
}

func TestProblemInAnEnvFileNamesItsLine(t *testing.T) {
	file := writeFile(t, t.TempDir(), ".env", "B=1\nA=vault:gone\nC=vault:\n", 0o600)
	_, err := Build(t.Context(), Entry{Server: "s", Command: "/bin/sh", EnvFile: file}, unixHost(t), nil)
	for _, want := range []string{
		`server "s": envFile.A (` + file + `:2): secret "gone" is not available`,
		`server "s": envFile.C (` + file + `:3): "" is not the name of a secret`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

func TestAllProblemsAreReportedTogether(t *testing.T) {
	e := Entry{
		Server: "s", Command: "no-such-command", Args: []string{"${NO1}"}, Cwd: "/no/such/folder",
		EnvFile: "/no/such/file", Env: map[string]string{"A": "${NO2}", "B": "vault:k", "C D": ""},
	}
	_, err := Build(t.Context(), e, unixHost(t), nil)
	problems, _ := errors.AsType[Errors](err)
	var fields []string
	for _, problem := range problems {
		fields = append(fields, problem.Field)
	}
	want := []string{"envFile", "env.A", "env.B", "env.C D", "cwd", "args[0]", "command"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}
	for _, kind := range []error{ErrUnset, ErrSecret, ErrNotFound, ErrCwd, ErrEnvFile, ErrInvalid} {
		if !errors.Is(err, kind) {
			t.Errorf("%v is not among the problems", kind)
		}
	}
}

// What references in the names of files have become is shown as it was written.
func TestProblemsHoldNoSecret(t *testing.T) {
	const short, long = "c4n4ry-\"quoted\"", "c4n4ry-\"quoted\"-and-longer"
	for field, e := range map[string]Entry{
		"command": {Command: "/no/${A_TOKEN}/${B_TOKEN}"}, "name": {Command: "no-${B_TOKEN}"},
		"cwd":     {Command: "/bin/sh", Cwd: "/no/such/${A_TOKEN}/${B_TOKEN}"},
		"envFile": {Command: "/bin/sh", EnvFile: "/no/such/${B_TOKEN}"},
	} {
		e.Server = "s"
		_, err := Build(t.Context(), e, unixHost(t, "A_TOKEN="+short, "B_TOKEN="+long), nil)
		problems, ok := errors.AsType[Errors](err)
		if !ok || len(problems) != 1 {
			t.Fatalf("%s: %v", field, err)
		}
		for _, text := range []string{err.Error(), problems[0].Subject, fmt.Sprintf("%+v", problems[0])} {
			if strings.Contains(text, "c4n4ry") || !strings.Contains(text, "${B_TOKEN}") {
				t.Errorf("%s: %s", field, text)
			}
		}
	}
}

func TestEnvFileTooLarge(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "big.env", strings.Repeat("#\n", maxEnvFile/2)+"#", 0o600)
	_, err := Build(t.Context(), Entry{Command: "/bin/sh", EnvFile: "big.env", Dir: dir}, unixHost(t), nil)
	if !errors.Is(err, ErrEnvFile) || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

func TestSecretsSeeTheServerAndTheContext(t *testing.T) {
	cause := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	vault := secretFunc(func(ctx context.Context, server, key string) (string, error) {
		return "", fmt.Errorf("%s/%s: %w", server, key, context.Cause(ctx))
	})
	e := Entry{Server: "s", Command: "/bin/sh", Env: map[string]string{"A": "vault:k"}}
	_, err := Build(ctx, e, unixHost(t), vault)
	if !errors.Is(err, cause) || !errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), "s/k: stopping") {
		t.Errorf("got %v", err)
	}
}

// secretFunc is a function as a vault.
type secretFunc func(ctx context.Context, server, key string) (string, error)

func (f secretFunc) Stores() []string { return nil }

func (f secretFunc) Secret(ctx context.Context, server, key string) (string, error) {
	return f(ctx, server, key)
}

func TestWorkingDirWithoutAHome(t *testing.T) {
	host := Host{Env: []string{"HOME=/no/such/home", "PATH=/bin"}, GOOS: "linux"}
	spec := mustBuild(t, Entry{Server: "s", Command: "sh"}, host, nil)
	if spec.Dir != "/" || len(spec.Warnings) != 1 {
		t.Errorf("working in %s with warnings %q", spec.Dir, spec.Warnings)
	}
	_, err := Build(t.Context(), Entry{Server: "s", Command: "~/x"}, Host{GOOS: "linux"}, nil)
	if !errors.Is(err, ErrUnset) || !strings.Contains(err.Error(), `"HOME"`) {
		t.Errorf("got %v", err)
	}
}

func TestTermux(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "com.termux", "usr")
	library := writeFile(t, prefix, "lib/libtermux-exec.so", "", 0o644)
	host := Host{GOOS: "android", Env: []string{
		"PATH=/bin", "PREFIX=" + prefix, "LD_LIBRARY_PATH=/l", "ANDROID_DATA=/data",
		"ANDROID_ROOT=/system", "SECRET_X=1",
	}}
	e := Entry{Server: "s", Command: "sh"}
	want := map[string]string{
		"PATH": "/bin", "PREFIX": prefix, "LD_LIBRARY_PATH": "/l", "LD_PRELOAD": library,
		"ANDROID_DATA": "/data", "ANDROID_ROOT": "/system",
	}
	spec := mustBuild(t, e, host, nil)
	if diff := cmp.Diff(want, values(spec)); diff != "" {
		t.Error(diff)
	}
	if o := origins(spec)["LD_PRELOAD"]; o != OriginTermux {
		t.Errorf("LD_PRELOAD is from %s", o)
	}
	host.Env = append(host.Env, "LD_PRELOAD=/mine.so")
	if got := values(mustBuild(t, e, host, nil))["LD_PRELOAD"]; got != "/mine.so" {
		t.Errorf("LD_PRELOAD is %q", got)
	}
	e.Env = map[string]string{"LD_PRELOAD": "/entry.so"}
	if got := values(mustBuild(t, e, host, nil))["LD_PRELOAD"]; got != "/entry.so" {
		t.Errorf("LD_PRELOAD is %q", got)
	}
}

// TestNothingPrintsAValue prints a Spec, and its parts, in every way.
func TestNothingPrintsAValue(t *testing.T) {
	const secret = "s3cr3t-value"
	e := Entry{
		Server: "s", Command: "/bin/sh", Args: []string{"${MY_TOKEN}"},
		Env: map[string]string{"A": "vault:k", "B": secret},
	}
	spec := mustBuild(t, e, unixHost(t, "MY_TOKEN="+secret), vaultMap{"s/k": secret})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{spec, *spec, spec.Vars, spec.Vars[0], spec.Secrets, spec.Args, []*Spec{spec}} {
			text := fmt.Sprintf(verb, value)
			if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%s of %T shows the secret", verb, value)
			}
		}
	}
	for _, value := range []any{spec, spec.Secrets, spec.Args, spec.Vars} {
		text, err := json.Marshal(value)
		if err != nil || strings.Contains(string(text), secret) {
			t.Errorf("JSON of %T: %s, %v", value, text, err)
		}
	}
	if !slices.Contains(spec.Environ(), "A="+secret) || spec.Args[1] != secret {
		t.Error("the child does not get the secret")
	}
}

func TestSpecAsText(t *testing.T) {
	host := unixHost(t)
	e := Entry{Server: "s", Command: "sh", Args: []string{"-c", ":"}, Env: map[string]string{"A": "1"}}
	spec := mustBuild(t, e, host, nil)
	want := `server "s": /usr/bin/sh with 2 arguments in ` + homeOf(host) + ", isolated environment of A HOME PATH"
	if got := spec.String(); got != want {
		t.Errorf("got %s", got)
	}
	var decoded map[string]any
	text, err := json.Marshal(spec)
	if err != nil || json.Unmarshal(text, &decoded) != nil {
		t.Fatal(err)
	}
	keys := slices.Sorted(maps.Keys(decoded))
	if want := []string{"dir", "mode", "path", "search_path", "server", "vars"}; !slices.Equal(keys, want) {
		t.Errorf("got %s", text)
	}
}

// TestAllowlistIsDocumented wants each variable that a child gets in docs/config.md.
func TestAllowlistIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(allowed(newPlatform("windows"), false), allowed(newPlatform("linux"), true)...) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/config.md lacks %s", name)
		}
	}
}
