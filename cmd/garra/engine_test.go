// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/mcpconfig"
)

// An edit between loading the files and watching them is applied too.
func TestAnEditBeforeTheWatchIsSeen(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "mcp.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"mcpServers": {"one": {"command": "true", "disabled": true}}}`)
	e, err := newEngine(place.Places{ConfigDir: dir, RunDir: dir}, zerolog.Nop(), purpose{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close(t.Context())
	applied := make(chan int, 10)
	e.applied = func(c *mcpconfig.Config) { applied <- len(c.Servers) }
	if err := e.load(); err != nil {
		t.Fatal(err)
	}
	if n := <-applied; n != 1 {
		t.Fatalf("%d servers, want 1", n)
	}
	write(`{"mcpServers": {"one": {"command": "true", "disabled": true},
		"two": {"command": "true", "disabled": true}}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := e.follow(ctx)
	if n := <-applied; n != 2 {
		t.Errorf("%d servers, want 2", n)
	}
	write(`{"mcpServers": {}}`)
	if n := <-applied; n != 0 {
		t.Errorf("%d servers, want none", n)
	}
	stop()
}
