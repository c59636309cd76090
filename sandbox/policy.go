// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/garraia/garra/internal/reach"
)

// A Level says how a server is confined. Each includes what the ones below it do.
type Level string

// The levels, the strongest first.
const (
	// LevelNamespaces: the server sees its own processes and its own files only,
	// since nothing else is there.
	LevelNamespaces Level = "namespaces"
	// LevelLandlock: the kernel refuses what is not in the lists.
	LevelLandlock Level = "landlock"
	// LevelBasic: no privileges, and no system call that only an attack needs.
	LevelBasic Level = "basic"
	// LevelOff: nothing.
	LevelOff Level = "off"
)

// Levels returns all levels, the strongest first.
func Levels() []Level { return []Level{LevelNamespaces, LevelLandlock, LevelBasic, LevelOff} }

// Below reports whether l confines less than other.
func (l Level) Below(other Level) bool {
	return slices.Index(Levels(), l) > slices.Index(Levels(), other)
}

// A NetworkMode says what a server may connect to.
type NetworkMode string

// The network modes.
const (
	// NetworkInternet is all but the host's own and its neighbours' addresses.
	NetworkInternet NetworkMode = "internet"
	NetworkNone     NetworkMode = "none"
	NetworkAll      NetworkMode = "all"
	// NetworkListed is what Policy.Hosts names.
	NetworkListed NetworkMode = "listed"
)

// A Policy is what a server may touch, besides what every program needs of the
// system: its libraries and programs, its certificates, the null device. The zero
// Policy confines nothing.
type Policy struct {
	// Level is the one to confine at; a start that can't have it fails. Empty is
	// LevelOff.
	Level Level
	// Read and Write are absolute paths, each of which stands for all that is below
	// it. Where one isn't there, or can't be reached, it grants nothing.
	Read, Write []string
	// Hidden are folders that no path of the lists reaches, although it is above
	// them. Only LevelNamespaces can do that.
	Hidden []string
	// Network is what it may connect to; empty is NetworkAll.
	Network NetworkMode
	// Hosts are host:port, with NetworkListed.
	Hosts []string
	// Browser lets the server do what a browser's own sandbox is made of: user
	// namespaces and Unix sockets.
	Browser bool
}

// confines reports whether there is anything to do.
func (p *Policy) confines() bool { return p.Level != "" && p.Level != LevelOff }

// What is wrong with a policy before anything was started.
var (
	errPolicyPath  = errors.New("a path that the server may touch is not absolute")
	errPolicyLevel = errors.New("there is no such level of confinement on this system")
)

// check refuses what no system can do.
func (p *Policy) check() error {
	if !p.confines() {
		return nil
	}
	if !slices.Contains(Levels(), p.Level) || !canConfine {
		return errPolicyLevel
	}
	if p.Network == NetworkListed {
		if _, err := reach.Listed(p.Hosts); err != nil {
			return err
		}
	}
	for _, path := range slices.Concat(p.Read, p.Write, p.Hidden) {
		if !filepath.IsAbs(path) {
			return errPolicyPath
		}
	}
	return nil
}

// A Confinement is what holds a server.
type Confinement struct {
	Level    Level
	Landlock int // version of the kernel's interface that is used; 0 when it is not
}

// confinement is what holds a server that was started with this policy.
func (p *Policy) confinement() Confinement {
	c := Confinement{Level: LevelOff}
	if p.confines() {
		c.Level = p.Level
	}
	if landlocked(&c) {
		c.Landlock = landlockVersion()
	}
	return c
}
