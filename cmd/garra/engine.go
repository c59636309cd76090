// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/internal/history"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/internal/secrets"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/oauth"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/remote"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
	"github.com/garraia/garra/supervisor"
)

// An engine is a gateway with its servers: what `serve` runs, and what commands
// run for themselves when nothing is served.
type engine struct {
	places     place.Places
	log        zerolog.Logger
	gateway    *gateway.Gateway
	supervisor *supervisor.Supervisor
	remote     *remote.Manager
	invalid    *lifecycle.Set[*lifecycle.Invalid] // of entries that have errors
	logins     *oauth.Store
	smith      locksmith
	keeper     *secrets.Keeper
	history    *history.History
	events     *adminapi.Events
	edit       func(*mcpconfig.Config) error // applied to what is loaded, under mu; nil for none
	applied    func(*mcpconfig.Config)       // told of each configuration in force, under mu; nil for nobody
	brief      bool                          // for one command, which itself says what fails
	only       string                        // the one server that it runs; empty for all
	refused    atomic.Pointer[string]        // why the files are not in force; nil when they are
	closing    atomic.Bool                   // what fails from now on, fails for that reason

	mu       sync.Mutex        // held while a configuration is applied; guards all below
	config   *mcpconfig.Config // the last good one
	isolated map[string]bool   // servers of it that a private gateway runs without what they would inherit
	isolate  map[string]int    // servers that are isolated by each load, and how many edits want that
}

// A purpose is what an engine is for.
type purpose struct {
	brief  bool          // for one command, which itself says what fails
	keeps  bool          // it has its run folder for itself, and keeps there what is to outlive it
	drain  time.Duration // that calls in flight get when their server is to end
	smith  locksmith     // the zero one opens nothing
	redact *redact.Set   // what nothing may show
}

// newEngine returns an engine without servers.
func newEngine(places place.Places, log zerolog.Logger, p purpose) (*engine, error) {
	if err := sandbox.Adopt(); err != nil {
		log.Warn().Err(err).Msg("processes that outlive their guardian can't be found")
	}
	e := &engine{places: places, log: log, events: adminapi.NewEvents(), brief: p.brief, smith: p.smith}
	offers := gateway.Options{Warn: func(server, message string) {
		e.happened(source.Event{Origin: source.Origin{Server: server}, Kind: source.EventWarning, Message: message})
	}}
	if !p.brief {
		offers.Memory = catalog.NewMemory(filepath.Join(places.RunDir, "offers"))
	}
	e.gateway = gateway.New(offers)
	host := envbuild.SystemHost()
	hooks := source.Hooks{
		Event: e.happened,
		Stderr: func(server, line string) {
			e.log.Debug().Str("server", server).Str("stderr", line).Msg("server wrote")
		},
		Notification: e.gateway.Notified,
		Request:      e.gateway.Asked,
	}
	var err error
	if e.history, err = e.readHistory(p.keeps); err != nil {
		return nil, err
	}
	shared := lifecycle.Shared{Drain: p.drain, History: e.history, Rate: new(backoff.Rate)}
	e.logins = loginsIn(places)
	e.keeper = e.newKeeper(host.Env)
	e.remote = remote.New(remote.Options{
		Host: host, Secrets: e.keeper, Redact: p.redact, Blocked: e.keeper.Blocked, Hooks: hooks, Once: p.brief,
		Logins: e.logins, Shared: shared,
	})
	of := supervisor.Options{
		Host: host, Secrets: e.keeper, Redact: p.redact, Blocked: e.keeper.Blocked, Once: p.brief, Hooks: hooks,
		Shared:     shared,
		PrivateDir: filepath.Join(places.RunDir, "private"),
		Own:        ownPaths(places),
	}
	if p.keeps {
		of.IsolationFile = isolationFile(places)
	}
	e.supervisor, err = supervisor.New(of)
	e.invalid = lifecycle.NewSet[*lifecycle.Invalid]()
	return e, err
}

