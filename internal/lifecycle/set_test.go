// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A cast is a set of stages.
type cast struct {
	*Set[*stage]
	lag time.Duration // of those that come
}

func newCast() *cast { return &cast{Set: NewSet[*stage]()} }

// apply makes these the servers.
func (c *cast) apply(names ...string) {
	var entries []*mcpconfig.Server
	for _, name := range names {
		entries = append(entries, plain(func(e *mcpconfig.Server) { e.Name = name }))
	}
	c.Apply(entries, func(entry *mcpconfig.Server) *stage {
		s := &stage{lag: c.lag}
		s.Server = New(entry, s, Options{Hooks: source.Hooks{Event: s.told}})
		return s
	})
	synctest.Wait()
}

func TestSet(t *testing.T) {
	t.Parallel()
	scene(t, "a successor waits for its predecessor", func(t *testing.T) {
		c := newCast()
		c.lag = time.Minute
		c.apply("a", "b")
		a, b := c.Server("a"), c.Server("b")
		c.apply("b")
		failed(t, <-hello(t.Context(), a), source.ServerUnknown)
		if c.Server("a") != nil || c.Server("b") != b || b.count() != 1 {
			t.Errorf("%q", c.Names())
		}
		c.apply("b", "a", "c")
		next := c.Server("a")
		next.is(t, source.Starting)
		if next == a || next.count() != 0 || c.Server("c").count() != 1 {
			t.Errorf("%d runs of the successor", next.count())
		}
		pass(61 * time.Second)
		if a.running() != 0 || next.count() != 1 {
			t.Errorf("%d runs of the successor", next.count())
		}
		if left := c.Close(t.Context()); len(left) != 0 {
			t.Errorf("left %q", left)
		}
		c.apply("late")
		if names := c.Names(); len(names) != 0 {
			t.Errorf("after the end: %q", names)
		}
	})
	scene(t, "a stop doesn't wait for the predecessor", func(t *testing.T) {
		c := newCast()
		c.lag = time.Hour
		c.apply("a")
		c.apply()
		c.apply("a")
		began := time.Now()
		if err := c.Server("a").Stop(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		c.Close(t.Context())
	})
	scene(t, "what doesn't end is named", func(t *testing.T) {
		c := newCast()
		c.lag = time.Minute
		c.apply("a", "b")
		c.apply("b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if left := c.Close(ctx); !slices.Equal(left, []string{"a", "b"}) {
			t.Errorf("left %q", left)
		}
		pass(time.Hour)
		if left := c.Close(t.Context()); len(left) != 0 {
			t.Errorf("left in the end: %q", strings.Join(left, " "))
		}
	})
}
