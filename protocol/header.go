// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
)

// Headers of the streamable HTTP transport since 2026-07-28, which repeat what
// the body says, for whoever routes without reading it (MCP 2026-07-28,
// "Transports").
const (
	HeaderRevision = "Mcp-Protocol-Version" // since 2025-06-18
	HeaderMethod   = "Mcp-Method"
	HeaderName     = "Mcp-Name"
	HeaderParamFor = "Mcp-Param-" // and the name that a tool's schema gives an argument
)

// NameOf is what the header Mcp-Name repeats, for the methods that have one.
func NameOf(method string, params *Object) (name string, named bool) {
	member := ""
	switch method {
	case MethodToolsCall, MethodPromptsGet:
		member = "name"
	case MethodResourcesRead:
		member = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		member = "taskId"
	default:
		return "", false
	}
	name, _ = Text(params.Get(member)) // none is refused where it is needed
	return name, true
}

// The parts of a header value that is written in another way.
const (
	codedBegin = "=?base64?"
	codedEnd   = "?="
)

// EncodeHeader writes a text as the value of a header: as it is where it has only
// visible ASCII and blanks inside, and else as =?base64?...?=.
func EncodeHeader(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, codedBegin) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') })
	if plain {
		return text
	}
	return codedBegin + base64.StdEncoding.EncodeToString([]byte(text)) + codedEnd
}

// DecodeHeader reads what EncodeHeader wrote. What is not well coded is returned
// as it is.
func DecodeHeader(value string) string {
	coded, ok := strings.CutPrefix(value, codedBegin)
	if !ok {
		return value
	}
	coded, ok = strings.CutSuffix(coded, codedEnd)
	text, err := base64.StdEncoding.DecodeString(coded)
	if !ok || err != nil {
		return value
	}
	return string(text)
}

// A HeaderParam is an argument that clients over HTTP repeat in a header, since
// the tool's schema marks it with x-mcp-header (MCP 2026-07-28, "Transports").
type HeaderParam struct {
	Header string   // what follows Mcp-Param-
	path   []string // of the argument
}

// maxHeaderParams bounds the marked arguments of a tool: each is a header of a call.
const maxHeaderParams = 50

// maxParamDepth bounds how deep in the arguments a marked one may be.
const maxParamDepth = 8

// HeaderParams returns the arguments that an input schema marks. It fails when
// clients over HTTP must leave the tool out because of a mark: one that is no name
// of a header, is there twice, or marks what has no value that fits in one.
func HeaderParams(schema Raw) ([]HeaderParam, error) {
	if !bytes.Contains(schema, []byte(headerMark)) {
		return nil, nil
	}
	marks := &headerMarks{seen: make(map[string]bool)}
	marks.collect(schema, nil)
	return marks.found, marks.err
}

// headerMark is the keyword of a schema that marks an argument.
const headerMark = "x-mcp-header"

// headerMarks are the marks of a schema.
type headerMarks struct {
	found []HeaderParam
	seen  map[string]bool // names, in small letters
	err   error           // the first mark that is none
}

func (h *headerMarks) collect(schema Raw, path []string) {
	obj, err := ParseObject(schema)
	if err != nil || len(path) > maxParamDepth {
		return
	}
	properties, err := ParseObject(obj.Get("properties"))
	if err != nil {
		return
	}
	for _, m := range properties.Members {
		property, err := ParseObject(m.Value)
		if err != nil {
			continue
		}
		at := append(append([]string{}, path...), m.Name)
		if mark := property.Get(headerMark); mark != nil {
			h.add(mark, property, at)
		}
		h.collect(m.Value, at)
	}
}

// add takes a mark, or says what is wrong with it.
func (h *headerMarks) add(mark Raw, property *Object, at []string) {
	name, err := Text(mark)
	where := strings.Join(at, ".")
	switch lower := strings.ToLower(name); {
	case h.err != nil:
	case len(h.found) == maxHeaderParams:
		h.err = fmt.Errorf("%s marks more than %d arguments", headerMark, maxHeaderParams)
	case err != nil || name == "" || strings.ContainsFunc(name, notToken):
		h.err = fmt.Errorf("%s of %q is no name of a header: %.80s", headerMark, where, mark)
	case !isPrimitive(property.Get("type")):
		h.err = fmt.Errorf("%s marks %q, which is no string, integer or boolean", headerMark, where)
	case h.seen[lower]:
		h.err = fmt.Errorf("%s is %q for two arguments", headerMark, name)
	default:
		h.seen[lower] = true
		h.found = append(h.found, HeaderParam{name, at})
	}
}

// isPrimitive reports whether a type of a schema is one, or only such, whose values
// fit in a header; null is no value.
func isPrimitive(kind Raw) bool {
	kinds, err := Elements(kind)
	if err != nil {
		kinds = []Raw{kind}
	}
	primitive := false
	for _, k := range kinds {
		switch string(k) {
		case `"string"`, `"integer"`, `"boolean"`:
			primitive = true
		case `"null"`:
		default:
			return false
		}
	}
	return primitive
}

// notToken reports whether a character can't be in the name of a header (RFC 9110,
// 5.6.2).
func notToken(r rune) bool {
	letter := ('a' <= r && r <= 'z') || ('A' <= r && r <= 'Z') || ('0' <= r && r <= '9')
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// Value returns the argument as a header repeats it: a string as it is, anything
// else as JSON. has is false when it is absent or null.
func (p HeaderParam) Value(arguments *Object) (value string, has bool) {
	for i, name := range p.path {
		if arguments == nil {
			return "", false
		}
		raw := arguments.Get(name)
		if i < len(p.path)-1 {
			arguments, _ = ParseObject(raw) // what is no object has no members
			continue
		}
		if raw == nil || raw.Kind() == 'n' {
			return "", false
		}
		if text, err := Text(raw); err == nil {
			return text, true
		}
		return string(raw), true
	}
	return "", false
}
