// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"

	"github.com/garraia/garra/protocol"
)

// A HeaderParam is an argument that clients over HTTP repeat in a header, since
// the tool's schema marks it with x-mcp-header (MCP 2026-07-28, "Transports").
type HeaderParam struct {
	Header string   // what follows Mcp-Param-
	path   []string // of the argument
}

// maxParamDepth bounds how deep in the arguments a marked one may be.
const maxParamDepth = 8

// HeaderParams returns the arguments that an input schema marks.
func HeaderParams(schema protocol.Raw) []HeaderParam {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil
	}
	return headerParams(schema, nil)
}

func headerParams(schema protocol.Raw, path []string) (found []HeaderParam) {
	obj, err := protocol.ParseObject(schema)
	if err != nil || len(path) > maxParamDepth {
		return nil
	}
	properties, err := protocol.ParseObject(obj.Get("properties"))
	if err != nil {
		return nil
	}
	for _, m := range properties.Members {
		property, err := protocol.ParseObject(m.Value)
		if err != nil {
			continue
		}
		at := append(append([]string{}, path...), m.Name)
		if header, err := protocol.Text(property.Get("x-mcp-header")); err == nil && header != "" {
			found = append(found, HeaderParam{header, at})
		}
		found = append(found, headerParams(m.Value, at)...)
	}
	return found
}

// Value returns the argument as a header repeats it: a string as it is, anything
// else as JSON. has is false when it is absent or null.
func (p HeaderParam) Value(arguments *protocol.Object) (value string, has bool) {
	for i, name := range p.path {
		if arguments == nil {
			return "", false
		}
		raw := arguments.Get(name)
		if i < len(p.path)-1 {
			arguments, _ = protocol.ParseObject(raw) // what is no object has no members
			continue
		}
		if raw == nil || raw.Kind() == 'n' {
			return "", false
		}
		if text, err := protocol.Text(raw); err == nil {
			return text, true
		}
		return string(raw), true
	}
	return "", false
}
