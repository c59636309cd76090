// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/test/rig"
)

// TestTour has the same client program, made with the Go SDK and with the
// TypeScript SDK, use every feature in both eras: of two servers directly, and of
// the same two through /mcp. Whatever it gets directly, it gets through garra.
//
// The fixture is there twice, since garra speaks the handshake era to a server that
// knows both, unless its entry says otherwise. The reference server knows that era
// alone, so what a client of the stateless era gets of it through garra is compared
// with what one of the handshake era gets directly.
func TestTour(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	fixture, tour := h.Path("everything-server"), h.Path("tour")
	for file, source := range map[string]string{fixture: everythingServer, tour: "../clients/tour"} {
		if built := rig.Run(t, exec.CommandContext(t.Context(), "go", "build", "-o", file, source)); built.Code != 0 {
			t.Fatalf("building %s: %s", source, built.Stderr)
		}
	}
	reference := rig.Absolute(t, rig.ServersFolder, "node_modules", ".bin", "mcp-server-everything")
	h.Configure(map[string]rig.Entry{
		"fixture":    {"command": fixture, "forwardRoots": true},
		"everything": {"command": reference, "forwardRoots": true},
		"modern":     {"command": fixture, "forwardRoots": true, "protocolEra": "modern"},
	})
	g := h.Serve("--no-auth")
	g.Ready("fixture", "everything", "modern")

	greeted, stateless := serveFixture(t, h, fixture, "-stateless=false"), serveFixture(t, h, fixture)
	everything := serveReference(t, h, reference)
	programs := map[string][]string{
		"go":         {tour},
		"typescript": {"node", rig.Absolute(t, rig.ClientsFolder, "tour", "tour.mjs")},
	}
	for _, sdk := range slices.Sorted(maps.Keys(programs)) { // one after the other: roots are those of one client
		for _, j := range []journey{
			{"fixture", "fixture", "legacy", greeted, "legacy"},
			{"fixture", "fixture", "modern", stateless, "modern"},
			{"fixture", "modern", "modern", stateless, "modern"},
			{"everything", "everything", "legacy", everything, "legacy"},
			{"everything", "everything", "modern", everything, "legacy"},
		} {
			t.Run(sdk+"/"+j.server+"/"+j.era, func(t *testing.T) {
				direct := travel(t, h, programs[sdk], j, true)
				j.compare(t, direct, travel(t, h, programs[sdk], j.through(g.URL("")), false), sdk)
			})
		}
	}
}

// A journey is one run of the program, and the one with which it is compared.
type journey struct {
	steps          string // the file of steps, and the server that they are for
	server, era    string // behind garra, and the era of the client
	url, directEra string
}

func (j journey) through(url string) journey {
	j.url = url
	return j
}

// A stage is what the program prints of a step.
type stage struct {
	Step struct {
		Do, Name, URI, Era string
		Await              map[string]int
	}
	Got   any
	Heard map[string][]any
}

func (s stage) String() string {
	return strings.TrimSpace(s.Step.Do + " " + s.Step.Name + s.Step.URI)
}

// travel runs the program and returns what it printed, without what steps are
// made in one of the compared eras alone.
func travel(t *testing.T, h *rig.Home, program []string, j journey, direct bool) []stage {
	t.Helper()
	era, prefix := j.era, j.server+"__"
	if direct {
		era, prefix = j.directEra, ""
	}
	args := append(slices.Clone(program[1:]), "-url", j.url, "-era", era, "-prefix", prefix,
		"-steps", rig.Absolute(t, rig.ClientsFolder, "tour", j.steps+".json"))
	out := rig.Run(t, h.Program(program[0], args...))
	if out.Code != 0 {
		t.Fatalf("%s %q: code %d\n%s%s", program[0], args, out.Code, out.Stdout, out.Stderr)
	}
	var stages []stage
	for line := range strings.Lines(out.Stdout) {
		var s stage
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if j.era == j.directEra || s.Step.Era == "" {
			stages = append(stages, s)
		}
	}
	return stages
}

