// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"slices"
	"testing"

	"github.com/garraia/garra/source"
)

// What an edit changes decides what becomes of the session.
func TestEdits(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{})
	other := serve(t, &script{})
	r := newRig(t)
	r.only(at(w.URL))
	generation := func() uint64 { return r.state("s", source.Ready).Hello.Generation }
	for _, c := range []struct {
		change string
		entry  fields
		want   uint64
	}{
		{"nothing", at(w.URL), 1},
		{"tools", at(w.URL).With("deniedTools", []string{"x"}), 1},
		{"time", at(w.URL).With("callTimeoutSecs", 7), 1},
		{"headers", at(w.URL).With("headers", args{"A": "b"}), 2},
		{"url", at(other.URL), 3},
	} {
		r.apply(map[string]fields{"s": c.entry})
		if got := generation(); got != c.want {
			t.Errorf("%s: generation %d, want %d", c.change, got, c.want)
		}
	}
	s := r.Server("s")
	r.apply(map[string]fields{"s": at(other.URL).With("disabled", true), "t": at(w.URL)})
	r.state("s", source.Disabled)
	_, err := s.Call(t.Context(), tool("x", nil))
	failed(t, err, source.ServerDisabled)
	failed(t, s.Start(t.Context()), source.ServerDisabled)
	failed(t, s.Stop(t.Context()), source.ServerDisabled)
	r.apply(map[string]fields{"t": at(w.URL), "local": {"command": "cat"}})
	if got := r.Names(); !slices.Equal(got, []string{"t"}) || r.Server("s") != nil || r.Server("local") != nil {
		t.Errorf("%v", got)
	}
	_, err = s.Call(t.Context(), tool("x", nil))
	failed(t, err, source.ServerUnknown)
}
