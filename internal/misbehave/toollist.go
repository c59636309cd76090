// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// toolList returns the tools that the flags ask for.
func toolList(opts *options) []*tool {
	list := tools()
	if opts.growTools {
		list = append(list, &tool{name: "grow", schema: object(), serial: true, run: grow})
	}
	if opts.badSchemas {
		list = append(list, badSchemas()...)
	}
	if opts.longNames {
		list = append(list, longNames()...)
	}
	if opts.dupTools {
		list = append(list, plain("echo", "the second tool of this name"))
	}
	more := opts.tools
	if need := opts.pages*opts.pageSize - len(list); opts.pages > 0 && need > more {
		more = need
	}
	for i := range more {
		list = append(list, plain(fmt.Sprintf("tool_%d", i+1), string(flood(opts.toolDescBytes))))
	}
	return list
}

// plain returns a tool that answers with its name.
func plain(name, description string) *tool {
	return &tool{
		name: name, description: description, schema: object(),
		run: func(*call) string { return textResult(name) },
	}
}

// badSchemas returns a tool for each kind of schema that clients and models
// were seen to choke on.
func badSchemas() []*tool {
	var list []*tool
	for _, kind := range []struct{ name, schema string }{
		{"missing", ""},
		{"null", `null`},
		{"true", `true`},
		{"number", `7`},
		{"array", `[]`},
		{"empty", `{}`},
		{"type_string", `{"type":"string"}`},
		{"type_list", `{"type":["object","null"]}`},
		{"type_null", `{"type":null}`},
		{"any_of", `{"anyOf":[{"type":"object"},{"type":"string"}]}`},
		{"one_of", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`},
		{"all_of", `{"allOf":[{"type":"object"}]}`},
		{"boolean_property", `{"type":"object","properties":{"any":true,"none":false}}`},
		{"null_properties", `{"type":"object","properties":null}`},
		{"null_required", `{"type":"object","properties":{},"required":null}`},
		{"circular", `{"type":"object","properties":{"next":{"$ref":"#"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`},
		{"remote_ref", `{"type":"object","properties":{"x":{"$ref":"file:///etc/hostname"}}}`},
		{"big_numbers", `{"type":"object","properties":{"n":{"type":"integer","maximum":18446744073709551615}}}`},
	} {
		t := plain("bad_"+kind.name, "a schema that is hard to take")
		t.schema = kind.schema
		list = append(list, t)
	}
	return list
}

// longNames returns tools with names at and beyond what clients accept.
func longNames() []*tool {
	var list []*tool
	for _, name := range []string{
		strings.Repeat("l", 70),
		strings.Repeat("m", 128),
		"with.dots.and-dashes",
		"two__underscores",
		"with space",
		"ünïcode",
		"",
	} {
		list = append(list, plain(name, "a name that is hard to take"))
	}
	return list
}

// grow adds a tool and says so.
func grow(c *call) string {
	c.grown++
	name := "grown_" + strconv.Itoa(c.grown)
	c.tools = append(c.tools, plain(name, "was not here before"))
	c.notify("notifications/tools/list_changed", `{}`)
	return textResult(name)
}

// find returns the tool with a name, the first one, or nil.
func (s *server) find(name string) *tool {
	for _, t := range s.tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

// listTools is tools/list.
func (s *server) listTools(params json.RawMessage) (string, error) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &p); err != nil {
			return "", err
		}
	}
	from, to, next, err := s.cut(p.Cursor)
	if err != nil {
		return "", err
	}
	list := make([]string, 0, to-from)
	for _, t := range s.tools[from:to] {
		list = append(list, t.definition())
	}
	result := `{"tools":[` + strings.Join(list, ",") + `]`
	if next != "" {
		result += `,"nextCursor":` + encode(next)
	}
	return result + `}`, nil
}

// cut returns the bounds of the page at a cursor, and the next cursor.
func (s *server) cut(cursor string) (from, to int, next string, err error) {
	size := s.opts.pageSize
	if size <= 0 {
		size = max(len(s.tools), 1)
	}
	page := 0
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "page-%d", &page); err != nil || page < 0 {
			return 0, 0, "", fmt.Errorf("unknown cursor %q", cursor)
		}
	}
	if s.opts.cyclicCursor {
		return 0, min(size, len(s.tools)), "page-1", nil
	}
	if s.opts.endlessCursor {
		return 0, min(size, len(s.tools)), fmt.Sprintf("page-%d", page+1), nil
	}
	from = min(page*size, len(s.tools))
	to = min(from+size, len(s.tools))
	if to < len(s.tools) {
		next = fmt.Sprintf("page-%d", page+1)
	}
	return from, to, next, nil
}

// definition returns a tool as it is listed.
func (t *tool) definition() string {
	description := t.description
	if description == "" {
		description = "See the package comment of misbehave."
	}
	text := `{"name":` + encode(t.name) + `,"description":` + encode(description)
	if t.schema != "" {
		text += `,"inputSchema":` + t.schema
	}
	return text + `}`
}
