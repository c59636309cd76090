// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestOwner(t *testing.T) {
	for _, c := range []struct {
		name, server, key string
		ok                bool
	}{
		{"mcp.a.TOKEN", "a", "TOKEN", true},
		{"mcp.a.b.TOKEN", "a.b", "TOKEN", true},
		{"mcp.a-b_c.x-y", "a-b_c", "x-y", true},
		{"mcp.a..TOKEN", "a.", "TOKEN", true},
		{"mcp.mcp.a.T", "mcp.a", "T", true},
		{"mcp.TOKEN", "", "", false},
		{"mcp..TOKEN", "", "", false},
		{"mcp.a.", "", "", false},
		{"mcp.", "", "", false},
		{"MCP.a.TOKEN", "", "", false},
		{"a.TOKEN", "", "", false},
		{"mcp._a.TOKEN", "", "", false},
		{"mcp.a/b.TOKEN", "", "", false},
		{"mcp." + strings.Repeat("a", 65) + ".T", "", "", false},
		{"", "", "", false},
	} {
		server, key, ok := Owner(c.name)
		if server != c.server || key != c.key || ok != c.ok {
			t.Errorf("%q: %q %q %v", c.name, server, key, ok)
		}
		if ok && OwnName(server, key) != c.name {
			t.Errorf("%q comes back as %q", c.name, OwnName(server, key))
		}
	}
}

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		entry  Entry
		server string
		want   bool
	}{
		{Entry{Name: "mcp.a.T"}, "a", true},
		{Entry{Name: "mcp.a.T"}, "b", false},
		{Entry{Name: "mcp.a.b.T"}, "a", false},
		{Entry{Name: "mcp.a.b.T"}, "a.b", true},
		{Entry{Name: "mcp.a.T", For: []string{"b"}}, "b", true},
		{Entry{Name: "mcp.a.T", For: []string{"b"}}, "a", true},
		{Entry{Name: "shared", For: []string{"a", "b"}}, "b", true},
		{Entry{Name: "shared"}, "a", false},
		{Entry{Name: "shared"}, "", false},
	} {
		if got := c.entry.Allows(c.server); got != c.want {
			t.Errorf("%+v for %q: %v", c.entry, c.server, got)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "_a", "0", "A.b-C_d", "mcp.x.TOKEN", strings.Repeat("a", 128)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", "-a", ".a", "a b", "a}", "${a}", "a/b", "a\n", "a\x00", "ä", "a\xff", "a:b", "a=b",
		strings.Repeat("a", 129),
	} {
		wantKind(t, CheckName(name), ErrBadName, "take up to 128")
	}
	if message := CheckName(strings.Repeat("a", 5000)).Error(); len(message) > 400 {
		t.Errorf("a message of %d bytes", len(message))
	}
}

func TestErrorText(t *testing.T) {
	err := error(&Error{Kind: ErrDamaged, Path: "/v", Message: "what", Cause: io.EOF, Fix: "do this"})
	if got := err.Error(); got != "/v: what: EOF; do this" {
		t.Errorf("got %q", got)
	}
	if !errors.Is(err, ErrDamaged) || !errors.Is(err, io.EOF) || errors.Is(err, ErrNoVault) {
		t.Errorf("%v has other kinds", err)
	}
	if got := (&Error{Kind: ErrNoKey, Message: "what"}).Error(); got != "what" {
		t.Errorf("got %q", got)
	}
}
