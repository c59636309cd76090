// SPDX-License-Identifier: Apache-2.0

package sandbox

// A Claim is one thing that a confined server can't do.
type Claim struct {
	Name string // files.read
	// Text completes "a server can't …".
	Text string
	// Required claims are those that a policy is about: where one doesn't hold, a
	// server that must be confined must not be started.
	Required bool

	applies func(*Policy) bool      // nil: to all policies
	holds   func(*Confinement) bool // at a level of confinement
}

// Claims is the one list of what confinement is claimed to do. What people are shown of
// a server is made from it, and a test tries each claim at each level.
func Claims() []Claim {
	return []Claim{
		{Name: "files.read", Text: "read a file outside of its lists", Required: true, holds: landlocked},
		{
			Name: "files.write", Text: "write, make or remove a file outside of its lists",
			Required: true, holds: landlocked,
		},
		{Name: "files.see", Text: "see which files there are outside of its lists", holds: namespaced},
		{
			Name: "files.attributes", Text: "change mode, owner or times of a file outside of its lists",
			holds: namespaced,
		},
		{
			Name: "files.ways", Text: "be led out of its lists by a link, a mount, a new root or a file's handle",
			Required: true, holds: landlocked,
		},
		{
			Name: "network.none", Text: "reach anything over the network", Required: true,
			applies: withNetwork(NetworkNone), holds: always,
		},
		{
			Name: "network.internet", Text: "connect to the host's own, private, link-local and metadata addresses",
			Required: true, applies: withNetwork(NetworkInternet), holds: namespaced,
		},
		{
			Name: "network.listed", Text: "connect to what its list doesn't name", Required: true,
			applies: withNetwork(NetworkListed), holds: namespaced,
		},
		{
			Name: "sockets.unix", Text: "connect to another program's Unix socket outside of its lists", Required: true,
			applies: noBrowser, holds: always,
		},
		{
			Name:     "sockets.families",
			Text:     "open a socket that is none of TCP or UDP: raw, packet, netlink, vsock, MPTCP",
			Required: true, applies: noBrowser, holds: always,
		},
		{Name: "processes.see", Text: "see other processes than its own", holds: namespaced},
		{
			Name: "processes.environ", Text: "read the environment of another process",
			Required: true, holds: landlocked,
		},
		{
			Name: "processes.memory", Text: "trace another process, or read and write its memory", Required: true,
			holds: landlocked,
		},
		{
			Name: "processes.signal", Text: "send a signal to a process that isn't its own",
			Required: true, holds: scoped,
		},
		{Name: "processes.escape", Text: "leave a process behind when it ends", Required: true, holds: scoped},
		{
			Name: "processes.ipc", Text: "reach shared memory, semaphores and message queues of others (sysvipc(7))",
			holds: namespaced,
		},
		{
			Name: "privileges.have", Text: "use a privilege, also when it runs as root",
			Required: true, holds: always,
		},
		{Name: "privileges.gain", Text: "gain a privilege by a setuid program", Required: true, holds: always},
		{
			Name: "privileges.namespaces", Text: "make namespaces of its own",
			Required: true, applies: noBrowser, holds: always,
		},
		{
			Name: "kernel.interfaces", Text: "use bpf, perf, userfaultfd, io_uring, modules or mounts", Required: true,
			holds: always,
		},
		{Name: "kernel.keys", Text: "use the kernel's keyrings", Required: true, holds: always},
		{Name: "kernel.settings", Text: "change a setting of the machine", Required: true, holds: landlocked},
		{Name: "terminal", Text: "type into a terminal (TIOCSTI)", Required: true, holds: always},
		{Name: "descriptors", Text: "use a file that garra has open", Required: true, holds: always},
	}
}

func always(*Confinement) bool { return true }

func namespaced(c *Confinement) bool { return c.Level == LevelNamespaces }

// landlocked: in namespaces, what isn't there can't be read either.
func landlocked(c *Confinement) bool { return c.Level == LevelNamespaces || c.Level == LevelLandlock }

// scoped: Landlock keeps signals in since its sixth version.
func scoped(c *Confinement) bool {
	return c.Level == LevelNamespaces || c.Level == LevelLandlock && c.Landlock >= 6
}

func withNetwork(mode NetworkMode) func(*Policy) bool {
	return func(p *Policy) bool { return p.Network == mode }
}

func noBrowser(p *Policy) bool { return !p.Browser }

// Applies reports whether a claim is one about servers with that policy.
func (c *Claim) Applies(p *Policy) bool { return c.applies == nil || c.applies(p) }

// Holds reports whether the claim is made of a server that is confined so.
func (c *Claim) Holds(of *Confinement) bool {
	return of.Level != "" && of.Level != LevelOff && c.holds(of)
}

// Gap says what a server can do of which the claim doesn't hold.
func (c *Claim) Gap() string { return c.Name + ": it can " + c.Text }

// Gaps returns the claims that don't hold of a server with that policy which is confined
// so.
func (p *Policy) Gaps(of *Confinement) (gaps []Claim) {
	for _, claim := range Claims() {
		if claim.Applies(p) && !claim.Holds(of) {
			gaps = append(gaps, claim)
		}
	}
	return gaps
}