// ownPaths are garra's alone: the state folder, and in the configuration folder its own
// files. What else somebody keeps there is theirs.
func ownPaths(places place.Places) []string {
	own := []string{places.StateDir, places.RunDir, places.Vault}
	for _, name := range []string{
		mcpconfig.ServersFile, mcpconfig.GeneralFile, "config.yaml", "connectors.toml", "providers",
		"catalog.lock.json",
	} {
		own = append(own, filepath.Join(places.ConfigDir, name))
	}
	return own
}

// readHistory reads how servers ended before. Who doesn't keep that only shows it.
func (e *engine) readHistory(keeps bool) (*history.History, error) {
	file := filepath.Join(e.places.RunDir, "history.jsonl")
	if keeps {
		return history.Open(file)
	}
	past, err := history.Read(file)
	if err != nil {
		e.log.Warn().Err(err).Msg("how servers ended before can't be shown")
	}
	return past, nil
}

// source returns what is behind a name, nil when there is nothing.
func (e *engine) source(name string) source.Source {
	if s := e.supervisor.Server(name); s != nil {
		return s
	}
	if s := e.remote.Server(name); s != nil {
		return s
	}
	if s := e.invalid.Server(name); s != nil {
		return s
	}
	return nil
}

// names are those of all servers.
func (e *engine) names() []string {
	return slices.Concat(e.supervisor.Names(), e.remote.Names(), e.invalid.Names())
}

// close stops all servers and says which did not stop.
func (e *engine) close(ctx context.Context) {
	e.closing.Store(true)
	e.gateway.Close()
	remotes := make(chan []string, 1)
	go func() { remotes <- e.remote.Close(ctx) }() // ends with the sessions, or with ctx; it is waited for
	e.invalid.Close(ctx)                           // nothing of them runs
	if left := append(e.supervisor.Close(ctx), <-remotes...); len(left) > 0 {
		e.log.Error().Strs("servers", left).Msg("did not stop")
	}
	e.logins.Close(ctx) // a refresh that is given up may cost the login
	e.keeper.Close()
	e.history.Close()
}

// load reads the configuration and applies it. A file that can't be parsed
// changes nothing: it is an *exitError with code 65.
func (e *engine) load() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	config, err := mcpconfig.Load(e.places.ConfigDir)
	if err != nil {
		return err
	}
	if bad := config.Unparsable(); len(bad) > 0 {
		return &exitError{exitUnparsable, unparsable(config, bad)}
	}
	if err := e.refusal(config); err != nil {
		return err
	}
	stores := e.keeper.Configure(config.Settings.Stores)
	if e.config == nil {
		e.openVault(&config.Settings)
	}
	e.report(config)
	if e.edit != nil {
		if err := e.edit(config); err != nil {
			return err
		}
	}
	for name := range e.isolate {
		if server, ok := config.Server(name); ok {
			if err := e.supervisor.Isolate(server); err != nil {
				return err
			}
		}
	}
	e.supervisor.Apply(config)
	e.remote.Apply(config)
	e.invalid.Apply(config.LeftOut, func(entry *mcpconfig.Server) *lifecycle.Invalid {
		return lifecycle.NewInvalid(entry, source.Hooks{Event: e.tell}) // report has logged it
	})
	e.gateway.Apply(config, e.source)
	if e.config != nil {
		e.renew(config, stores)
	}
	e.config = config
	if e.applied != nil {
		e.applied(config)
	}
	return nil
}

