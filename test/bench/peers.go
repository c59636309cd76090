// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A peer is another gateway, which npm installs.
type peer struct {
	name string // of the package
	path string // of its endpoint
	sse  bool   // it has HTTP+SSE only
	args func(port, config string, child program) []string
}

// knownPeers returns all, with the arguments that put them in front of the
// child.
func knownPeers() []peer {
	return []peer{
		{"supergateway", "/mcp", false, func(port, _ string, child program) []string {
			return []string{
				"--stdio", child.String(), "--outputTransport", "streamableHttp", "--stateful",
				"--port", port, "--logLevel", "none",
			}
		}},
		{"mcp-proxy", "/mcp", false, func(port, _ string, child program) []string {
			return append([]string{
				"--host", "127.0.0.1", "--port", port, "--server", "stream", "--", child.path,
			}, child.args...)
		}},
		{"mcp-hub", "/mcp", true, func(port, config string, _ program) []string {
			return []string{"--port", port, "--config", config}
		}},
	}
}

// peers measures garra and what others have built, each in front of a server of
// the same program.
func peers(b *rig, add func(result)) error {
	h, err := b.home("peers", map[string]program{"server": b.child()})
	if err != nil {
		return err
	}
	g, err := h.serveKept()
	if err != nil {
		return err
	}
	garra, err := overURL(allName, g.base+"/mcp", false, nil)
	if err != nil {
		return err
	}
	if err := garra.findTools(); err != nil {
		return err
	}
	gates := []*gate{garra}
	targets := make(map[string][]target)
	for _, p := range knownPeers() {
		peer, err := b.startPeer(p)
		if err != nil {
			add(result{Name: "peer " + p.name, Skipped: err.Error()})
			continue
		}
		gates = append(gates, peer)
		targets[concurrentLoad] = append(targets[concurrentLoad], target{allName, peer.name, atLeast(5)})
		targets[sequentialLoad] = append(targets[sequentialLoad], target{allName, peer.name, shown()})
	}
	return b.compareGates(gates, targets, add)
}

// startPeer starts a peer in front of the child and waits until it has its
// tools.
func (b *rig) startPeer(p peer) (*gate, error) {
	bin, err := filepath.Abs(filepath.Join(b.options.peers, "node_modules", ".bin"))
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", p.name, err)
	}
	path := filepath.Join(bin, p.name)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("npm has not installed it (make bench-peers does): %w", err)
	}
	home := filepath.Join(b.dir, p.name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("making a home: %w", err)
	}
	config := filepath.Join(home, "servers.json")
	if err := b.writeServers(config); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s, err := program{
		path: path, args: p.args(port, config, b.child()), dir: home,
		env: []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + home},
	}.start(b.ctx)
	if err != nil {
		return nil, err
	}
	b.atEnd(s.terminate)
	return s.awaitGate(p, "http://127.0.0.1:"+port+p.path, b)
}

// awaitGate waits until a peer answers.
func (s *process) awaitGate(p peer, address string, b *rig) (*gate, error) {
	g, err := overURL(p.name+" "+b.version(p.name), address, p.sse, nil)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !s.gone(0); {
		if err = g.findTools(); err == nil {
			return g, nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	if err == nil {
		err = errors.New("it has ended")
	}
	return nil, s.explain(fmt.Errorf("it does not get ready: %w", err))
}

// version returns the version of an installed package.
func (b *rig) version(name string) string {
	text, err := os.ReadFile(filepath.Join(b.options.peers, "node_modules", name, "package.json"))
	var manifest struct{ Version string }
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	return manifest.Version
}

// writeServers writes the child in the form that all gateways know.
func (b *rig) writeServers(file string) error {
	child := b.child()
	text, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"server": map[string]any{"command": child.path, "args": child.args}},
	})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing servers: %w", err)
	}
	return nil
}

// freePort returns a port that was free a moment ago, for programs that can't
// take one themselves and say which.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a port: %w", err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
