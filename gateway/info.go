// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/internal/hide"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// tailLines is how many last lines of standard error a detail shows.
const tailLines = 20

// A ServerInfo is what lists show of a server. No value of an environment and no
// argument is in it.
type ServerInfo struct {
	Name      string       `json:"name"`
	Transport string       `json:"transport"`
	Source    string       `json:"source"` // "mcp.json:12"
	Enabled   bool         `json:"enabled"`
	State     source.State `json:"state"`
	Since     *time.Time   `json:"since"`
	PID       *int         `json:"pid"`
	Asleep    bool         `json:"asleep,omitempty"`      // stopped until somebody needs it
	Tools     *int         `json:"tools"`                 // that clients are shown; null until known, or for none
	ToolsAsOf *time.Time   `json:"tools_as_of,omitempty"` // when that was so, of a server that isn't ready
	Restarts  int          `json:"restarts"`
	LastError *string      `json:"last_error"`
	Reason    string       `json:"last_reason,omitempty"` // "memory" when that is why
	NextTry   *time.Time   `json:"next_try"`
	Env       EnvInfo      `json:"env"`
	Memory    MemoryInfo   `json:"memory"`
	Sandbox   SandboxInfo  `json:"sandbox"`
	Noise     int          `json:"noise"` // lines on standard output that were no messages
	Sharing   string       `json:"sharing"`
	ToolsMode string       `json:"tools_mode,omitempty"` // "search" when clients find its tools by asking
	Holders   []HolderInfo `json:"holders,omitempty"`    // clients that have a process of their own
	// UnenforcedLimits are the limits of the entry that are not in force as it asks, in words.
	UnenforcedLimits []string `json:"unenforced_limits,omitempty"`
}

// A HolderInfo is a client's own process of a server.
type HolderInfo struct {
	Holder string       `json:"holder"` // one session, or all with one token; it doesn't tell which
	State  source.State `json:"state"`
	Since  *time.Time   `json:"since"`
	PID    *int         `json:"pid"`
}

// An EnvInfo says what is in a server's environment, by name.
type EnvInfo struct {
	Mode    source.EnvMode    `json:"mode"`
	Names   []string          `json:"names"`
	From    map[string]string `json:"from,omitempty"`
	Was     source.EnvMode    `json:"was,omitempty"` // what the entry asks for, when it isn't given
	Dropped []string          `json:"dropped,omitempty"`
}

// A MemoryInfo says how much memory a server may have, with all that it started, how
// much it uses, and what holds it to the limit.
type MemoryInfo struct {
	LimitMB    *int     `json:"limit_mb"`
	UsedMB     *int     `json:"used_mb"`     // null when no process runs, or nobody can tell
	EnforcedBy []string `json:"enforced_by"` // of the process that runs
}

// A SandboxInfo says what confines a server: what its entry asks for, and what
// is really in force.
type SandboxInfo struct {
	Mode       string   `json:"mode"`
	Effective  string   `json:"effective"`
	Unenforced []string `json:"unenforced"` // a sentence each
	Network    string   `json:"network,omitempty"`
	Home       string   `json:"home,omitempty"`  // in place of the user's
	Read       []string `json:"read,omitempty"`  // besides what all servers may
	Write      []string `json:"write,omitempty"` // besides its private folders
}

// A ServerDetail is everything about one server.
type ServerDetail struct {
	ServerInfo
	Tools           []ToolInfo    `json:"tools"`
	Resources       []Raw         `json:"resources"`
	Templates       []Raw         `json:"resource_templates"`
	Prompts         []Raw         `json:"prompts"`
	Instructions    string        `json:"instructions"`
	ProtocolVersion string        `json:"protocol_version"`
	StderrTail      []string      `json:"stderr_tail"`
	Stops           []source.Stop `json:"stops"` // the last ends of its runs, oldest first
	Problems        []string      `json:"problems"`
	UnknownTools    []ToolRule    `json:"unknown_tools"` // rules that no tool of the server bears
	Command         *CommandInfo  `json:"command"`
	Secrets         []string      `json:"secrets"`       // names of those that it was started with
	URL             string        `json:"url,omitempty"` // of a remote server, without what may be a secret
}

// A CommandInfo says which file is run and where it was looked for.
type CommandInfo struct {
	Path       string   `json:"path"`
	Dir        string   `json:"dir"`
	SearchPath []string `json:"search_path"`
}

