// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"testing"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

// What a model would ask for in its own words, and the tools of the pinned
// servers that do it.
func wishes() map[string][]string {
	return map[string][]string{
		"read the contents of a file":           {"filesystem__read_text_file", "filesystem__read_file"},
		"write text to a new file":              {"filesystem__write_file", "desktop-commander__write_file"},
		"what is in this folder":                {"filesystem__list_directory", "desktop-commander__list_directory"},
		"make a directory":                      {"filesystem__create_directory"},
		"rename a file":                         {"filesystem__move_file", "desktop-commander__move_file"},
		"size and modification time of a file":  {"filesystem__get_file_info"},
		"find files by name pattern":            {"filesystem__search_files", "desktop-commander__start_search"},
		"remember facts about a person":         {"memory__add_observations", "memory__create_entities"},
		"search the knowledge graph":            {"memory__search_nodes"},
		"connect two entities":                  {"memory__create_relations"},
		"forget an entity":                      {"memory__delete_entities"},
		"think step by step":                    {"sequential-thinking__sequentialthinking"},
		"add two numbers":                       {"everything__get-sum"},
		"send my text back":                     {"everything__echo"},
		"environment variables for debugging":   {"everything__get-env"},
		"run a shell command":                   {"desktop-commander__start_process"},
		"kill a process":                        {"desktop-commander__kill_process"},
		"which processes are running":           {"desktop-commander__list_processes"},
		"list pods in a namespace":              {"kubernetes__pods_list_in_namespace"},
		"logs of a pod":                         {"kubernetes__pods_log"},
		"delete a kubernetes resource":          {"kubernetes__resources_delete"},
		"what happened in the cluster recently": {"kubernetes__events_list"},
		"cpu and memory usage of nodes":         {"kubernetes__nodes_top"},
		"documentation of a library":            {"context7__query-docs", "context7__get-library-docs"},
		"library id for a package name":         {"context7__resolve-library-id"},
	}
}

// TestToolSearch finds tools of the real servers by what a model would ask for,
// and measures what the list costs without it and with it.
func TestToolSearch(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	entries := make(map[string]rig.Entry)
	for _, s := range answering(t, h) {
		entries[s.Name] = rig.Entry{"command": s.Command, "args": s.Args, "env": s.Env, "cwd": h.Path("work")}
	}
	h.Configure(entries)
	g := h.Serve()
	for name := range entries {
		g.Ready(name)
	}
	c := g.Connect("")
	complete := len(c.Request("tools/list", `{}`).Result)
	h.Write("config.yml", "tools: search\n")
	rig.Eventually(t, rig.Patience, "the tools are searched", func() bool { return len(c.Tools()) == 2 })
	searched := len(c.Request("tools/list", `{}`).Result)

	first, top, answers := 0, 0, 0
	for wish, tools := range wishes() {
		query, _ := json.Marshal(map[string]any{"query": wish, "limit": 5}) // of text and a number
		text := c.Text("find_tool", string(query))
		answers += len(text)
		var found struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(err)
		}
		rank := -1
		var names []string
		for i, tool := range found.Tools {
			names = append(names, tool.Name)
			for _, wanted := range tools {
				if tool.Name == wanted && rank < 0 {
					rank = i
				}
			}
		}
		switch {
		case rank == 0:
			first++
			fallthrough
		case rank > 0:
			top++
		default:
			t.Logf("%q: none of %v is among %v", wish, tools, names)
		}
	}
	all := len(wishes())
	t.Logf("tools/list: %d bytes complete, %d searched; an answer of find_tool has %d", complete, searched, answers/all)
	t.Logf("of %d wishes %d have their tool first, %d among the first five", all, first, top)
	if top*10 < all*9 {
		t.Errorf("fewer than nine in ten wishes are found")
	}
	m := c.Call("call_tool", `{"name":"everything__echo","arguments":{"message":"found"}}`)
	if text, ok := rig.TextOf(m); !ok || text != "Echo: found" {
		t.Errorf("calling what was found: %s", protocol.Raw(m.Result))
	}
}
