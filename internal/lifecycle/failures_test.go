// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"testing"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// What a call of a server that can't be started gets: each thing is said once.
func TestTextsOfFailedServers(t *testing.T) {
	t.Parallel()
	fire := errors.New("fire")
	for name, test := range map[string]struct {
		last *source.Failure
		code source.Code
		want string
	}{
		"with a fix": {
			&source.Failure{Code: source.ServerFailed, Message: "X is not set", Fix: "set X", Cause: fire},
			source.ServerFailed, `server "s": the server can't be started: X is not set; set X`,
		},
		"a secret": {
			&source.Failure{Code: source.SecretMissing, Message: "secret Y is not available", Cause: fire},
			source.SecretMissing, `server "s": the server can't be started: secret Y is not available; ` +
				`mend the cause, garra looks again from time to time`,
		},
	} {
		got := failedFailure("s", &snapshot{status: source.Status{LastError: test.last}})
		if got.Code != test.code || got.Error() != test.want || !errors.Is(got, fire) {
			t.Errorf("%s: %s\ngot  %s\nwant %s", name, got.Code, got, test.want)
		}
	}
}

func TestTextsOfParkedServers(t *testing.T) {
	t.Parallel()
	never := plain(func(e *mcpconfig.Server) { e.MaxRestarts = 0 })
	scene(t, "of one that never starts by itself", func(t *testing.T) {
		s := newStage(never)
		defer s.close(t)
		s.crash()
		call := hello(t.Context(), s)
		s.crash()
		contains(t, failed(t, <-call, source.ServerParked).Error(),
			"not started again by itself (maxRestarts is 0): it crashed", "garra mcp restart s")
	})
	scene(t, "for one command are what happened", func(t *testing.T) {
		s := newStage(plain(), func(o *Options) { o.Once = true })
		defer s.close(t)
		s.crash()
		s.is(t, source.Parked)
		call := hello(t.Context(), s)
		s.crash()
		if f := failed(t, <-call, source.ServerCrashed); f.Message != "it crashed" {
			t.Error(f)
		}
	})
}

// Whose entry is disabled is told in which line.
func TestTextOfADisabledServer(t *testing.T) {
	t.Parallel()
	config := sourcetest.Load(t, t.TempDir(), map[string]fields{"s": {"command": "x", "disabled": true}})
	contains(t, disabledFailure(config.Servers[0]).Error(), "mcp.json:5") // and the entry begins in 3
}

// Each thing is said once.
func TestTextsOfEntries(t *testing.T) {
	t.Parallel()
	one := &envbuild.Error{
		Kind: envbuild.ErrUnset, Server: "s", Field: "env.A", Where: "mcp.json:3",
		Message: "variable X is not set", Fix: "set X",
	}
	two := &envbuild.Error{
		Kind: envbuild.ErrSecret, Server: "s", Field: "env.B", Where: "mcp.json:4",
		Message: "secret Y is not available", Fix: "store Y",
	}
	for name, test := range map[string]struct {
		err  error
		code source.Code
		want string
	}{
		"one problem": {
			envbuild.Errors{one},
			source.ServerFailed,
			`server "s": env.A (mcp.json:3): variable X is not set; set X`,
		},
		"two problems": {
			envbuild.Errors{one, two},
			source.SecretMissing,
			`server "s": env.A (mcp.json:3): variable X is not set; set X; and ` +
				`env.B (mcp.json:4): secret Y is not available; store Y`,
		},
		"something else": {
			errors.New("disk on fire"), source.ServerFailed, `server "s": disk on fire`,
		},
	} {
		f := EntryFailure("s", test.err)
		if f.Code != test.code || f.Error() != test.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", name, f.Code, f, test.want)
		}
		if !errors.Is(f, test.err) && !errors.As(f, new(envbuild.Errors)) {
			t.Errorf("%s: the cause is lost", name)
		}
	}
}
