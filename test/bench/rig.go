// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A rig has what measurements are made with: the binaries, folders that nobody
// else uses, and what is to be stopped in the end.
type rig struct {
	ctx     context.Context // of the run; here since every process ends with it
	options options
	dir     string
	self    string // this program, for its roles
	garra   string
	ending  []func()
}

// newRig makes the folders, and builds garra unless options name one.
func newRig(ctx context.Context, o options) (*rig, error) {
	dir, err := os.MkdirTemp("", "garra-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	b := &rig{ctx: ctx, options: o, dir: dir, garra: o.garra}
	b.atEnd(func() { os.RemoveAll(dir) })
	if b.self, err = os.Executable(); err != nil {
		return b, fmt.Errorf("finding this program: %w", err)
	}
	if b.garra != "" || o.url != "" {
		b.garra, err = filepath.Abs(b.garra)
		return b, err
	}
	b.garra = filepath.Join(dir, "garra")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.garra, "github.com/garraia/garra/cmd/garra")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return b, fmt.Errorf("building garra: %w\n%s", err, out)
	}
	return b, nil
}

// atEnd has something done at the end, in reverse order.
func (b *rig) atEnd(do func()) { b.ending = append(b.ending, do) }

// mark returns the place to which end goes back.
func (b *rig) mark() int { return len(b.ending) }

// end does what is left to do since a mark.
func (b *rig) end(mark int) {
	for len(b.ending) > mark {
		last := b.ending[len(b.ending)-1]
		b.ending = b.ending[:len(b.ending)-1]
		last()
	}
}

// child is the server that all gateways have behind them.
func (b *rig) child(args ...string) program {
	return program{path: b.self, args: append([]string{roleChild}, args...)}
}

// keep has a session closed at the end.
func (b *rig) keep(s *session, err error) (*session, error) {
	if err == nil {
		b.atEnd(s.close)
	}
	return s, err
}

// handler starts a role that serves HTTP and returns where it is.
func (b *rig) handler(args ...string) (*endpoint, error) {
	p := program{path: b.self, args: args}
	s, err := p.start(b.ctx)
	if err != nil {
		return nil, err
	}
	b.atEnd(s.terminate)
	address, err := bufio.NewReader(s.out).ReadString('\n')
	if err != nil {
		return nil, s.explain(fmt.Errorf("reading a handler's address: %w", err))
	}
	return newEndpoint(strings.TrimSpace(address), nil)
}

// A home is a user of garra: a configuration, a state and a HOME of its own.
type home struct {
	rig *rig
	dir string
}

// home makes one with these servers, each a program.
func (b *rig) home(name string, servers map[string]program) (*home, error) {
	h := &home{b, filepath.Join(b.dir, name)}
	for _, folder := range []string{"config/garraia", "state", "run", "work"} {
		if err := os.MkdirAll(filepath.Join(h.dir, folder), 0o700); err != nil {
			return nil, fmt.Errorf("making a home: %w", err)
		}
	}
	entries := make(map[string]any)
	for name, p := range servers {
		entries[name] = map[string]any{"command": p.path, "args": p.args}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return nil, fmt.Errorf("writing mcp.json: %w", err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "config/garraia/mcp.json"), text, 0o600); err != nil {
		return nil, fmt.Errorf("writing mcp.json: %w", err)
	}
	return h, nil
}

// program is garra in this home.
func (h *home) program(args ...string) program {
	return program{
		path: h.rig.garra, args: append(args, "--log-level", "warn", "--log-format", "json"), dir: h.dir + "/work",
		env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "LANG=C.UTF-8", "XDG_CONFIG_HOME=" + h.dir + "/config",
			"XDG_STATE_HOME=" + h.dir + "/state", "XDG_RUNTIME_DIR=" + h.dir + "/run",
		},
	}
}

// A gateway is a garra that serves.
type gateway struct {
	*process
	base string // where it is, to which a path is added
}

// serve starts garra and returns when it takes connections.
func (h *home) serve() (*gateway, error) {
	s, err := h.program("serve", "--listen", "127.0.0.1:0", "--no-auth").start(h.rig.ctx)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if s.gone(0) {
			break
		}
		if address, found := h.address(); found {
			return &gateway{s, "http://" + address}, nil
		}
	}
	s.terminate()
	return nil, s.explain(errors.New("garra serve does not say where it listens"))
}

// address reads run.json.
func (h *home) address() (address string, found bool) {
	files, _ := filepath.Glob(h.dir + "/state/*/run/*/run.json") // the pattern is good
	if len(files) == 0 {
		return "", false
	}
	text, err := os.ReadFile(files[0])
	var run struct {
		Address string `json:"address"`
	}
	if err != nil || json.Unmarshal(text, &run) != nil {
		return "", false
	}
	return run.Address, run.Address != ""
}

// at returns an endpoint of the gateway.
func (g *gateway) at(path string) (*endpoint, error) { return newEndpoint(g.base+path, nil) }

// open begins a session at a path of the gateway.
func (g *gateway) open(path string, callers int) (*session, error) {
	e, err := g.at(path)
	if err != nil {
		return nil, err
	}
	return e.openHTTP(callers)
}

// serveKept is serve for a gateway that stays until the end, with its servers
// ready.
func (h *home) serveKept() (*gateway, error) {
	g, err := h.serve()
	if err != nil {
		return nil, err
	}
	h.rig.atEnd(g.terminate)
	_, err = g.tools()
	return g, err
}

// tools returns the result of the aggregated tools/list, which comes when all
// servers have been tried.
func (g *gateway) tools() ([]byte, error) {
	s, err := g.open("/mcp", 1)
	if err != nil {
		return nil, err
	}
	defer s.close()
	answer, err := s.one().call("tools/list", "{}")
	if err != nil {
		return nil, g.explain(err)
	}
	var result []byte
	members(answer, func(key, value []byte) {
		if string(key) == "result" {
			result = value
		}
	})
	return bytes.Clone(result), nil
}

// countTools counts the tools in a list.
func countTools(list []byte) int { return bytes.Count(list, []byte(`"inputSchema"`)) }
