// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

var (
	kills    = flag.Int("kills", 100, "how often TestKilledAtAnyMoment kills garra")
	killSeed = flag.Uint64("kill-seed", uint64(time.Now().UnixNano()), "what chance it begins with")
)

const (
	lanes = 4 // homes in which garra is killed at the same time

	// soon is how long anything of garra's may live on after it was killed.
	soon = 2 * time.Second
	// hurry is how many of a hundred kills may take longer, up to rig.Promptly: on a
	// busy machine what is to kill may not run for a second.
	hurry = 3
)

// TestKilledAtAnyMoment kills garra with SIGKILL at random moments of its starts,
// calls, restarts, crashes, edits and stops. Soon nothing of it is left, neither
// processes nor files, and the next start finds nothing in its way.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Logf("-kill-seed %d", *killSeed)
	took := make(chan time.Duration, *kills)
	var begun atomic.Int64 // of the kills; a slow home does fewer
	t.Run("lanes", func(t *testing.T) {
		for number := range lanes {
			t.Run(fmt.Sprint(number), func(t *testing.T) {
				t.Parallel()
				k := newKiller(t, number)
				for int(begun.Add(1)) <= *kills {
					took <- k.once()
				}
				k.last()
			})
		}
	})
	close(took)
	var all times
	late := 0
	for d := range took {
		all = append(all, d)
		if d > soon {
			late++
		}
	}
	t.Logf("all was gone after: %s; %d times after more than %s", all, late, soon)
	if late*100 > hurry*len(all) {
		t.Errorf("too often something was left after %s", soon)
	}
}

// A killer kills the garra of one home again and again.
type killer struct {
	*rig.Home
	t       *testing.T
	chance  *rand.Rand
	binary  string
	entries map[string]rig.Entry
	edition int
	token   string
}

func newKiller(t *testing.T, number int) *killer {
	t.Helper()
	h := rig.NewHome(t, "GARRAIA_VAULT_PASSPHRASE=only-for-tests")
	k := &killer{
		Home: h, t: t, chance: rand.New(rand.NewPCG(*killSeed, uint64(number))), binary: h.OwnBinary(),
		entries: make(map[string]rig.Entry),
	}
	all := wrapped()
	for _, name := range [lanes][]string{
		{"shell"}, {"limited"}, {"detached", "twice", "limited"}, {"shell", "session", "detached"},
	}[number] {
		k.entries[name] = all[name]
	}
	switch number {
	case 0:
		k.entries["npx"] = rig.Npx(t, "@modelcontextprotocol/server-memory@2026.8.31")
	case 1:
		k.fillVault()
		k.entries["has-files"] = rig.Misbehaving().With("env", map[string]string{"KEY": "${vaultfile:KEY}"})
	}
	k.configure(k.entries)
	g := h.Serve("--log-level", "warn")
	k.token = g.Token()
	g.Stop()
	return k
}

// fillVault makes a vault with the secret of one server.
func (k *killer) fillVault() {
	k.t.Helper()
	k.Garra("vault", "init")
	set := k.Command("vault", "set", "mcp.has-files.KEY")
	set.Stdin = strings.NewReader("a secret in a file\n")
	if out := rig.Run(k.t, set); out.Code != 0 {
		k.t.Fatal(out.Stderr)
	}
}

// wrapped are servers that don't go by themselves, each behind something else.
func wrapped() map[string]rig.Entry {
	self, args := misbehave.Command("--ignore-eof", "--ignore-term")
	script := func(text string) rig.Entry {
		return rig.Entry{
			"command": "sh", "args": append([]string{"-c", text, self}, args...), "restartDelaySecs": 0.1,
			"maxRestarts": 1000,
		}
	}
	return map[string]rig.Entry{
		"shell":    script(`exec 3<&0; "$0" "$@" <&3 & sleep 1000 & wait`),
		"session":  script(`exec setsid --wait "$0" "$@"`),
		"detached": script(`(setsid sleep 1000 >/dev/null 2>&1 &); exec "$0" "$@"`),
		"twice":    script(`((sleep 1000 >/dev/null 2>&1 &) &); exec "$0" "$@"`),
		"limited":  script(`exec "$0" "$@"`).With("memoryLimitMb", 512),
	}
}

// configure writes mcp.json; each time the entries are others.
func (k *killer) configure(entries map[string]rig.Entry) {
	k.edition++
	edited := make(map[string]rig.Entry)
	for name, e := range entries {
		env := map[string]string{"EDITION": fmt.Sprint(k.edition)}
		if given, ok := e["env"].(map[string]string); ok {
			maps.Copy(env, given)
		}
		edited[name] = e.With("env", env)
	}
	k.Replace("mcp.json", rig.MCPJSON(k.t, edited))
}

// A moment brings a gateway to where it is killed within some time.
type moment struct {
	name   string
	reach  func(*killer, *rig.Gateway)
	within time.Duration
}

