// SPDX-License-Identifier: Apache-2.0

// Package reach decides what may be connected to: which addresses are on the
// internet, and what a server whose network is confined may reach. It asks nobody
// and resolves nothing.
package reach

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A Policy says what may be connected to. It doesn't change.
type Policy struct {
	listed bool
	rules  []rule
}

// A rule is one entry of a list. Of network, local and name one is set.
type rule struct {
	port    uint16
	network netip.Prefix // an address is a network of one
	local   bool         // localhost: the host's own loopback interface
	name    string       // as Canonical has it; with wildcard, what the name ends with
	// wildcard: all names that end so, or with an empty name, all.
	wildcard bool
}

// Internet lets everything be reached that the internet routes.
func Internet() *Policy { return &Policy{} }

// Listed lets only that be reached which one of the entries names, host:port. A host
// is a name; *.name for all names below it; * for all names; an address; a network
// such as 10.0.0.0/8; or localhost.
func Listed(entries []string) (*Policy, error) {
	p := &Policy{listed: true}
	for _, entry := range entries {
		r, err := parseRule(entry)
		if err != nil {
			return nil, fmt.Errorf("reading %q of a list of hosts: %w", entry, err)
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// parseRule reads host:port.
func parseRule(entry string) (rule, error) {
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		return rule{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return rule{}, fmt.Errorf("%q is no port", port)
	}
	r := rule{port: uint16(number)}
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap().WithZone("")
		r.network = netip.PrefixFrom(addr, addr.BitLen())
		return r, nil
	}
	if network, err := netip.ParsePrefix(host); err == nil {
		r.network = network.Masked()
		return r, nil
	}
	r.name = Canonical(host)
	r.local = r.name == "localhost"
	if rest, ok := strings.CutPrefix(r.name, "*"); ok {
		r.name, r.wildcard = rest, true
	}
	if strings.ContainsAny(r.name, "*/ ") || r.name == "" && !r.wildcard ||
		r.wildcard && r.name != "" && !strings.HasPrefix(r.name, ".") {
		return rule{}, fmt.Errorf("%q is no host", host)
	}
	return r, nil
}

// Canonical is the one form in which names are compared.
func Canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// named reports whether a rule is one for a name.
func (r *rule) named(name string) bool {
	switch {
	case r.network.IsValid():
		return false
	case r.wildcard:
		return strings.HasSuffix(name, r.name) && len(name) > len(r.name)
	}
	return name == r.name
}

// has reports whether a rule lets an address be reached that any of some names has. own
// tells that it is one of the host itself.
func (r *rule) has(addr netip.Addr, names []string, own bool) bool {
	switch {
	case r.network.IsValid():
		return r.network.Contains(addr)
	case r.local:
		return addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || addr == netip.IPv6Loopback()
	case own || !slices.ContainsFunc(names, r.named):
		return false
	}
	// Who writes the name of a host down means that host, wherever in their own network
	// it is. Who writes a pattern can't know what answers to it; and no name is a way
	// to the loopback interface or to what clouds tell their own machines.
	return Public(addr) || !r.wildcard && addr.IsPrivate()
}

// Asks reports whether the addresses of a name may be asked for.
func (p *Policy) Asks(name string) bool {
	name = Canonical(name)
	return !p.listed || slices.ContainsFunc(p.rules, func(r rule) bool { return r.named(name) })
}

// Tells reports whether something at an address may be reached that has a name. own
// tells that the address is one of the host itself.
func (p *Policy) Tells(name string, addr netip.Addr, own bool) bool {
	addr, names := addr.Unmap(), []string{Canonical(name)}
	if !p.listed {
		return Public(addr) && !own
	}
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.has(addr, names, own) && (!r.local || r.named(names[0]))
	})
}

// Names reports whether a name may be reached at a port, wherever it is.
func (p *Policy) Names(name string, port uint16) bool {
	name = Canonical(name)
	return !p.listed || slices.ContainsFunc(p.rules, func(r rule) bool { return r.port == port && r.named(name) })
}

// A Verdict is what may become of a connection.
type Verdict struct {
	Allowed bool
	Why     string // it is not allowed, completing "refused: …"
	// ByName tells that the address is allowed since a name that is on the list has it;
	// others may have it too.
	ByName bool
}

// Judge decides about a connection to an address, which the names were told to have. own
// tells that the address is one of the host itself.
func (p *Policy) Judge(to netip.AddrPort, names []string, own bool) Verdict {
	addr := to.Addr().Unmap()
	if !p.listed {
		if Public(addr) && !own {
			return Verdict{Allowed: true}
		}
		return Verdict{Why: fmt.Sprintf("%s is %s", addr, kind(addr, own))}
	}
	byName := false
	for _, r := range p.rules {
		if r.port != to.Port() || !r.has(addr, names, own) {
			continue
		}
		if r.network.IsValid() || r.local {
			return Verdict{Allowed: true}
		}
		byName = true
	}
	switch {
	case byName:
		return Verdict{Allowed: true, ByName: true}
	case slices.ContainsFunc(names, func(name string) bool { return p.Names(name, to.Port()) }):
		return Verdict{Why: fmt.Sprintf("its address %s is %s", addr, kind(addr, own))}
	}
	return Verdict{Why: "it is not on the list"}
}

// kind says for people what kind of address one is that isn't on the internet.
func kind(addr netip.Addr, own bool) string {
	switch {
	case own || Local(addr):
		return "one of this machine"
	case addr.IsLinkLocalUnicast():
		return "link-local, where clouds keep credentials of their machines"
	case addr.IsPrivate():
		return "one of a private network"
	}
	return "not on the internet"
}
