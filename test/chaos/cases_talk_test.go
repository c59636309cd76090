// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"fmt"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

// badTalkers are servers that say what they shouldn't, or say it badly. All of them
// serve, and so do they afterwards, in the same process.
func badTalkers() []misbehaviour {
	echoes := (*victim).echoes
	list := []misbehaviour{
		{name: "says-a-banner", entry: bad("--banner", "Server started on stdio"), drive: echoes},
		{name: "begins-with-a-bom", entry: bad("--bom", "--banner", "hi"), drive: echoes},
		{name: "says-numbers", entry: bad("--scalar-line"), drive: echoes},
		{name: "logs-to-stdout", entry: bad("--noise-before-reply"), drive: echoes},
		{name: "says-noise", entry: shell(`head -c 3000000 /dev/urandom; echo; exec "$0" "$@"`), drive: echoes},
		{name: "ends-lines-like-windows", entry: bad("--crlf"), drive: echoes},
		{name: "ignores-what-it-does-not-know", entry: bad("--silent-on-unknown"), drive: echoes},
		{name: "is-slow-to-start", entry: bad("--slow-init", "1s"), drive: echoes},
		{name: "drips", entry: bad("--drip", "1ms", "--page-size", "2"), drive: echoes},
		{name: "refuses-the-handshake", entry: bad("--no-handshake"), drive: nil},
		{name: "floods-stderr", entry: bad("--stderr-flood", "-1"), drive: echoes},
		{name: "writes-no-line-to-stderr", entry: bad("--stderr-endless"), drive: echoes},
		{name: "writes-stderr-before-answers", entry: bad("--stderr-before-reply", "300000"), drive: echoes},
		{name: "answers-twice", entry: bad("--answer-twice"), drive: func(v *victim) { v.echoes(); v.echoes() }},
		{name: "answers-unknown-ids", entry: quickly(bad("--wrong-id")), drive: func(v *victim) {
			v.fails("echo", `{}`, "call.timeout")
		}},
		{name: "never-answers", entry: quickly(bad()), drive: func(v *victim) {
			v.fails("hang", `{}`, "call.timeout")
			v.echoes()
		}},
		{name: "writes-stray-lines", entry: bad(), drive: func(v *victim) {
			for _, tool := range []string{"bad_json", "truncated_line", "array_line", "null_id_error"} {
				v.answers(tool, `{}`, "after a stray line")
			}
		}},
		{name: "answers-too-deep", entry: quickly(bad()), drive: func(v *victim) {
			v.call("deep", `{"n":1000000}`) // whatever it is, it is answered
			v.echoes()
		}},
		{name: "answers-in-no-encoding", entry: quickly(bad()), drive: func(v *victim) {
			v.call("invalid_utf8", `{}`) // likewise
			v.echoes()
		}},
		{name: "answers-200-MB", entry: bad().With("cpuLimit", 1), drive: func(v *victim) {
			v.fails("huge", `{"bytes":200000000}`, "frame.too_large")
			v.echoes()
		}},
		{name: "lists-very-much", entry: bad("--tools", "2000", "--tool-desc-bytes", "1000"), drive: func(v *victim) {
			v.answers("tool_2000", `{}`, "tool_2000")
		}},
		{
			name:  "lists-without-end",
			entry: bad("--endless-cursor", "--page-size", "2").With("cpuLimit", 1), drive: echoes,
		},
		{name: "lists-in-circles", entry: bad("--cyclic-cursor", "--page-size", "2"), drive: echoes},
		{name: "lists-bad-schemas", entry: bad("--bad-schemas", "--long-names", "--dup-tools"), drive: echoes},
		{name: "storms-with-changes", entry: bad("--storm", protocol.NoteToolsChanged), drive: echoes},
		{name: "storms-with-logs", entry: bad("--storm", "notifications/message", "--storm-params",
			`{"level":"info","data":"again"}`), drive: echoes},
		{name: "storms-with-progress", entry: bad("--storm", protocol.NoteProgress, "--storm-params",
			`{"progressToken":1,"progress":1}`), drive: echoes},
		{name: "storms-with-requests", entry: bad("--ask-storm", "roots/list"), drive: echoes},
		{name: "storms-with-pings", entry: bad("--ask-storm", protocol.MethodPing), drive: echoes},
		{name: "asks-very-much", entry: bad(), drive: func(v *victim) {
			v.answers("ask_flood", `{"method":"elicitation/create","n":2000}`, "asked")
			v.answers("ask_twice", `{}`, "asked")
			v.echoes()
		}},
		{name: "reports-much-progress", entry: bad(), drive: reportsProgress},
	}
	for i := range list {
		list[i].state = "ready"
	}
	return list
}

// reportsProgress has a server report more progress than anybody can read.
func reportsProgress(v *victim) {
	v.t.Helper()
	seen := 0
	params := fmt.Sprintf(`{"name":"%s__progress","arguments":{"n":5000,"ms":0},"_meta":{"progressToken":1}}`, v.name)
	m, err := v.client.Ask(protocol.MethodToolsCall, params, func() { seen++ })
	if err != nil {
		v.t.Fatal(err)
	}
	if text, ok := rig.TextOf(m); !ok || text != "done" || seen == 0 {
		v.t.Errorf("after %d reports: %.300s%.300s", seen, m.Result, m.Error)
	}
}
