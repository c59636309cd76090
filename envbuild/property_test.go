// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestIsolationHolds builds entries at random. Whatever garra's environment
// is, an isolated child has names of the allowlist and names of its entry, and
// sees a value of garra's only by the allowlist or through a reference.
func TestIsolationHolds(t *testing.T) {
	home := t.TempDir()
	name := rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,6}`)
	known := append(allowed(newPlatform("linux"), false), "GITHUB_TOKEN", "HTTPS_PROXY", "LD_PRELOAD", "NODE_OPTIONS")
	rapid.Check(t, func(t *rapid.T) {
		host := Host{GOOS: "linux", Home: home}
		for i, n := range rapid.SliceOf(rapid.OneOf(name, rapid.SampledFrom(known))).Draw(t, "host") {
			host.Env = append(host.Env, fmt.Sprintf("%s=/host-%d", n, i))
		}
		e := Entry{
			Server: "s", Command: "/bin/sh",
			Env: rapid.MapOf(name, rapid.StringMatching(`[a-z$ {}]{0,8}`)).Draw(t, "env"),
		}
		spec, err := Build(t.Context(), e, host, nil)
		if err != nil {
			return // a reference to a variable that this host lacks
		}
		for _, v := range spec.Vars {
			checkOrigin(t, v, e)
		}
		if !slices.IsSorted(spec.Names()) || len(spec.Environ()) != len(spec.Vars) {
			t.Fatalf("names are %q", spec.Names())
		}
	})
}

// checkOrigin wants a variable to be what its origin says.
func checkOrigin(t *rapid.T, v Var, e Entry) {
	text, own := e.Env[v.Name]
	fromHost := strings.HasPrefix(v.value, "/host-")
	switch v.Origin {
	case OriginHost:
		if own || !fromHost || !slices.Contains(allowed(newPlatform("linux"), false), v.Name) {
			t.Fatalf("%v is not by the allowlist", v)
		}
	case OriginDefault:
		if own || fromHost || v.Name != "PATH" && v.Name != "HOME" {
			t.Fatalf("%v is no default", v)
		}
	case OriginEnv:
		if !own || strings.Contains(v.value, "/host-") && !strings.Contains(text, "${") {
			t.Fatalf("%v is not the entry's", v)
		}
	default:
		t.Fatalf("%v has an origin that can't be", v)
	}
}

// TestBuildFromManyGoroutines is for the race detector.
func TestBuildFromManyGoroutines(t *testing.T) {
	host := unixHost(t, "LANG=C")
	file := writeFile(t, t.TempDir(), ".env", "F=vault:k\n", 0o600)
	e := Entry{Server: "s", Command: "sh", EnvFile: file, Env: map[string]string{"A": "${LANG}"}}
	vault := vaultMap{"s/k": "value"}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			spec, err := Build(t.Context(), e, host, vault)
			if err != nil || len(spec.Vars) != 5 {
				t.Errorf("got %v, %v", spec, err)
			}
		})
	}
	group.Wait()
}
