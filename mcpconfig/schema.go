// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaDialect is the JSON Schema version that Schema is written in.
const schemaDialect = "https://json-schema.org/draft/2020-12/schema"

// Schema returns a JSON Schema (2020-12) of mcp.json, made from the table of fields that
// reading goes by. It accepts what [Load] accepts without an error, as far as a schema can
// tell, so unknown keys are allowed.
func Schema() []byte {
	text, err := json.MarshalIndent(rootSchema(), "", "  ")
	if err != nil {
		// The schema is made of constants; a test writes it.
		panic(fmt.Sprintf("mcpconfig: encoding the schema: %v", err))
	}
	return append(text, '\n')
}

func rootSchema() *jsonschema.Schema {
	const notes = "^//" // see isNote
	servers := orNull(&jsonschema.Schema{
		Type: "object",
		PropertyNames: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Pattern: serverName.String()},
			{Pattern: notes},
		}},
		PatternProperties:    map[string]*jsonschema.Schema{notes: {}},
		AdditionalProperties: &jsonschema.Schema{Ref: "#/$defs/server"},
	})
	servers.Description = "The servers by name."
	return &jsonschema.Schema{
		Schema:     schemaDialect,
		Title:      "MCP servers of garra (mcp.json)",
		Type:       "object",
		Properties: map[string]*jsonschema.Schema{"mcpServers": servers},
		Defs: map[string]*jsonschema.Schema{
			"server": serverSchema(),
			"scalar": {Types: []string{"string", "number", "boolean"}},
			"texts":  {Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/scalar"}},
		},
	}
}

// serverSchema describes an entry: every spelling of every field.
func serverSchema() *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	targets := map[string][]*jsonschema.Schema{}
	for _, f := range fields() {
		for _, key := range f.keys() {
			property := orNull(valueSchema(&f))
			property.Description = describe(&f, key)
			schema.Properties[key] = property
			schema.PropertyOrder = append(schema.PropertyOrder, key)
			if f.name == "command" || f.name == "url" {
				targets[f.name] = append(targets[f.name], &jsonschema.Schema{
					Required:   []string{key},
					Properties: map[string]*jsonschema.Schema{key: {Type: "string", MinLength: new(1)}},
				})
			}
		}
	}
	schema.OneOf = []*jsonschema.Schema{
		{AnyOf: targets["command"]},
		{AnyOf: targets["url"]},
	}
	return schema
}

// describe returns the field's description for one of its spellings.
func describe(f *field, key string) string {
	switch {
	case key == f.name:
		return f.doc
	case key == f.opposite:
		return "The opposite of " + f.name + "."
	}
	return "The same as " + f.name + "."
}

// orNull lets a value be null too, which means the same as not giving it.
func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
}

// valueSchema describes the values of a field by the type of its place in the model.
func valueSchema(f *field) *jsonschema.Schema {
	switch f.bind(&Server{}).(type) {
	case *bool:
		return &jsonschema.Schema{Type: "boolean"}
	case *string:
		return &jsonschema.Schema{Type: "string"}
	case *[]string:
		return &jsonschema.Schema{Ref: "#/$defs/texts"}
	case *map[string]string:
		return textMapSchema(f)
	case *int:
		return &jsonschema.Schema{Type: "integer", Minimum: &f.min, Maximum: &f.max}
	case *float64, *time.Duration:
		return &jsonschema.Schema{Type: "number", Minimum: &f.min, Maximum: &f.max}
	case *Transport:
		return wordsSchema(transportWords())
	case *Sandbox:
		return sandboxSchema()
	case *OAuth:
		return oauthSchema()
	default:
		return wordsSchema(f.choices)
	}
}

func textMapSchema(f *field) *jsonschema.Schema {
	pattern := "^[^=]+$"
	if f.format == headerMap {
		pattern = headerName.String()
	}
	return &jsonschema.Schema{
		Type:                 "object",
		PropertyNames:        &jsonschema.Schema{Pattern: pattern},
		AdditionalProperties: orNull(&jsonschema.Schema{Ref: "#/$defs/scalar"}),
	}
}

func sandboxSchema() *jsonschema.Schema {
	paths := &jsonschema.Schema{Ref: "#/$defs/texts"}
	hosts := &jsonschema.Schema{
		Type:  "array",
		Items: &jsonschema.Schema{Type: "string", Pattern: "^.+:[0-9]{1,5}$"},
	}
	network := &jsonschema.Schema{
		AnyOf: []*jsonschema.Schema{wordsSchema(networkWords()), hosts, {Type: "null"}},
	}
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"mode":    orNull(wordsSchema(sandboxModes())),
			"profile": orNull(wordsSchema(sandboxProfiles())),
			"read":    orNull(paths),
			"write":   orNull(paths),
			"network": network,
		},
		PropertyOrder: sandboxKeys(),
	}
}

// wordsSchema accepts one of some words.
func wordsSchema(words []string) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, word := range words {
		s.Enum = append(s.Enum, word)
	}
	return s
}
