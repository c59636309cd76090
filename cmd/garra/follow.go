// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// reload is load for a running gateway: what is wrong is an event and an error,
// and the last good configuration stays.
func (e *engine) reload(context.Context) error {
	before := e.current()
	err := e.load()
	event := adminapi.Event{Kind: "config", Message: "the configuration was applied"}
	e.refused.Store(nil)
	switch gone := removed(before, e.current()); {
	case err != nil:
		why := err.Error()
		e.refused.Store(&why)
		event.Message = "the configuration was refused, the last one stays: " + err.Error()
		e.log.Error().Err(err).Msg("configuration refused, the last one stays")
	case len(gone) > 0:
		event.Message += "; " + strings.Join(gone, " and ") + " was removed, and the servers in it are stopped"
		e.log.Warn().Strs("removed", gone).
			Msg("configuration applied; the servers of the files that were removed are stopped")
	default:
		e.log.Info().Msg("configuration applied")
	}
	e.publish(event)
	return err
}

// whyRefused is why the files are not in force as they are, empty when they are.
func (e *engine) whyRefused() string {
	if why := e.refused.Load(); why != nil {
		return *why
	}
	return ""
}

// removed are the names of files that one configuration has and the next has not.
func removed(before, after *mcpconfig.Config) (names []string) {
	for i, f := range before.Files {
		if f.Exists && !after.Files[i].Exists {
			names = append(names, filepath.Base(f.Path))
		}
	}
	return names
}

// refusal says why what was loaded doesn't take the place of a configuration in force,
// nil when it does: what is a mistake, or nothing at all, when garra starts would
// stop every server while it runs.
func (e *engine) refusal(config *mcpconfig.Config) error {
	if e.config == nil {
		return nil
	}
	if _, err := os.Stat(config.Dir); errors.Is(err, fs.ErrNotExist) && len(removed(e.config, config)) > 0 {
		return fmt.Errorf("the configuration folder %s is gone", config.Dir)
	}
	for _, f := range config.Findings {
		if f.Severity == mcpconfig.Error && f.Code == mcpconfig.CodeSectionNotMap {
			return errors.New(findingText(f))
		}
	}
	return nil
}

// follow applies changes of the files, also those since they were loaded, until
// stop is called, which waits for the end of that.
func (e *engine) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() { // ends with stop, which waits for it
		defer close(watched)
		e.keeper.Watch(ctx, e.vaultTrouble)
	}()
	go func() { // likewise
		defer close(done)
		err := e.current().Watch(ctx, mcpconfig.Hooks{
			Changed: func() { _ = e.reload(ctx) }, // it has said what is wrong
			Kept: func(reason string) {
				e.happened(source.Event{Kind: source.EventWarning, Message: reason + "; the servers stay as they are"})
			},
			Back: func() {
				const message = "the configuration folder is back"
				e.log.Info().Msg(message)
				e.publish(adminapi.Event{Kind: "config", Message: message})
			},
		})
		if err != nil && ctx.Err() == nil {
			e.log.Error().Err(err).
				Msg("changes of files are not seen; a gateway that serves applies them on SIGHUP")
		}
	}()
	return func() {
		cancel()
		<-done
		<-watched
	}
}
