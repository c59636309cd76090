// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// leftOut returns the entry that a configuration leaves out.
func leftOut(t *testing.T, text string) []*mcpconfig.Server {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, mcpconfig.ServersFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := mcpconfig.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return config.LeftOut
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	scene(t, "an entry with errors fails, and says why", func(t *testing.T) {
		set := NewSet[*Invalid]()
		defer set.Close(t.Context())
		create := func(entry *mcpconfig.Server) *Invalid { return NewInvalid(entry, source.Hooks{}) }
		wants := func(what string, err error, reason string) {
			t.Helper()
			if f := source.AsFailure(err, "", ""); f == nil || f.Code != source.ServerFailed ||
				!strings.Contains(f.Error(), reason) {
				t.Errorf("%s: %v, want %s", what, err, reason)
			}
		}
		set.Apply(leftOut(t, `{"mcpServers": {"a": {"type": "pigeon", "command": "x"}}}`), create)
		synctest.Wait()
		a := set.Server("a")
		const pigeon = `mcp.json:1:31: type "pigeon" is not known; write`
		if s := a.Status(); s.State != source.Failed || !s.Tried {
			t.Fatalf("it is %s", s.State)
		}
		wants("its status", a.Status().LastError, pigeon)
		_, err := a.Hello(t.Context())
		wants("a call", err, pigeon)
		wants("a start", a.Start(t.Context()), pigeon)
		wants("a restart", a.Restart(t.Context()), pigeon)
		if lines, _ := a.Logs(0); len(lines) > 0 {
			t.Errorf("it wrote %v", lines)
		}
		pass(time.Minute) // it is looked at again and again
		wants("its status", a.Status().LastError, pigeon)

		set.Apply(leftOut(t, `{"mcpServers": {"a": {}}}`), create)
		synctest.Wait()
		wants("its status", a.Status().LastError, "neither command nor url")
		set.Apply(leftOut(t, `{"mcpServers": {"a": {"type": 1, "command": "x", "disabled": true}}}`), create)
		synctest.Wait()
		if s := a.Status(); s.State != source.Disabled {
			t.Errorf("one that is disabled is %s", s.State)
		}
	})
}