// renew starts those servers again whose entries refer to stores that have changed.
func (e *engine) renew(config *mcpconfig.Config, stores []string) {
	var names []string
	for _, use := range config.Secrets {
		store, _, _ := strings.Cut(use.Key, ":")
		if strings.Contains(use.Key, ":") && slices.Contains(stores, store) && !slices.Contains(names, use.Server) {
			names = append(names, use.Server)
		}
	}
	for _, server := range config.Servers { // what a store that went leaves looks like a text
		if usesAny(e.source(server.Name), stores) && !slices.Contains(names, server.Name) {
			names = append(names, server.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	why := fmt.Sprintf("the section secrets says something else of %s", strings.Join(stores, ", "))
	e.supervisor.Renew(names, why)
	e.remote.Renew(names, why)
}

// usesAny reports whether a server was started with a secret of one of the stores.
func usesAny(src source.Source, stores []string) bool {
	return src != nil && slices.ContainsFunc(src.Status().Secrets, func(key string) bool {
		store, _, ok := strings.Cut(key, ":")
		return ok && slices.Contains(stores, store)
	})
}

// unparsable is the error for files that can't be parsed, with what is wrong.
func unparsable(config *mcpconfig.Config, files []string) error {
	var errs []error
	for _, f := range config.Findings {
		if f.Severity == mcpconfig.Error && aboutFile(f.Code) {
			errs = append(errs, errors.New(findingText(f)))
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("%s can't be parsed", strings.Join(files, ", "))
	}
	return errors.Join(errs...)
}

// aboutFile reports whether a code means that nothing of a file can be used.
func aboutFile(code mcpconfig.Code) bool {
	switch code {
	case mcpconfig.CodeFileUnparsable, mcpconfig.CodeFileUnreadable, mcpconfig.CodeFileNotUTF8:
		return true
	}
	return false
}

// findingText is a finding on one line.
func findingText(f mcpconfig.Finding) string {
	text := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
	if f.Line == 0 { // it is about the file as a whole
		text = fmt.Sprintf("%s: %s", f.File, f.Message)
	}
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// report logs what the check of a configuration found, as far as it is about what
// the engine runs.
func (e *engine) report(config *mcpconfig.Config) {
	findings := config.Findings
	if remembered, err := readIsolated(e.places); err == nil { // who needs it to be read will say so
		findings = remembered.correct(config)
	}
	for _, f := range findings.With(config.Unavailable(e.keeper.Check)) {
		if e.only != "" && f.Server != "" && f.Server != e.only {
			continue
		}
		if e.brief && f.Code == mcpconfig.CodeSecretPlaintext { // no matter of the one command
			continue
		}
		event := e.log.Info()
		switch {
		case f.Severity == mcpconfig.Info, e.brief && f.Code == mcpconfig.CodeEnvVaultUnavailable:
			event = e.log.Debug()
		case f.Severity == mcpconfig.Warning:
			event = e.log.Warn()
		case f.Severity == mcpconfig.Error:
			event = e.log.Error()
		}
		event.Str("code", string(f.Code)).Str("server", f.Server).Msg(findingText(f))
	}
}

// happened takes every event of the servers to the log, the followers and the
// gateway.
func (e *engine) happened(event source.Event) {
	level := zerolog.InfoLevel
	switch {
	case e.closing.Load(), e.brief && event.Failure != nil:
		level = zerolog.DebugLevel
	case event.Failure != nil:
		level = zerolog.ErrorLevel
	case event.Kind == source.EventWarning:
		level = zerolog.WarnLevel
	case event.Kind == source.EventNoise:
		level = zerolog.DebugLevel
	}
	line := e.log.WithLevel(level)
	if event.Server != "" {
		line.Str("server", event.Server)
	}
	if event.Holder != "" {
		line.Str("holder", event.Holder)
	}
	if event.State != "" {
		line.Str("state", string(event.State))
	}
	if event.PID != 0 {
		line.Int("pid", event.PID)
	}
	message := event.Message
	if event.Kind == source.EventState && message == "" {
		message = "server is " + string(event.State)
	}
	line.Msg(message)
	event.Message = message
	e.tell(event)
}

// tell takes an event of a server to the followers and the gateway.
func (e *engine) tell(event source.Event) {
	var reason source.Reason
	if event.Failure != nil {
		reason = event.Failure.Reason
	}
	e.publish(adminapi.Event{
		Reason: string(reason),
		Time:   event.Time, Kind: string(event.Kind), Server: event.Server, From: string(event.From),
		State: string(event.State), PID: event.PID, Message: event.Message, Holder: event.Holder,
	})
	if event.Kind == source.EventState {
		e.gateway.StateChanged(event.Origin)
	}
}

// publish hands an event to whoever follows.
func (e *engine) publish(event adminapi.Event) {
	if event.Time.IsZero() {
		event.Time = time.Now()
	}
	e.events.Publish(event)
}

// current returns the configuration in force.
func (e *engine) current() *mcpconfig.Config {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.config
}
