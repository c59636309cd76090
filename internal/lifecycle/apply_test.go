// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// text returns the entry s of an mcp.json with these fields, lines down.
func text(t *testing.T, lines int, f fields) *mcpconfig.Server {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": f}})
	if err != nil {
		t.Fatal(err)
	}
	data = append([]byte(strings.Repeat("\n", lines)), data...)
	if err := os.WriteFile(filepath.Join(dir, mcpconfig.ServersFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := mcpconfig.Load(dir)
	if err != nil || len(config.Servers) != 1 {
		t.Fatalf("%v: %+v", err, config)
	}
	return config.Servers[0]
}

// The texts of an entry that tests switch between.
type texts struct{ base, moved, policy, process, disabled, lazy *mcpconfig.Server }

func newTexts(t *testing.T) texts {
	f := fields{"command": "server", "maxRestarts": 1}
	return texts{
		base:     text(t, 0, f),
		moved:    text(t, 3, f),
		policy:   text(t, 0, f.With("callTimeoutSecs", 7)),
		process:  text(t, 0, f.With("args", []string{"-v"})),
		disabled: text(t, 0, f.With("disabled", true)),
		lazy:     text(t, 0, f.With("start", "lazy").With("idleStopSecs", 60)),
	}
}

// apply hands a text to the owner.
func (s *stage) apply(e *mcpconfig.Server) {
	_ = s.ask(context.Background(), func(o *owner) { o.apply(e) })
	synctest.Wait()
}

// An edit case says what an edit of the entry leads to in each state: how many
// new runs, and which state, where absent none and the same.
type editCase struct {
	edit   string
	starts map[source.State]int
	state  map[source.State]source.State
}

func editCases() []editCase {
	const (
		starting, ready, backoff = source.Starting, source.Ready, source.Backoff
		parked, failed, disabled = source.Parked, source.Failed, source.Disabled
	)
	return []editCase{
		{edit: "moved"},
		{
			edit:   "policy",
			starts: map[source.State]int{backoff: 1, parked: 1, failed: 1, disabled: 1},
			state: map[source.State]source.State{
				backoff: starting, parked: starting, failed: starting, disabled: starting,
			},
		},
		{
			edit:   "process",
			starts: map[source.State]int{starting: 1, ready: 1, backoff: 1, parked: 1, failed: 1, disabled: 1},
			state: map[source.State]source.State{
				ready: starting, backoff: starting, parked: starting, failed: starting, disabled: starting,
			},
		},
		{
			edit: "disabled",
			state: map[source.State]source.State{
				starting: disabled, ready: disabled, backoff: disabled, parked: disabled, failed: disabled,
				source.Stopped: disabled,
			},
		},
	}
}

// reach brings a stage, whose entry has the base text, into a state.
func (s *stage) reach(state source.State, all texts) {
	switch state {
	case source.Ready:
		s.ready()
	case source.Parked:
		s.crash()
		time.Sleep(6 * time.Second)
		s.crash()
	case source.Backoff:
		s.crash()
	case source.Failed:
		s.giveUp()
	case source.Stopped:
		_ = s.Stop(context.Background()) // the state tells
	case source.Disabled:
		s.apply(all.disabled)
	case source.Starting, source.Stopping:
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, test := range editCases() {
		for _, from := range []source.State{
			source.Starting, source.Ready, source.Backoff, source.Parked,
			source.Failed, source.Stopped, source.Disabled,
		} {
			scene(t, test.edit+" while "+string(from), func(t *testing.T) {
				all := newTexts(t)
				s := newStage(all.base)
				defer s.close(t)
				s.reach(from, all)
				s.is(t, from)
				before := s.count()
				next := map[string]*mcpconfig.Server{
					"moved": all.moved, "policy": all.policy, "process": all.process, "disabled": all.disabled,
				}[test.edit]
				if from == source.Disabled && test.edit == "moved" {
					next = all.disabled // a moved text of an enabled entry would be an edit
				}
				s.apply(next)
				want, changes := test.state[from]
				if !changes {
					want = from
				}
				s.is(t, want)
				if got := s.count() - before; got != test.starts[from] {
					t.Errorf("%d starts, want %d", got, test.starts[from])
				}
				if entry := s.current.Load().entry; entry != next {
					t.Errorf("the entry in force is the one at %s", entry.Origin)
				}
			})
		}
	}
}

func TestEditsDuringAStop(t *testing.T) {
	t.Parallel()
	scene(t, "enabled again", func(t *testing.T) {
		all := newTexts(t)
		s := newStage(all.base)
		defer s.close(t)
		s.lag = time.Minute
		s.ready()
		s.apply(all.disabled)
		s.is(t, source.Stopping)
		s.apply(all.base)
		time.Sleep(2 * time.Minute)
		s.is(t, source.Starting)
	})
	scene(t, "disabled instead of restarted", func(t *testing.T) {
		all := newTexts(t)
		s := newStage(all.base)
		defer s.close(t)
		s.lag = time.Minute
		s.ready()
		restarted := inBackground(func() error { return s.Restart(t.Context()) })
		s.apply(all.disabled)
		failed(t, <-restarted, source.ServerDisabled)
		s.is(t, source.Disabled)
	})
	scene(t, "a person's stop stays", func(t *testing.T) {
		all := newTexts(t)
		s := newStage(all.base)
		defer s.close(t)
		s.lag = time.Minute
		s.ready()
		stopped := inBackground(func() error { return s.Stop(t.Context()) })
		s.apply(all.process)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		s.is(t, source.Stopped)
	})
	scene(t, "the newest text is what starts", func(t *testing.T) {
		all := newTexts(t)
		s := newStage(all.base)
		defer s.close(t)
		s.lag = time.Minute
		s.ready()
		s.apply(all.process)
		s.apply(all.policy)
		time.Sleep(2 * time.Minute)
		if got := s.last().Entry; got != all.policy || s.count() != 2 {
			t.Errorf("run %d of the entry with args %q", s.count(), got.Args)
		}
	})
}

func TestDisabledServers(t *testing.T) {
	t.Parallel()
	scene(t, "are not started by anybody", func(t *testing.T) {
		all := newTexts(t)
		s := newStage(all.disabled)
		defer s.close(t)
		s.is(t, source.Disabled)
		for _, do := range []func(Context) error{s.Start, s.Restart, s.Stop} {
			contains(t, failed(t, do(t.Context()), source.ServerDisabled).Error(), "mcp.json:1")
		}
		failed(t, <-hello(t.Context(), s), source.ServerDisabled)
		time.Sleep(24 * time.Hour)
		s.is(t, source.Disabled)
		if s.count() != 0 {
			t.Errorf("%d runs", s.count())
		}
		s.apply(all.base)
		s.ready()
		s.is(t, source.Ready)
	})
	scene(t, "were never anything else at the end", func(t *testing.T) {
		s := newStage(newTexts(t).disabled)
		s.close(t)
		if len(s.events) != 0 || s.Status().State != source.Disabled {
			t.Errorf("%s; events %+v", s.Status().State, s.events)
		}
	})
}