// compare compares what came directly with what came through garra. A difference
// must be one of those that are meant to be.
func (j journey) compare(t *testing.T, direct, through []stage, sdk string) {
	t.Helper()
	if len(direct) != len(through) || len(direct) < 20 {
		t.Fatalf("%d steps directly, and %d through garra", len(direct), len(through))
	}
	wanted := meant(j, sdk)
	for i, d := range direct {
		step := d.String()
		a, b := j.plain(d, ""), j.plain(j.pick(t, d, through[i]), j.server+"__")
		got := cmp.Diff(a, b)
		switch reason, differs := wanted[step]; {
		case differs && a.Heard != nil && len(a.Heard["asked"]) == 0 && !cmp.Equal(a.Heard, b.Heard):
			t.Errorf("%s: what is heard differs (- directly, + through garra):\n%s", step, got)
		case got != "" && !differs:
			t.Errorf("%s: differs (- directly, + through garra):\n%s", step, got)
		case got == "" && differs:
			t.Errorf("%s: does not differ, though: %s", step, reason)
		}
	}
	t.Logf("%d steps, %d of them differ as they are meant to", len(direct), len(wanted))
}

// meant returns the steps whose outcome is another one through garra, each with
// its reason.
func meant(j journey, sdk string) map[string]string {
	if j.server == "everything" && sdk == "typescript" {
		return map[string]string{"connect": "tasks, an experiment of that revision, are of /mcp/NAME alone"}
	}
	if j.server == "everything" {
		return nil // the Go SDK knows nothing of tasks
	}
	list := map[string]string{
		"call test_tool_with_progress": "the text is the token, and garra gives each call one of its own",
		"call nothing":                 "garra answers itself for what no server has, with the name that was asked for",
		"prompt nothing":               "garra answers itself for what no server has, with the name that was asked for",
		"read test://nothing":          "garra answers itself for what no server has",
	}
	if j.era == "legacy" || j.server == "modern" {
		return list
	}
	const asks = "the server can't ask a client of this era; garra speaks the other one to it, so it can"
	list["call test_sampling"] = asks
	list["call test_elicitation"] = asks
	if sdk == "typescript" {
		list["call test_input_required_result_multi_round"] = "in the handshake era, which garra speaks to the " +
			"server, its SDK asks only once, and gives the second question as a result that only Go takes for one"
	}
	return list
}

// pick leaves of a stage what has something to compare with: /mcp has the items of
// all servers, and tells of their changes.
func (j journey) pick(t *testing.T, direct, through stage) stage {
	t.Helper()
	if direct.Step.Do == "connect" {
		return superset(direct, through)
	}
	if direct.Step.Do != "list" {
		return through
	}
	all, _ := through.Got.(map[string]any)
	items, ok := all["items"].([]any)
	if !ok {
		return through
	}
	wanted, _ := direct.Got.(map[string]any)
	list, _ := wanted["items"].([]any)
	known := make(map[string]bool)
	for _, item := range list {
		known[identity(item, "")] = true
	}
	if len(known) == 0 {
		t.Errorf("%s: nothing to compare", direct)
	}
	through.Got = map[string]any{"items": slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		return !known[identity(item, j.server+"__")]
	})}
	return through
}

// superset leaves the capabilities that the server has itself.
func superset(direct, through stage) stage {
	d, _ := direct.Got.(map[string]any)
	g, _ := through.Got.(map[string]any)
	wanted, _ := d["capabilities"].(map[string]any)
	all, _ := g["capabilities"].(map[string]any)
	through.Got = map[string]any{"protocolVersion": g["protocolVersion"], "capabilities": common(wanted, all)}
	return through
}

