// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"regexp"
	"strings"
	"testing"
)

func TestExpose(t *testing.T) {
	plain := map[[2]string]string{
		{"git", "commit"}:              "git__commit",
		{"a-b", "c_d"}:                 "a-b__c_d",
		{"a", "b__c"}:                  "a__b__c",
		{"a", "_b"}:                    "a___b",
		{"A", "x_0123abc"}:             "A__x_0123abc",
		{"A", "x_0123ABCD"}:            "A__x_0123ABCD",
		{"s", strings.Repeat("x", 61)}: "s__" + strings.Repeat("x", 61),
	}
	for in, want := range plain {
		if got := Expose(in[0], in[1]); got != want {
			t.Errorf("Expose(%q, %q) = %q, want %q", in[0], in[1], got, want)
		}
	}
	changed := map[string][2]string{
		"a dot":                    {"a", "b.c"},
		"a space":                  {"a", "b c"},
		"a dot in the server":      {"a.b", "c"},
		"__ in the server":         {"a__b", "c"},
		"_ at the server's end":    {"a_", "b"},
		"too long":                 {"s", strings.Repeat("x", 62)},
		"like a changed name":      {"a", "b_01234567"},
		"another script":           {"a", "ü"},
		"nothing but a digest":     {"s", "deadbeef"},
		"very long server's name":  {strings.Repeat("s", 64), "t"},
		"control character":        {"a", "b\nc"},
		"long and with characters": {"a.b", strings.Repeat("ü", 80)},
	}
	form := regexp.MustCompile(`^[A-Za-z0-9_-]{1,55}_[0-9a-f]{8}$`)
	seen := map[string]string{}
	for why, in := range changed {
		got := Expose(in[0], in[1])
		if !form.MatchString(got) {
			t.Errorf("%s: %q", why, got)
		}
		if other := seen[got]; other != "" {
			t.Errorf("%s and %s are both %q", why, other, got)
		}
		seen[got] = why
	}
}

func TestExposeKnownValues(t *testing.T) {
	// Clients remember names: these must never change.
	for in, want := range map[[2]string]string{
		{"a.b", "c"}: "a_b__c_8b745bb4",
		{"a", "b.c"}: "a__b_c_ad8a94ab",
	} {
		if got := Expose(in[0], in[1]); got != want {
			t.Errorf("Expose(%q, %q) = %q, want %q", in[0], in[1], got, want)
		}
	}
}

func TestCraftedNamesDoNotCollide(t *testing.T) {
	victim := Expose("a", "b.c") // a__b_c_ and eight digits
	copycat := strings.TrimPrefix(victim, "a__")
	if got := Expose("a", copycat); got == victim {
		t.Errorf("a tool named %q takes the name of b.c", copycat)
	}
	if Expose("a_", "b") == Expose("a", "_b") {
		t.Error("a_ and b are read as a and _b")
	}
}

// FuzzExpose holds that names have the promised form and lead back to their
// server.
func FuzzExpose(f *testing.F) {
	f.Add("a", "b")
	f.Add("a.b__", "c d")
	f.Add(strings.Repeat("s", 64), strings.Repeat("t", 300))
	form := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, server, item string) {
		name := Expose(server, item)
		if !form.MatchString(name) {
			t.Fatalf("%q of %q, %q", name, server, item)
		}
		if !MayBelong(server, name) {
			t.Fatalf("%q is not recognized as %q's", name, server)
		}
		if again := Expose(server, item); again != name {
			t.Fatalf("unstable: %q, %q", name, again)
		}
	})
}
