// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"os"
	"testing"

	"github.com/garraia/garra/test/rig"
)

// neverReady are servers that don't get as far as being called.
func neverReady(t *testing.T, h *rig.Home) []misbehaviour {
	t.Helper()
	const bomb = `i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; wait`
	loop := h.Path("starts-of-a-loop")
	return []misbehaviour{
		{
			name: "exits-with-0-at-once", entry: bad("--exit-at-start"),
			state: "parked",
			says:  []string{"exit status 0", "before it answered initialize", "wrote nothing to stderr"},
		},
		{
			name: "exits-in-10-ms", entry: bad("--exit-after", "10ms", "--exit-code", "3", "--never-init"),
			state: "parked", says: []string{"exit status 3", "before it answered initialize"},
		},
		{
			name: "leaves-a-traceback", entry: bad("--traceback"),
			state: "parked", says: []string{"exit status 1", "ModuleNotFoundError: No module named 'mcp'"},
		},
		{
			name: "crashes-in-a-loop", restarts: 3,
			entry: bad("--exit-at-start", "--exit-code", "7", "--note-start", loop).With("maxRestarts", 3),
			state: "parked", says: []string{"exit status 7"},
			then: func(v *victim) {
				if n := starts(v.t, loop); n != 4 {
					v.t.Errorf("it may be restarted three times and was started %d times", n)
				}
			},
		},
		{
			name: "burns-before-initialize", entry: impatient(bad("--spin")),
			state: "parked", says: []string{"did not answer initialize within 2s", "raise timeoutSecs"},
		},
		{
			name: "never-initializes", entry: impatient(bad("--never-init", "--silent-on-unknown")),
			state: "parked", says: []string{"did not answer initialize within 2s"},
		},
		{
			name: "does-not-read", entry: impatient(shell(`exec sleep 1000`)),
			state: "parked", says: []string{"did not answer initialize within 2s"},
		},
		{
			name: "leader-exits-first", entry: shell(`exec 3<&0; "$0" "$@" <&3 & exit 0`),
			state: "parked", says: []string{"exit status 0"},
		},
		{
			name: "closes-stdout-at-once", entry: shell(`exec >&-; exec sleep 1000`),
			state: "parked", says: []string{"closed its standard output before it answered initialize"},
		},
		{
			name: "closes-stdin-at-once", entry: impatient(shell(`exec <&-; exec sleep 1000`)),
			state: "parked", says: []string{"initialize"}, // which it may have got before
		},
		{
			name:  "refuses-initialize",
			entry: impatient(shell(initialized(`"error":{"code":-32603,"message":"not today"}`))),
			state: "parked", says: []string{"not today"},
		},
		{
			name: "initializes-with-nonsense", entry: shell(initialized(`"result":[1,2]`)),
			state: "parked", says: []string{"its answer to initialize"},
		},
		{
			name: "speaks-no-known-revision", entry: bad("--protocol", "1999-01-01"),
			state: "parked", says: []string{"1999-01-01", "which garra doesn't know"},
		},
		{
			name: "kills-its-group", entry: shell(`kill -TERM 0; exec sleep 1000`),
			state: "parked", says: []string{"signal: terminated"},
		},
		{
			name: "bombs-with-forks", entry: shell(bomb).With("maxProcesses", 40),
			state: "parked", says: []string{"Cannot fork"},
		},
		{
			name: "is-not-there", entry: rig.Entry{"command": "no-such-command-anywhere"},
			state: "failed", says: []string{"no-such-command-anywhere"},
		},
		{
			name: "is-no-program", entry: rig.Entry{"command": script(t, h, "text", "this is no program\x00\n")},
			state: "failed", says: []string{"exec format error"},
		},
		{
			name: "has-no-interpreter", entry: rig.Entry{"command": script(t, h, "lost", "#!/no/such/interpreter\n")},
			state: "failed", says: []string{"interpreter"},
		},
		{
			name: "has-no-folder", entry: rig.Misbehaving().With("cwd", h.Path("no-such-folder")),
			state: "failed", says: []string{"no-such-folder"},
		},
		{
			name: "wants-what-is-not-set", entry: rig.Misbehaving("--instructions", "${CHAOS_IS_NOT_SET}"),
			state: "failed", says: []string{"CHAOS_IS_NOT_SET"},
		},
	}
}

// script writes an executable file.
func script(t *testing.T, h *rig.Home, name, text string) string {
	t.Helper()
	path := h.Path("work", name)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
