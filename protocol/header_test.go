// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"
)

func TestHeaderParams(t *testing.T) {
	schema := Raw(`{"properties":{"region":{"type":"string","x-mcp-header":"Region"},` +
		`"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Num"}}},"plain":{}}}`)
	params, err := HeaderParams(schema)
	if err != nil || len(params) != 2 || params[0].Header != "Region" || params[1].Header != "Num" {
		t.Fatalf("%+v", params)
	}
	for text, want := range map[string][2]string{
		`{"region":"eu","deep":{"n":1.0}}`:   {"eu", "1.0"},
		`{"region":null,"deep":{}}`:          {"", ""},
		`{"region":"\u0065u","deep":"text"}`: {"eu", ""},
		`{}`:                                 {"", ""},
	} {
		arguments, err := ParseObject(Raw(text))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range params {
			if got, has := p.Value(arguments); got != want[i] || has != (want[i] != "") {
				t.Errorf("%s of %s: %q, %v", p.Header, text, got, has)
			}
		}
	}
	if got, has := params[0].Value(nil); has {
		t.Errorf("no arguments: %q", got)
	}
	for _, schema := range []string{`{"properties":{}}`, ``, `{"properties":{"a":{"title":"x-mcp-header"}}}`} {
		if params, err := HeaderParams(Raw(schema)); len(params) != 0 || err != nil {
			t.Errorf("%s marks %v, %v", schema, params, err)
		}
	}
}

// A tool with a mark that is none is left out by clients over HTTP.
func TestHeaderParamsThatAreNone(t *testing.T) {
	for _, property := range []string{
		`{"type":"string","x-mcp-header":""}`, `{"type":"string","x-mcp-header":"My Region"}`,
		`{"type":"string","x-mcp-header":"a:b"}`, `{"type":"string","x-mcp-header":"Größe"}`,
		`{"type":"string","x-mcp-header":"a\u0001"}`, `{"type":"string","x-mcp-header":7}`,
		`{"type":"string","x-mcp-header":null}`, `{"type":"object","x-mcp-header":"O"}`,
		`{"type":"array","x-mcp-header":"A"}`, `{"type":"number","x-mcp-header":"N"}`, `{"x-mcp-header":"N"}`,
		`{"type":["string","object"],"x-mcp-header":"N"}`,
		`{"type":"string","x-mcp-header":"Twice"},"q":{"type":"string","x-mcp-header":"twice"}`,
	} {
		schema := `{"type":"object","properties":{"p":` + property + `}}`
		if params, err := HeaderParams(Raw(schema)); err == nil {
			t.Errorf("%s marks %v", schema, params)
		}
	}
	schema := `{"properties":{"p":{"type":["string","null"],"x-mcp-header":"P"}}}`
	if params, err := HeaderParams(Raw(schema)); err != nil || len(params) != 1 {
		t.Errorf("%s marks %v, %v", schema, params, err)
	}
}

func TestHeadersHoldAnyText(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"eu-west 1":       "eu-west 1",
		" eu":             "=?base64?IGV1?=",
		"Zürich":          "=?base64?WsO8cmljaA==?=",
		"a\nb":            "=?base64?YQpi?=",
		"=?base64?eA==?=": "=?base64?PT9iYXNlNjQ/ZUE9PT89?=",
	} {
		got := EncodeHeader(text)
		if got != want || DecodeHeader(got) != text {
			t.Errorf("%q: %q, want %q; decoded %q", text, got, want, DecodeHeader(got))
		}
	}
	for _, odd := range []string{"=?base64?!!?=", "=?base64?eA==", "=?utf-8?q?x?="} {
		if got := DecodeHeader(odd); !strings.HasPrefix(got, "=?") {
			t.Errorf("%q is read as %q", odd, got)
		}
	}
}
