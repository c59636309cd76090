// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/protocol"
)

// BenchmarkCall times the same tools/call over a bare pipe to a server and
// through the gateway, in turn, and reports the ratio of the medians: absolute
// times of a shared machine mean little.
func BenchmarkCall(b *testing.B) {
	for _, bytes := range []int{10, 100_000, 8 << 20} {
		params := callParams("big", fmt.Sprintf(`{"bytes":%d}`, bytes))
		b.Run(fmt.Sprintf("pipe/%dB", bytes), func(b *testing.B) {
			c := benchRig(b).connect("a", `{}`)
			compare(b, directCall(b, params), func() { c.request("tools/call", params) })
		})
		b.Run(fmt.Sprintf("http/%dB", bytes), func(b *testing.B) {
			r := benchRig(b)
			c := r.connectHTTP(r.serveHTTP().URL+"/mcp/a", `{}`)
			n := 1
			compare(b, directCall(b, params), func() {
				n++
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, n, params)
				resp := c.do(b.Context(), http.MethodPost, body)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		})
	}
}

func benchRig(b *testing.B) *rig {
	r := newRig(b)
	r.apply(entry("a"))
	r.connect("a", `{}`).names()
	return r
}

// compare runs both calls in turn.
func compare(b *testing.B, direct, through func()) {
	var a, g []time.Duration
	timed := func(call func()) time.Duration {
		began := time.Now()
		call()
		return time.Since(began)
	}
	direct()
	through()
	for b.Loop() {
		a = append(a, timed(direct))
		g = append(g, timed(through))
	}
	slices.Sort(a)
	slices.Sort(g)
	b.ReportMetric(float64(g[len(g)/2])/float64(a[len(a)/2]), "x-direct")
	b.ReportMetric(float64(a[len(a)/2].Microseconds()), "direct-µs")
	b.ReportMetric(float64(g[len(g)/2].Microseconds()), "garra-µs")
}

// directCall starts a server by hand and returns a call to it.
func directCall(b *testing.B, params string) func() {
	path, args := misbehave.Command()
	cmd := exec.CommandContext(b.Context(), path, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	frames, n := protocol.NewReader(out, 0), 0
	ask := func(method, params string) {
		n++
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", n, method, params)
		if _, err := frames.Next(); err != nil {
			b.Fatal(err)
		}
	}
	ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}`)
	return func() { ask("tools/call", params) }
}