// common returns the members of a JSON object that another one has too.
func common(wanted, all map[string]any) map[string]any {
	some := make(map[string]any)
	for name, value := range all {
		w, ok := wanted[name]
		if !ok {
			continue
		}
		inner, isObject := w.(map[string]any)
		object, isToo := value.(map[string]any)
		if isObject && isToo {
			value = common(inner, object)
		}
		some[name] = value
	}
	return some
}

// identity is what tells an item of a list from others.
func identity(item any, prefix string) string {
	o, _ := item.(map[string]any)
	for _, key := range []string{"uri", "uriTemplate"} {
		if text, ok := o[key].(string); ok {
			return text
		}
	}
	name, _ := o["name"].(string)
	return strings.TrimPrefix(name, prefix)
}

// An outcomeOfStage is what of a stage is compared.
type outcomeOfStage struct {
	Got   any
	Heard map[string][]any
}

// plain returns what of a stage is compared: names are those of the server, and
// loggers too, which begin with its name on /mcp. Who answered is garra there; and
// where the eras differ, so does what only the stateless one says of a result.
func (j journey) plain(s stage, prefix string) outcomeOfStage {
	got, isObject := s.Got.(map[string]any)
	if isObject {
		got = maps.Clone(got)
		if meta, ok := got["_meta"].(map[string]any); ok {
			meta = maps.Clone(meta)
			delete(meta, "io.modelcontextprotocol/serverInfo")
			if got["_meta"] = meta; len(meta) == 0 {
				delete(got, "_meta")
			}
		}
		for _, member := range []string{"resultType", "ttlMs", "cacheScope"} {
			if j.era != j.directEra {
				delete(got, member)
			}
		}
		if s.Step.Do == "connect" && j.era != j.directEra {
			delete(got, "protocolVersion")
		}
		if items, ok := got["items"].([]any); ok {
			got["items"] = j.renamed(items, prefix)
		}
		s.Got = got
	}
	heard := maps.Clone(s.Heard)
	if s.Step.Await["changed"] == 0 {
		delete(heard, "changed") // a server says so at its start, and who comes later doesn't hear it
	}
	if prefix != "" && heard["log"] != nil {
		heard["log"] = j.unlogged(heard["log"])
	}
	if len(heard) == 0 {
		heard = nil
	}
	return outcomeOfStage{s.Got, heard}
}

// renamed sorts items, and takes what garra puts before names off them.
func (j journey) renamed(items []any, prefix string) []any {
	items = slices.Clone(items)
	for i, item := range items {
		o, _ := item.(map[string]any)
		o = maps.Clone(o)
		name, _ := o["name"].(string)
		o["name"] = strings.TrimPrefix(name, prefix)
		if j.era != j.directEra {
			delete(o, "execution") // of tasks, which that era doesn't have there
		}
		items[i] = o
	}
	slices.SortFunc(items, func(a, b any) int { return strings.Compare(identity(a, ""), identity(b, "")) })
	return items
}

// unlogged leaves the log of the server, under the names of its own loggers.
func (j journey) unlogged(log []any) []any {
	var own []any
	for _, message := range log {
		o, _ := message.(map[string]any)
		o = maps.Clone(o)
		logger, _ := o["logger"].(string)
		rest, ok := strings.CutPrefix(logger, j.server)
		if !ok {
			continue
		}
		if o["logger"] = strings.TrimPrefix(rest, "/"); rest == "" {
			delete(o, "logger")
		}
		own = append(own, o)
	}
	return own
}

// serveReference runs the reference server over HTTP until the end of the test.
func serveReference(t *testing.T, h *rig.Home, path string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := h.Program(path, "streamableHttp")
	cmd.Env = append(cmd.Env, fmt.Sprintf("PORT=%d", port))
	cmd.Stderr = new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // gone is as good
		_ = cmd.Wait()         // killed
	})
	url = fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	rig.Eventually(t, rig.Patience, "the reference server listens", func() bool {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	})
	return url
}
