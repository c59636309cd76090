// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWellBehavedWithoutFlags(t *testing.T) {
	c := start(t)
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		c.send(`{"jsonrpc":"2.0","id":%q,"method":"initialize","params":{"protocolVersion":%q}}`, "i", revision)
		c.want(`{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"` + revision + `","capabilities":` +
			defaultCaps + `,"serverInfo":{"name":"misbehave","version":"1.0"}}}`)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(`not even json`)
	c.ping()
	if got := c.call(1, "echo", `{"text":"<&> \u2028 ü"}`); got != "<&> \u2028 ü" {
		t.Errorf("echo: %q", got)
	}
	for method, code := range map[string]string{"server/discover": "-32601", "nonsense": "-32601"} {
		if m := c.request(2, method, `{}`); !strings.Contains(string(m.Error), code) {
			t.Errorf("%s: %+v, want error %s", method, m, code)
		}
	}
	c.stdin.Close()
	if got := c.exit(); got != 0 {
		t.Errorf("exit code %d", got)
	}
	if got := c.stderr.String(); !strings.Contains(got, "no message") || strings.Count(got, "\n") != 1 {
		t.Errorf("stderr: %q, want one line about the line that is no message", got)
	}
}

func TestOffersBesidesTools(t *testing.T) {
	c := start(t)
	for _, test := range []struct{ method, params, want string }{
		{"resources/list", `{}`, resources},
		{"resources/templates/list", `{}`, templates},
		{"resources/read", `{"uri":"test://empty"}`, `{"contents":[{"uri":"test://empty","text":""}]}`},
		{"resources/read", `{"uri":"test://item/7"}`, `{"contents":[{"uri":"test://item/7","text":"item 7"}]}`},
		{"resources/subscribe", `{"uri":"test://text"}`, `{}`},
		{"prompts/list", `{}`, prompts},
		{
			"prompts/get", `{"name":"greet","arguments":{"who":"<you>"}}`,
			`{"messages":[{"role":"user","content":{"type":"text","text":"Greet <you>."}}]}`,
		},
		{"logging/setLevel", `{"level":"debug"}`, `{}`},
		{
			"completion/complete", `{"argument":{"name":"who","value":"al"}}`,
			`{"completion":{"values":["alice","albert"],"hasMore":false}}`,
		},
	} {
		if got := c.request(1, test.method, test.params); string(got.Result) != test.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", test.method, test.params, got.Result, test.want)
		}
	}
	for method, params := range map[string]string{
		"resources/read": `{"uri":"test://none"}`,
		"prompts/get":    `{"name":"none"}`,
		"tools/list":     `{"cursor":"none"}`,
		"tools/call":     `{"name":"none"}`,
	} {
		if got := c.request(2, method, params); !strings.Contains(string(got.Error), "-32602") {
			t.Errorf("%s %s: %s, want error -32602", method, params, got.Error)
		}
	}
}

func TestToolListFlags(t *testing.T) {
	always := len(tools())
	for _, test := range []struct {
		flags []string
		want  int
		names []string
	}{
		{nil, always, []string{"echo", "weird"}},
		{[]string{"--tools", "300"}, always + 300, []string{"tool_1", "tool_300"}},
		{[]string{"--grow-tools"}, always + 1, []string{"grow"}},
		{[]string{"--long-names"}, always + len(longNames()), []string{strings.Repeat("l", 70), "with space"}},
		{[]string{"--bad-schemas"}, always + len(badSchemas()), []string{"bad_missing", "bad_circular"}},
		{[]string{"--dup-tools"}, always + 1, []string{"echo"}},
	} {
		t.Run(strings.Join(test.flags, " "), func(t *testing.T) {
			got, next := start(t, test.flags...).toolNames("")
			if len(got) != test.want || next != "" {
				t.Errorf("%d tools and cursor %q, want %d and none", len(got), next, test.want)
			}
			for _, name := range test.names {
				if !slices.Contains(got, name) {
					t.Errorf("no tool %q in %q", name, got)
				}
			}
		})
	}
	names, _ := start(t, "--dup-tools").toolNames("")
	if occurrences(names, "echo") != 2 {
		t.Errorf("--dup-tools: %q, want echo twice", names)
	}
}

func TestPages(t *testing.T) {
	c := start(t, "--page-size", "8", "--pages", "6")
	var all []string
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		var page []string
		page, cursor = c.toolNames(cursor)
		if len(page) != 8 {
			t.Errorf("a page of %d", len(page))
		}
		all = append(all, page...)
	}
	slices.Sort(all)
	if pages != 6 || len(slices.Compact(all)) != 48 {
		t.Errorf("%d pages, %d different tools; want 6 and 48", pages, len(all))
	}
}

func TestCyclicCursor(t *testing.T) {
	c := start(t, "--cyclic-cursor", "--page-size", "2")
	for _, cursor := range []string{"", "page-1", "page-1"} {
		if names, next := c.toolNames(cursor); len(names) != 2 || next != "page-1" {
			t.Errorf("%q, then %q", names, next)
		}
	}
}

func TestEndlessCursor(t *testing.T) {
	c := start(t, "--endless-cursor", "--page-size", "2")
	seen := map[string]bool{}
	cursor := ""
	for range 20 {
		var page []string
		page, cursor = c.toolNames(cursor)
		if len(page) != 2 || cursor == "" || seen[cursor] {
			t.Fatalf("page %q, cursor %q after %v", page, cursor, seen)
		}
		seen[cursor] = true
	}
}

func TestToolDescriptionSize(t *testing.T) {
	c := start(t, "--tools", "1", "--tool-desc-bytes", "2000000")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := len(c.line()); got < 2_000_000 || got > 2_100_000 {
		t.Errorf("a list of %d bytes", got)
	}
}

func TestFlagsAndToolsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	new(options).flags().VisitAll(func(f *flag.Flag) {
		if !strings.Contains(string(doc), "\n//\t--"+f.Name+" ") {
			t.Errorf("flag --%s is not in doc.go", f.Name)
		}
	})
	_, list, _ := strings.Cut(string(doc), "# Tools")
	for _, tool := range tools() {
		if !strings.Contains(list, tool.name) {
			t.Errorf("tool %s is not in doc.go", tool.name)
		}
	}
}

func TestMisspelledFlagsFail(t *testing.T) {
	for _, args := range [][]string{
		{"--bannner", "x"},
		{"banner"},
		{"--caps", "{"},
		{"--pages", "2"},
		{"--exit-after", "1"},
	} {
		if got, err := parseOptions(args); err == nil {
			t.Errorf("%q is read as %+v", args, got)
		}
	}
	if c := start(t, "--bannner"); c.exit() != 2 || !strings.Contains(c.stderr.String(), "bannner") {
		t.Errorf("exit code %d, stderr %q", c.cmd.ProcessState.ExitCode(), c.stderr.String())
	}
}

func TestFlood(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 1000} {
		if got := len(flood(n)); got != n {
			t.Errorf("flood(%d): %d bytes", n, got)
		}
	}
	if diff := cmp.Diff("the quick", string(flood(9))); diff != "" {
		t.Error(diff)
	}
}

// occurrences returns how often name is in names.
func occurrences(names []string, name string) int {
	n := 0
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}