// A ToolRule is one name or glob in a tool list of an entry.
type ToolRule struct {
	Field   string `json:"field"` // "allowedTools[2]"
	Pattern string `json:"pattern"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

// A ToolInfo is one tool and what was decided about it.
type ToolInfo struct {
	Server      string `json:"server"`
	Name        string `json:"name"`
	ExposedAs   string `json:"exposed_as"`
	Description string `json:"description"`
	InputSchema Raw    `json:"input_schema"`
	Allowed     bool   `json:"allowed"`
	Searched    bool   `json:"searched,omitempty"` // clients of all servers find it by asking
	Reason      string `json:"reason"`
	Rule        string `json:"rule,omitempty"`
	Pinned      bool   `json:"pinned"`
}

// Servers returns all servers, by name.
func (g *Gateway) Servers() []ServerInfo {
	list := []ServerInfo{}
	for _, u := range g.all() {
		list = append(list, u.info())
	}
	return list
}

// Detail returns everything about a server; ok is false when there is none of
// that name.
func (g *Gateway) Detail(name string) (detail ServerDetail, ok bool) {
	u := g.upstream(name)
	if u == nil {
		return ServerDetail{}, false
	}
	return u.detail(), true
}

// Source returns the source of a server, nil when there is none of that name.
func (g *Gateway) Source(name string) source.Source {
	if u := g.upstream(name); u != nil {
		return u.src
	}
	return nil
}

// Known waits until what a server offers is known, or that it can't be now: it
// doesn't wait for further tries. It fails with a *source.Failure when the server
// is not ready.
func (g *Gateway) Known(ctx context.Context, name string) error {
	u := g.upstream(name)
	if u == nil {
		return source.Fail(source.ServerUnknown, name, "there is no such server")
	}
	u.learn()
	for {
		changed := g.changed.wait()
		if u.settled(catalog.Kinds()) {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return source.Fail(source.CallTimeout, name, "what it offers could not be listed in time")
		}
	}
	status := u.src.Status()
	switch {
	case status.State == source.Ready, status.Asleep:
		return nil
	case status.LastError != nil:
		return status.LastError
	}
	return source.Fail(source.ServerStopped, name, "the server is in state %s", status.State)
}

// Offline is what is known of a server while no gateway runs.
func Offline(entry *mcpconfig.Server) ServerInfo {
	status := source.Status{State: source.Stopped}
	message, fix := entry.Invalid()
	switch {
	case !entry.Enabled:
		status.State = source.Disabled
	case message != "":
		status.State = source.Failed
		status.LastError = &source.Failure{Code: source.ServerFailed, Server: entry.Name, Message: message, Fix: fix}
	}
	return infoOf(entry, status)
}

func (u *upstream) info() ServerInfo {
	status := u.src.Status()
	info := infoOf(u.current.Load().entry, status)
	info.Holders = u.holders()
	if meter, ok := u.src.(source.Meter); ok {
		if used, ok := meter.UsedMemory(); ok {
			megabytes := int((used + 1<<20 - 1) >> 20)
			info.Memory.UsedMB = &megabytes
		}
	}
	tools := u.gateway.catalog.List(u.name, catalog.Tools)
	if tools == nil || !status.Listed() { // what the catalog has may be forgotten a moment later
		return info
	}
	n := 0
	for _, item := range tools.Items {
		if u.tool(item).Allowed {
			n++
		}
	}
	info.Tools = &n
	if info.State != source.Ready {
		info.ToolsAsOf = timeOrNull(tools.ReadAt)
	}
	return info
}

// holders are the clients that have a process of their own.
func (u *upstream) holders() (list []HolderInfo) {
	f := u.forker()
	if f == nil {
		return nil
	}
	for _, holder := range f.Holders() {
		if src := f.Held(holder); src != nil {
			status := src.Status()
			list = append(list, HolderInfo{holder, status.State, timeOrNull(status.Since), intOrNull(status.PID)})
		}
	}
	return list
}

func infoOf(entry *mcpconfig.Server, status source.Status) ServerInfo {
	info := ServerInfo{
		Name: entry.Name, Transport: string(entry.Transport), Source: entry.Origin.String(),
		Enabled: entry.Enabled, State: status.State, Asleep: status.Asleep,
		Restarts: status.Restarts, Noise: status.Noise,
		Since: timeOrNull(status.Since), NextTry: timeOrNull(status.NextTry),
		Env:              envInfo(status.Env, entry.InheritEnv),
		Memory:           MemoryInfo{LimitMB: intOrNull(entry.MemoryLimitMB), EnforcedBy: []string{}},
		UnenforcedLimits: status.Limits.Unenforced,
		Sandbox:          sandboxInfo(entry, &status.Sandbox),
		PID:              intOrNull(status.PID), Sharing: string(entry.Sharing),
	}
	if entry.Tools == mcpconfig.ToolsSearch {
		info.ToolsMode = string(entry.Tools)
	}
	info.Memory.EnforcedBy = append(info.Memory.EnforcedBy, status.Limits.Memory...)
	if f := status.LastError; f != nil {
		info.Reason = string(f.Reason)
		text := f.Message
		if f.Fix != "" {
			text += "; " + f.Fix
		}
		info.LastError = &text
	}
	return info
}

// sandboxInfo says nothing of a server that has never been started: nothing confines it.
func sandboxInfo(entry *mcpconfig.Server, s *source.Sandbox) SandboxInfo {
	return SandboxInfo{
		Mode: string(entry.Sandbox.Mode), Effective: cmp.Or(s.Effective, "off"),
		Unenforced: append([]string{}, s.Unenforced...),
		Network:    s.Network, Home: s.Home, Read: s.Read, Write: s.Write,
	}
}

func envInfo(env source.Env, inherits bool) EnvInfo {
	info := EnvInfo{Mode: env.Mode, Names: env.Names, From: env.From, Dropped: env.Dropped}
	if info.Names == nil {
		info.Names = []string{}
	}
	if info.Mode == "" { // no process was started yet
		info.Mode = source.EnvIsolated
		if inherits {
			info.Mode = source.EnvInherited
		}
	}
	if env.Forced {
		info.Was = source.EnvInherited
	}
	return info
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func intOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (u *upstream) detail() ServerDetail {
	status := u.src.Status()
	d := ServerDetail{
		ServerInfo: u.info(),
		Tools:      []ToolInfo{}, Resources: []Raw{}, Templates: []Raw{}, Prompts: []Raw{},
		StderrTail: []string{}, Stops: []source.Stop{}, Problems: []string{}, UnknownTools: []ToolRule{},
		Secrets: append([]string{}, status.Secrets...),
	}
	if entry := u.current.Load().entry; entry.Transport != mcpconfig.Stdio {
		d.URL = hide.URL(entry.URL)
	}
	if status.Command.Path != "" {
		c := CommandInfo(status.Command)
		d.Command = &c
	}
	if status.Hello != nil {
		d.Instructions, d.ProtocolVersion = status.Hello.Instructions, string(status.Hello.Revision)
	}
	if logger, ok := u.src.(source.Logger); ok {
		lines, _ := logger.Logs(0)
		lines = slices.DeleteFunc(lines, func(line source.Line) bool { return line.Note })
		for _, line := range lines[max(0, len(lines)-tailLines):] {
			d.StderrTail = append(d.StderrTail, line.Text)
		}
	}
	if historian, ok := u.src.(source.Historian); ok {
		d.Stops = append(d.Stops, historian.Stops()...)
	}
	d.lists(u)
	return d
}

// lists fills in what is known of the server's offers.
func (d *ServerDetail) lists(u *upstream) {
	for _, kind := range catalog.Kinds() {
		list := u.gateway.catalog.List(u.name, kind)
		if list == nil {
			continue
		}
		d.Problems = append(d.Problems, list.Problems...)
		switch kind {
		case catalog.Tools:
			d.UnknownTools = append(d.UnknownTools, u.unknownTools(list)...)
			for _, item := range list.Items {
				d.Tools = append(d.Tools, u.toolInfo(item))
			}
		case catalog.Prompts:
			d.Prompts = raws(list.Items)
		case catalog.Resources:
			d.Resources = raws(list.Items)
		case catalog.Templates:
			d.Templates = raws(list.Items)
		}
	}
}

// unknownTools are the rules of the entry that match no tool of the server.
func (u *upstream) unknownTools(tools *catalog.List) (list []ToolRule) {
	now := u.current.Load()
	for _, unused := range now.rules.Unused(tools.Names()) {
		at := now.entry.Position(unused.Field)
		list = append(list, ToolRule{
			Field: unused.Field, Pattern: unused.Pattern, File: at.File, Line: at.Line, Column: at.Column,
		})
	}
	return list
}

func raws(items []*catalog.Item) []Raw {
	list := make([]Raw, 0, len(items))
	for _, item := range items {
		list = append(list, item.Raw)
	}
	return list
}

func (u *upstream) toolInfo(item *catalog.Item) ToolInfo {
	decision := u.tool(item)
	t := ToolInfo{
		Server: u.name, Name: item.Name, ExposedAs: item.Exposed,
		Allowed: decision.Allowed, Reason: decision.Reason, Rule: decision.Rule,
		Searched: decision.Allowed && u.searched(),
	}
	if obj, err := protocol.ParseObject(item.Raw); err == nil {
		t.Description, _ = protocol.Text(obj.Get("description")) // absent is empty
		t.InputSchema = obj.Get("inputSchema")
	}
	return t
}
