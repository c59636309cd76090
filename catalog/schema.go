// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	"github.com/garraia/garra/protocol"
)

// checkSchema says why a tool's input schema can't be used, empty when it can.
// One such schema makes model APIs refuse a whole request, so its tool is left
// out. What is asked is the form that the MCP specification gives
// Tool.inputSchema (an object with type "object", properties and required) and
// nothing beyond: any other keyword of JSON Schema, a schema that refers to
// itself and boolean schemas of properties are fine.
func checkSchema(raw protocol.Raw) string {
	if raw == nil {
		return "it has no inputSchema"
	}
	schema, err := protocol.ParseObject(raw)
	if err != nil {
		return "its inputSchema is no object"
	}
	if t := schema.Get("type"); string(t) != `"object"` {
		return fmt.Sprintf(`its inputSchema has not the type "object" but %.40s`, orNone(t))
	}
	if p := schema.Get("properties"); p != nil {
		properties, err := protocol.ParseObject(p)
		if err != nil {
			return "the properties of its inputSchema are no object"
		}
		for _, m := range properties.Members {
			if k := m.Value.Kind(); k != '{' && k != 't' && k != 'f' {
				return fmt.Sprintf("property %.60q of its inputSchema has no schema", m.Name)
			}
		}
	}
	return checkRequired(schema.Get("required"))
}

func checkRequired(raw protocol.Raw) string {
	if raw == nil {
		return ""
	}
	names, err := protocol.Elements(raw)
	if err != nil {
		return fmt.Sprintf("required of its inputSchema is no list but %.40s", raw)
	}
	for _, name := range names {
		if name.Kind() != '"' {
			return fmt.Sprintf("required of its inputSchema holds %.40s, which is no name", name)
		}
	}
	return ""
}

func orNone(raw protocol.Raw) string {
	if raw == nil {
		return "none"
	}
	return string(raw)
}
