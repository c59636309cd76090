// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"testing"

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
