// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"strings"

	"github.com/garraia/garra/test/rig"
)

// badEnders are servers that end when they shouldn't.
func badEnders(h *rig.Home) []misbehaviour {
	return []misbehaviour{
		{
			name: "crashes-in-a-call", entry: bad(), drive: crashing("crash", `{"code":3}`),
			state: "parked", says: []string{"exit status 3"},
		},
		{
			name: "kills-itself", entry: bad(), drive: crashing("kill_self", `{}`),
			state: "parked", says: []string{"signal: killed"},
		},
		{
			name: "crashes-in-a-frame", entry: bad(),
			drive: crashing("half_answer", `{"code":4}`),
			state: "parked", says: []string{"exit status 4"},
		},
		{
			name: "answers-and-exits", entry: bad(), drive: func(v *victim) {
				v.answers("answer_and_exit", `{"code":5}`, "bye")
			},
			state: "parked", says: []string{"exit status 5"},
		},
		{
			name: "closes-stdout", entry: bad(), drive: crashing("close_stdout", `{}`),
			state: "parked", says: []string{"closed its standard output"},
		},
		{
			name: "closes-stdin", entry: shell(`exec "$0" "$@" --ignore-eof`), drive: closesInput,
			state: "parked", says: []string{"closed its standard input"},
		},
		{
			name: "never-ends-its-line", entry: bad("--no-newline-flood", "-1").With("cpuLimit", 1),
			drive: crashing("echo", `{}`),
			state: "parked", says: []string{"broke its standard output"},
		},
		{
			name: "leaks-memory", entry: bad("--leak", "4").With("memoryLimitMb", 256).With("cpuLimit", 1),
			state: "parked", reason: "memory",
			says: []string{"memory:", "memoryLimitMb is 256", "set memoryLimitMb to"},
		},
		{
			name: "changes-its-era", entry: changing(h).With("maxRestarts", 3), drive: changesEra,
			state: "ready", restarts: 1,
		},
	}
}

// crashing calls a tool during which the server ends.
func crashing(tool, arguments string) func(*victim) {
	return func(v *victim) { v.fails(tool, arguments, "server.crashed") }
}

// closesInput has a server close its input and live on: what is sent to it next
// shows that.
func closesInput(v *victim) {
	v.t.Helper()
	v.answers("close_stdin", `{}`, "closed")
	v.call("echo", `{}`)
}

// changing is an entry of a server that has a handshake at its first start, and none
// any more at the next.
func changing(h *rig.Home) rig.Entry {
	const script = `if [ -e "$SEEN" ]; then exec "$0" "$@" --no-handshake; fi; touch "$SEEN"; exec "$0" "$@"`
	return shell(script).With("env", map[string]string{"SEEN": h.Path("changed-its-era")})
}

func changesEra(v *victim) {
	v.t.Helper()
	v.echoes()
	pid := v.gateway.Server(v.name).PID
	v.fails("kill_self", `{}`, "server.crashed")
	v.gateway.ReadyAnew(v.name, pid)
}

// badNeighbours are servers that harm the machine, or stay when they should go. What
// must be shown of them is that they are gone when their entries are.
func badNeighbours(h *rig.Home) []misbehaviour {
	echoes := (*victim).echoes
	list := []misbehaviour{
		{name: "ignores-eof-and-term", entry: bad("--ignore-eof", "--ignore-term"), drive: echoes},
		{name: "leaves-orphans", entry: bad("--fork-worker", h.Path("orphan")), drive: echoes},
		{name: "leaves-a-session", entry: bad("--setsid-worker", h.Path("session")), drive: echoes},
		{name: "is-behind-a-shell", entry: shell(`exec 3<&0; "$0" "$@" <&3 & wait`, "--ignore-eof"), drive: echoes},
		{
			name: "is-behind-a-deaf-shell", entry: shell(`trap '' TERM; exec 3<&0; "$0" "$@" <&3 & wait; wait`,
				"--ignore-eof", "--ignore-term"), drive: echoes,
		},
		{name: "is-in-a-session", entry: shell(`exec setsid --wait "$0" "$@"`), drive: echoes},
		{name: "forks-twice", entry: shell(`((sleep 1000 >/dev/null 2>&1 &) &); exec "$0" "$@"`), drive: echoes},
		{name: "detaches", entry: shell(`(setsid sleep 1000 >/dev/null 2>&1 &); exec "$0" "$@"`), drive: echoes},
		{name: "makes-zombies", entry: bad("--zombies", "50"), drive: echoes},
		{
			name:  "writes-to-descriptors",
			entry: shell(`for fd in 3 4 5 6 7 8 9; do eval "echo garbage >&$fd" 2>/dev/null; done; exec "$0" "$@"`),
			drive: echoes,
		},
		{name: "opens-files", entry: bad().With("maxOpenFiles", 64), drive: opensFiles},
		{name: "burns-beside", entry: shell(`(while :; do :; done) & exec "$0" "$@"`), drive: echoes},
	}
	for i := range list {
		list[i].state = "ready"
	}
	return append(list,
		// Whether these can reach their guardian is the system's to say.
		misbehaviour{name: "stops-its-guardian", entry: shell(`kill -STOP $PPID; exec "$0" "$@"`)},
		misbehaviour{name: "kills-its-guardian", entry: shell(`kill -KILL $PPID; exec "$0" "$@"`)},
		// What becomes of one that is stopped for long is not for a test of seconds.
		misbehaviour{name: "stops-itself", entry: quickly(bad()), drive: func(v *victim) {
			v.answers("stop_self", `{}`, "stopping")
			v.fails("echo", `{}`, "call.timeout")
		}},
	)
}

// opensFiles has a server open more files than it may.
func opensFiles(v *victim) {
	v.t.Helper()
	m := v.call("open_files", `{"n":1000}`)
	if !strings.Contains(string(m.Result), "too many open files") {
		v.t.Errorf("%.300s%.300s", m.Result, m.Error)
	}
	v.echoes()
}
