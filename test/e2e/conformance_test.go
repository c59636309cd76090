// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"maps"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/test/rig"
)

// everythingServer is the conformance fixture of the Go SDK, in the version of
// go.mod.
const everythingServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// unchecked returns how many checks of which scenario the conformance suite
// makes of the fixture itself and not of garra in front of it.
//
// garra answers a POST with one JSON message when its answer is the first thing
// that comes, which the specification leaves to the server; the fixture always
// answers with an event stream. Both scenarios look into such streams: into those
// of three concurrent tools/list, and into one that the server closes before the
// answer (not scored for this revision). Without a stream they check nothing.
func unchecked() map[string]int {
	return map[string]int{"server-sse-multiple-streams": 1, "server-sse-polling": 1}
}

// TestConformance runs the conformance suite through garra, for clients and
// servers of either era, and for revision 2025-11-25 also against the fixture
// itself. A failure that is expected is in a baseline file, and a check that is
// not made in unchecked.
func TestConformance(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	fixture := h.Path("everything-server")
	build := rig.Run(t, exec.CommandContext(t.Context(), "go", "build", "-o", fixture, everythingServer))
	if build.Code != 0 {
		t.Fatalf("building the fixture: %s", build.Stderr)
	}
	greeted, stateless := serveFixture(t, h, fixture, "-stateless=false"), serveFixture(t, h, fixture)
	h.Configure(map[string]rig.Entry{
		"fixture":     {"command": fixture},
		"greeted-web": {"url": greeted, "protocolEra": "legacy", "forwardRoots": true},
		"modern-web":  {"url": stateless, "protocolEra": "modern", "forwardRoots": true},
		"legacy":      {"command": fixture, "protocolEra": "legacy", "forwardRoots": true},
		"modern":      {"command": fixture, "protocolEra": "modern", "forwardRoots": true},
	})
	g := h.Serve("--no-auth")

	const before, since = "2025-11-25", "2026-07-28"
	direct := conformance(t, h, suite{"direct", before, "conformance-baseline.yml"}, greeted)
	through := conformance(t, h, suite{"through", before, "conformance-baseline.yml"}, g.URL("fixture"))
	conformance(t, h, suite{"modern", since, "conformance-baseline.yml"}, g.URL("modern"))
	conformance(t, h, suite{"legacy-server", since, "conformance-legacy-server.yml"}, g.URL("legacy"))
	conformance(t, h, suite{"modern-server", before, "conformance-modern-server.yml"}, g.URL("modern"))
	conformance(t, h, suite{"greeted-web", before, "conformance-baseline.yml"}, g.URL("greeted-web"))
	conformance(t, h, suite{"modern-web", since, "conformance-baseline.yml"}, g.URL("modern-web"))

	missing := maps.Clone(direct)
	for scenario, passed := range through {
		if missing[scenario] -= passed; missing[scenario] == 0 {
			delete(missing, scenario)
		}
	}
	if d := cmp.Diff(unchecked(), missing); d != "" {
		t.Errorf("checks that pass directly and not through garra:\n%s", d)
	}
}

// serveFixture runs the fixture over HTTP until the end of the test.
func serveFixture(t *testing.T, h *rig.Home, fixture string, flags ...string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := h.Program(fixture, append(flags, "-http="+address)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // gone is as good
		_ = cmd.Wait()         // killed
	})
	rig.Eventually(t, rig.Patience, "the fixture listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + address + "/"
}

var summary = regexp.MustCompile(`(?m)^[✓✗] ([-\w./]+): (\d+) passed, (\d+) failed`)

// A suite is one run of the conformance suite.
type suite struct {
	name, revision string
	baseline       string // the file of expected failures
}

// conformance runs a suite and returns how many checks of each scenario pass. It
// ends with an error for a scenario that fails and is not in the baseline, and
// for one that is there and passes; scenarios of extensions aren't scored.
func conformance(t *testing.T, h *rig.Home, s suite, url string) map[string]int {
	t.Helper()
	out := rig.Run(t, installed(h, "conformance", "server", "--url", url, "--requirements", s.revision,
		"--expected-failures", rig.Absolute(t, s.baseline), "-o", h.Path(s.name)))
	passed, total := make(map[string]int), 0
	for _, match := range summary.FindAllStringSubmatch(out.Stdout, -1) {
		n, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		passed[match[1]] = n
	}
	for _, n := range passed {
		total += n
	}
	t.Logf("%s, %s: %d scenarios, %d checks passed", s.name, s.revision, len(passed), total)
	if out.Code != 0 || len(passed) < 30 {
		t.Errorf("%s, %s: code %d\n%s%s", s.name, s.revision, out.Code, out.Stdout, out.Stderr)
	}
	return passed
}
