// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

// A misbehaviour is one server that misbehaves, and what garra must make of it.
type misbehaviour struct {
	name  string
	entry rig.Entry
	drive func(*victim) // calls it once it is ready; nil when it needs no call

	// What the server comes to. An empty state is any: it is not garra's to say.
	state    string
	says     []string // parts of why it isn't ready
	reason   string   // of the same, for programs
	restarts int
	then     func(*victim) // what else must hold then; may be nil
}

// What burners of processor time get of it, where control groups can be had, and how
// nice they are in any case: what is to be measured is garra, not the scheduler.
const (
	share    = 0.25 // of a core
	niceness = "10"
)

// burdened returns an entry with less of the machine than it would take. One that
// fails is not started again, so that it shows what became of it.
func burdened(e rig.Entry) rig.Entry {
	args := append([]string{"-n", niceness, e["command"].(string)}, e["args"].([]string)...)
	return e.With("command", "nice").With("args", args).With("cpuLimit", share).With("maxRestarts", 0)
}

// bad is an entry of the server that misbehaves by flags.
func bad(flags ...string) rig.Entry { return burdened(rig.Misbehaving(withTools(flags)...)) }

// withTools are flags of a server that has tools and nothing else: what many servers
// have under the same URI is a warning each.
func withTools(flags []string) []string {
	return append([]string{"--caps", `{"tools":{"listChanged":true}}`}, flags...)
}

// shell is an entry of a shell script, to which the command line of that server is
// "$0" "$@".
func shell(script string, flags ...string) rig.Entry {
	path, args := misbehave.Command(withTools(flags)...)
	return burdened(rig.Entry{
		"command": "sh", "args": append([]string{"-c", script, path}, args...), "restartDelaySecs": 0.1,
	})
}

// A victim is a misbehaviour as it runs.
type victim struct {
	*misbehaviour
	t       *testing.T
	gateway *rig.Gateway
	client  *rig.Client
	look    *look
}

// A look is what garra said of all servers last. All that wait share it: for each answer
// garra looks at every process of every server. It is safe for concurrent use.
type look struct {
	gateway *rig.Gateway

	mu      sync.Mutex // guards both below
	at      time.Time
	servers []rig.ServerInfo
}

// lookEvery is how old a look may be.
const lookEvery = 200 * time.Millisecond

// server returns what garra said of a server, after some time.
func (l *look) server(name string, after time.Time) rig.ServerInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.Before(after) || time.Since(l.at) > lookEvery {
		l.at = time.Now()
		l.servers = l.gateway.Servers()
	}
	for _, s := range l.servers {
		if s.Name == name {
			return s
		}
	}
	return rig.ServerInfo{}
}

// reaches waits until the server is in a state, as it is from now on.
func (v *victim) reaches(state string) (now rig.ServerInfo) {
	v.t.Helper()
	begun := time.Now()
	rig.Eventually(v.t, rig.Patience, "it is "+state, func() bool {
		now = v.look.server(v.name, begun)
		return now.State == state && (state != "ready" || now.Tools != nil)
	})
	return now
}

// call calls a tool.
func (v *victim) call(tool, arguments string) *protocol.Message {
	v.t.Helper()
	return v.client.Call(v.name+"__"+tool, arguments)
}

// echoes makes sure that the server serves.
func (v *victim) echoes() {
	v.t.Helper()
	v.answers("echo", `{"text":"still here"}`, "still here")
}

// answers wants a text that holds another.
func (v *victim) answers(tool, arguments, text string) {
	v.t.Helper()
	m := v.call(tool, arguments)
	if got, ok := rig.TextOf(m); !ok || !strings.Contains(got, text) {
		v.t.Errorf("%s answers %.300s%.300s", tool, m.Result, m.Error)
	}
}

// fails wants a failure with a code of garra's.
func (v *victim) fails(tool, arguments, code string) {
	v.t.Helper()
	m := v.call(tool, arguments)
	if got := rig.FailureOf(m); got != code {
		v.t.Errorf("%s fails with %q, not %q: %.500s%.500s", tool, got, code, m.Result, m.Error)
	}
}

// check drives the server and waits until garra says the right thing of it.
func (v *victim) check() {
	v.t.Helper()
	if v.drive != nil {
		v.reaches("ready")
		v.drive(v)
	}
	if v.state == "" {
		return
	}
	now := v.reaches(v.state)
	for _, part := range v.says {
		if !strings.Contains(now.LastError, part) {
			v.t.Errorf("nothing says %q: %s", part, now.LastError)
		}
	}
	if now.LastReason != v.reason || now.Restarts != v.restarts {
		v.t.Errorf("the reason is %q, and it was restarted %d times", now.LastReason, now.Restarts)
	}
	if v.state == "ready" && now.LastError != "" {
		v.t.Errorf("it is ready, and has an error: %s", now.LastError)
	}
	if v.then != nil {
		v.then(v)
	}
}

// starts returns how many processes wrote their ids to a file.
func starts(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// quickly gives calls less time than they have by default.
func quickly(e rig.Entry) rig.Entry { return e.With("callTimeoutSecs", 2) }

// impatient gives the server less time to become ready.
func impatient(e rig.Entry) rig.Entry { return e.With("timeoutSecs", 2) }

// initialized is a script that reads the first message and answers it.
func initialized(answer string) string {
	return fmt.Sprintf(`read -r line; echo '{"jsonrpc":"2.0","id":1,%s}'; exec sleep 1000`, answer)
}
