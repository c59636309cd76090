// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// The files that are read, by their names in the configuration folder.
const (
	ServersFile = "mcp.json"   // one JSON object with the key mcpServers
	GeneralFile = "config.yml" // YAML; servers stand in its mcp section
)

// The defaults of a server's fields.
const (
	DefaultTimeout      = 60 * time.Second
	DefaultCallTimeout  = 300 * time.Second
	DefaultMaxRestarts  = 5
	DefaultRestartDelay = 5 * time.Second
	DefaultListWait     = 10 * time.Second
)

// Config is what both files say together. It is not changed after [Load] returned it, so any
// number of goroutines may read it.
type Config struct {
	Dir      string    // the configuration folder
	Files    []File    // each file that was looked for
	Servers  []*Server // valid entries that are in force, also disabled ones, sorted by name
	LeftOut  []*Server // entries that have errors, as far as they could be read, sorted by name
	Settings Settings
	Findings Findings // sorted by file, line and column; without those of [Config.Unavailable]
	Secrets  []SecretUse

	realDir string // where Dir led when it was loaded; empty for nowhere
}

// File says what became of one file.
type File struct {
	Path   string // absolute when the folder was given so
	Exists bool
	Parsed bool   // it exists and could be parsed
	Hash   string // hexadecimal SHA-256 of the contents; empty when they couldn't be read
}