func moments() []moment {
	return []moment{
		{"start", func(*killer, *rig.Gateway) {}, 500 * time.Millisecond},
		{"calls", (*killer).call, 100 * time.Millisecond},
		{"restarts", (*killer).restart, 300 * time.Millisecond},
		{"crashes", (*killer).crash, 300 * time.Millisecond},
		{"removals", (*killer).remove, 300 * time.Millisecond},
		{"stop", (*killer).stop, 300 * time.Millisecond},
	}
}

// once starts garra, kills it, and returns how long something of it was left.
func (k *killer) once() time.Duration {
	k.t.Helper()
	k.configure(k.entries)
	g := k.Begin("--log-level", "warn")
	m := moments()[k.chance.IntN(len(moments()))]
	if m.reach(k, g); k.t.Failed() {
		k.t.Fatalf("before a kill at: %s", m.name)
	}
	<-time.After(time.Duration(k.chance.Int64N(int64(m.within)))) // the moment itself
	if !g.Gone() {                                                // a stop may be quick
		g.Signal(syscall.SIGKILL)
	}
	killed := time.Now()
	rig.Eventually(k.t, rig.Promptly, "nothing is left after a kill at: "+m.name, func() bool {
		return len(k.left()) == 0
	})
	took := time.Since(killed)
	if files := k.files(); len(files) > 0 {
		k.t.Errorf("after a kill at: %s: %q", m.name, files)
	}
	return took
}

// left returns the processes that are known by what they execute, or by their
// environment.
func (k *killer) left() []rig.Process {
	return append(rig.Executing(k.binary), rig.ProcessesOf(k.Dir)...)
}

// files returns the folders for secret files that there are.
func (k *killer) files() []string {
	var found []string
	for _, pattern := range []string{k.Path("run", "garra-*"), "/dev/shm/garra-*"} {
		names, _ := filepath.Glob(pattern) // the pattern is good
		found = append(found, names...)
	}
	return found
}

// call waits for all servers, and calls them until garra is gone.
func (k *killer) call(g *rig.Gateway) {
	k.t.Helper()
	g.Listens()
	g.Ready(slices.Collect(maps.Keys(k.entries))...)
	web := rig.NewWeb(g.URL(""), k.token)
	rig.Greet(k.t, web)
	var calling sync.WaitGroup
	for name := range k.entries {
		calling.Go(func() { // ends with the first call that fails, when garra is gone
			for {
				if _, err := web.Ask(protocol.MethodToolsCall, rig.CallParams(name+"__echo", `{}`), nil); err != nil {
					return
				}
			}
		})
	}
	k.t.Cleanup(calling.Wait)
}

// restart edits all entries, which restarts the servers.
func (k *killer) restart(g *rig.Gateway) {
	k.t.Helper()
	g.Listens()
	g.Ready(slices.Collect(maps.Keys(k.entries))...)
	k.configure(k.entries)
}

// crash kills the main processes of all servers, so that they are started again.
func (k *killer) crash(g *rig.Gateway) {
	k.t.Helper()
	g.Listens()
	g.Ready(slices.Collect(maps.Keys(k.entries))...)
	for _, s := range g.Servers() {
		rig.Signalled(k.t, s.PID, syscall.SIGKILL)
	}
}

// remove takes half of the servers out of the configuration.
func (k *killer) remove(g *rig.Gateway) {
	k.t.Helper()
	g.Listens()
	g.Ready(slices.Collect(maps.Keys(k.entries))...)
	names := slices.Sorted(maps.Keys(k.entries))
	fewer := maps.Clone(k.entries)
	for _, name := range names[:len(names)/2] {
		delete(fewer, name)
	}
	k.configure(fewer)
}

// stop asks garra to end, which it does by and by.
func (k *killer) stop(g *rig.Gateway) {
	k.t.Helper()
	g.Listens()
	g.Ready(slices.Collect(maps.Keys(k.entries))...)
	if err := g.Process.Signal(syscall.SIGTERM); err != nil {
		k.t.Error(err)
	}
}

// last starts garra once more, with everything, and looks for what is left of those
// before when it has ended.
func (k *killer) last() {
	k.t.Helper()
	k.configure(k.entries)
	g := k.Serve("--log-level", "warn")
	g.Ready(slices.Collect(maps.Keys(k.entries))...)
	g.Stop()
	if left := rig.Using(k.Dir); len(left) > 0 {
		k.t.Errorf("these use files of a home whose garra has ended: %v", left)
	}
	if files := k.files(); len(files) > 0 {
		k.t.Errorf("left: %q", files)
	}
	rig.Eventually(k.t, rig.Promptly, "no control group is left of a launcher that has ended", func() bool {
		return len(orphanedGroups(k.t)) == 0
	})
}

// orphanedGroups returns the control groups of launchers that have ended, which their
// names tell: garra-NAMESPACE-PID-START.
func orphanedGroups(t *testing.T) (found []string) {
	t.Helper()
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		var namespace, pid, began int
		if err != nil || !entry.IsDir() { // groups come and go
			return nil
		}
		if n, _ := fmt.Sscanf(entry.Name(), "garra-%d-%d-%d", &namespace, &pid, &began); n != 3 {
			return nil
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
			found = append(found, path)
		}
		return fs.SkipDir
	})
	return found
}
