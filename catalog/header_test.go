// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/garraia/garra/protocol"
)

func TestHeaderParams(t *testing.T) {
	schema := protocol.Raw(`{"properties":{"region":{"type":"string","x-mcp-header":"Region"},` +
		`"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Num"}}},"plain":{}}}`)
	params := HeaderParams(schema)
	if len(params) != 2 || params[0].Header != "Region" || params[1].Header != "Num" {
		t.Fatalf("%+v", params)
	}
	for text, want := range map[string][2]string{
		`{"region":"eu","deep":{"n":1.0}}`:   {"eu", "1.0"},
		`{"region":null,"deep":{}}`:          {"", ""},
		`{"region":"\u0065u","deep":"text"}`: {"eu", ""},
		`{}`:                                 {"", ""},
	} {
		arguments, err := protocol.ParseObject(protocol.Raw(text))
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
	if HeaderParams(protocol.Raw(`{"properties":{}}`)) != nil || HeaderParams(nil) != nil {
		t.Error("a schema that marks nothing has marked arguments")
	}
}