// Server returns the valid entry with that name.
func (c *Config) Server(name string) (*Server, bool) {
	for _, s := range c.Servers {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// Entries returns all entries that are in force, valid or not, sorted by name.
func (c *Config) Entries() []*Server {
	all := slices.Concat(c.Servers, c.LeftOut)
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b *Server) int { return cmp.Compare(a.Name, b.Name) }

// Entry returns the entry with that name, valid or not.
func (c *Config) Entry(name string) (*Server, bool) {
	for _, s := range c.LeftOut {
		if s.Name == name {
			return s, true
		}
	}
	return c.Server(name)
}

// Unparsable returns the paths of the files that exist and can't be used at all. While there
// are any, Servers and Settings are not what the user meant.
func (c *Config) Unparsable() []string {
	var paths []string
	for _, f := range c.Files {
		if f.Exists && !f.Parsed {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// Settings are the values outside of server entries.
type Settings struct {
	// ListWait is how long the first list of tools waits for servers (tools.list_wait_secs).
	ListWait time.Duration
	// Tools is the Tools of entries without it (tools, or tools.mode).
	Tools Tools
	// DefaultTimeout is the Timeout of entries without one (timeouts.mcp.default_secs).
	DefaultTimeout time.Duration
	// ToolConfirmation is agent.tool_confirmation_enabled; false when unset.
	ToolConfirmation bool
	// ApprovalProof is what deciding on an approval takes besides access: "passphrase",
	// "token", or nothing (approvals.require).
	ApprovalProof string
	// Vault is for whom the vault is encrypted, besides who has its passphrase.
	Vault VaultKeys
	// Stores are where secrets are besides the vault, sorted by name (secrets).
	Stores []Store
}

// storeNames returns the names of the stores.
func (s *Settings) storeNames() []string {
	names := make([]string, len(s.Stores))
	for i := range s.Stores {
		names[i] = s.Stores[i].Name
	}
	return names
}

// VaultKeys open the vault without a passphrase. They are empty for a vault with one.
type VaultKeys struct {
	Recipients []string // age or SSH public keys that the vault is encrypted for (vault.recipients)
	Identities []string // files with a private key that opens it, as written (vault.identity)
	// Unlocked lets secrets stay in memory that may be swapped (vault.lock_memory: false).
	Unlocked bool
}

// A Store is where secrets are besides the vault: references to it are written STORE:KEY. It has
// either a command or a keyring.
type Store struct {
	Name    string
	Command []string      // prints the secret; "{key}" in it is the KEY, else it is the last argument
	Keyring string        // the service in the keyring of the operating system
	Timeout time.Duration // of one command
	// Invalid is set for one that can't be used: what refers to it can't be had.
	Invalid bool
}

// Transport says how garra speaks to a server.
type Transport string

// The transports. Synonyms that other clients write are read as these.
const (
	Stdio Transport = "stdio" // a child process, over its standard input and output
	HTTP  Transport = "http"  // streamable HTTP
	SSE   Transport = "sse"   // the older HTTP with server-sent events
)

// Start says when a server is started.
type Start string

// The start modes.
const (
	StartEager Start = "eager" // together with garra
	StartLazy  Start = "lazy"  // when it is first needed
)

// Sharing says who shares a child process.
type Sharing string

// The ways of sharing.
const (
	SharingShared  Sharing = "shared"  // one child serves all clients
	SharingSession Sharing = "session" // each client session has a child of its own
)

// Tools says how clients of all servers get a server's tools.
type Tools string

// The ways of getting tools.
const (
	ToolsAll    Tools = "all"    // each stands in the list
	ToolsSearch Tools = "search" // they are found by asking for them
)

// Era says how a server is spoken to.
type Era string

// The eras: as the server answers, with a handshake (up to revision 2025-11-25), or
// with an envelope in each request (since 2026-07-28).
const (
	EraAuto   Era = "auto"
	EraLegacy Era = "legacy"
	EraModern Era = "modern"
)

// SandboxMode says what happens where a sandbox can't be had.
type SandboxMode string

// The sandbox modes.
const (
	SandboxRequired   SandboxMode = "required"    // don't start
	SandboxBestEffort SandboxMode = "best-effort" // enforce what can be enforced
	SandboxOff        SandboxMode = "off"         // enforce nothing
)

// Sandbox is what a child may touch. Paths stand as written.
type Sandbox struct {
	// Asked: the entry says something of it. In this version only such servers are
	// confined.
	Asked   bool
	Mode    SandboxMode
	Profile SandboxProfile
	Read    []string // paths that the child may read
	Write   []string // paths that the child may read and write
	Network Network
}

// SandboxProfile names what a kind of program needs besides paths.
type SandboxProfile string

// The profiles.
const (
	ProfileNone    SandboxProfile = ""
	ProfileBrowser SandboxProfile = "browser" // a browser, which makes a sandbox of its own
)

// Network is what a child may connect to. The zero Network is the default: the internet
// without private addresses.
type Network struct {
	Mode  NetworkMode
	Hosts []string // host:port, when Mode is NetworkListed
}

// NetworkMode says how the network is limited.
type NetworkMode string

// The network modes.
const (
	NetworkDefault NetworkMode = ""
	NetworkNone    NetworkMode = "none"
	NetworkAll     NetworkMode = "all"
	NetworkListed  NetworkMode = "listed"
)

// OAuth is who garra is to the authorization server of a remote server. The zero OAuth leaves
// that to the authorization server. References in the texts are not resolved.
type OAuth struct {
	ClientID          string   // of a client that is registered there
	ClientSecret      string   // of that client; empty for one without
	ClientMetadataURL string   // where a client ID metadata document is, which is the client's id too
	Issuer            string   // the authorization server; empty for the one that the server names
	Scopes            []string // to ask for; empty for those that the server names
	CallbackPort      int      // of this machine, for the way back from the browser; 0 for a free one
}

// Server is one entry. Text stands as written in the file: references such as vault:KEY,
// ${NAME} and ~ are not resolved, relative paths are relative to the configuration folder. A
// Server is not changed after [Load] returned it.
type Server struct {
	Name      string
	Origin    Position // where its name stands
	Transport Transport

	Command string
	Args    []string
	Cwd     string
	Env     map[string]string
	EnvFile string

	URL     string
	Headers map[string]string
	OAuth   OAuth

	Enabled      bool
	Timeout      time.Duration // to become ready
	CallTimeout  time.Duration // of one tool call
	MaxRestarts  int           // in a row; 0 means never
	RestartDelay time.Duration // before the first restart
	Start        Start
	IdleStop     time.Duration // of a lazy server; 0 means never
	Sharing      Sharing

	MemoryLimitMB       int     // of the process tree; 0 means none
	AddressSpaceLimitMB int     // of the direct child; 0 means none
	CPULimit            float64 // cores; 0 means none
	MaxProcesses        int     // 0 means none
	MaxOpenFiles        int     // 0 means none

	Tools        Tools
	AllowedTools []string // names or globs; empty means all
	DeniedTools  []string // names or globs; these win
	ConfirmTools []string // names or globs

	NotSecret    []string // values that are no secrets, whatever they look like
	InheritEnv   bool
	ForwardRoots bool
	Era          Era

	// AllowPrivateAddresses lets the url lead to addresses that are not on the
	// internet.
	AllowPrivateAddresses bool
	Sandbox               Sandbox

	invalid *Finding            // the first error; of an entry that was left out
	places  map[string]Position // of each value, by path
	broken  map[string]bool     // fields that can't be used, by name; of an entry that was left out
	digest  string
}

// Position returns where a value stands. The field is a documented name in either spelling,
// with the part that is meant: "command", "args[2]", "env.TOKEN", "sandbox.read[0]". Where the
// entry doesn't have the value, Position returns the entry's own place.
func (s *Server) Position(field string) Position {
	if p, ok := s.places[canonicalPath(field)]; ok {
		return p
	}
	return s.Origin
}

// Invalid says what is wrong with an entry that was left out, where, and what to do; both texts
// are empty for a valid entry.
func (s *Server) Invalid() (message, fix string) {
	f := s.invalid
	if f == nil {
		return "", ""
	}
	return fmt.Sprintf("its entry can't be used: %s:%d:%d: %s", f.File, f.Line, f.Column, f.Message), f.Fix
}

// Broken reports whether what the entry says in a field can't be used, so that nothing should be
// concluded from the field's value here. The field is a documented name in either spelling.
// Only entries that were left out have such fields.
func (s *Server) Broken(field string) bool { return s.broken[canonicalPath(field)] }

// Digest returns a fingerprint of the entry's text in the file. It is the same as long as
// nobody edits the entry, and differs after any edit, also of a comment inside it.
func (s *Server) Digest() string { return s.digest }

// NeedsRestart reports whether a process that runs for s has to be replaced so that next is in
// force: whether they differ in anything that the process was built from. Tool lists, timeouts,
// the restart policy and Enabled don't count.
func (s *Server) NeedsRestart(next *Server) bool {
	for _, f := range fields() {
		if f.process && !reflect.DeepEqual(f.bind(s), f.bind(next)) {
			return true
		}
	}
	return s.Name != next.Name
}

// NewServer returns a server with the defaults of every field, for a server that stands in no
// file. The caller sets the transport and what it needs before anyone else sees the server. Its
// digest is empty.
func NewServer(name string, origin Position, settings Settings) *Server {
	return &Server{
		Name:         name,
		Origin:       origin,
		Enabled:      true,
		Timeout:      settings.DefaultTimeout,
		CallTimeout:  DefaultCallTimeout,
		MaxRestarts:  DefaultMaxRestarts,
		RestartDelay: DefaultRestartDelay,
		Start:        StartEager,
		Sharing:      SharingShared,
		Tools:        cmp.Or(settings.Tools, ToolsAll),
		Era:          EraAuto,
		Sandbox:      Sandbox{Mode: SandboxBestEffort},
		places:       map[string]Position{},
	}
}
