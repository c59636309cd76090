// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/protocol"
)

// listing makes a list out of items' JSON.
func listing(server string, kind Kind, raws ...string) *List {
	l := &List{Server: server, Kind: kind, byName: make(map[string]*Item)}
	for _, raw := range raws {
		l.add(newItem(kind, server, protocol.Raw(raw)))
	}
	return l
}

func tool(name string) string {
	return `{"name":"` + name + `","inputSchema":{"type":"object"}}`
}

func TestCatalogFindsAndOrders(t *testing.T) {
	c := New()
	if !c.Set(listing("b", Tools, tool("z"), tool("a"))) {
		t.Error("the first list is no change")
	}
	c.Set(listing("a", Tools, tool("m")))
	var names []string
	for _, item := range c.Items(Tools) {
		names = append(names, item.Exposed)
	}
	if want := []string{"a__m", "b__z", "b__a"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if item := c.Find(Tools, "b__z"); item == nil || item.Server != "b" || item.Name != "z" {
		t.Errorf("got %+v", item)
	}
	if c.Set(listing("b", Tools, tool("z"), tool("a"))) {
		t.Error("the same list is a change")
	}
	if len(c.Items(Tools)) != 3 {
		t.Error("setting the same listing again loses items")
	}
	if had := c.Forget("b"); !slices.Equal(had, []Kind{Tools}) {
		t.Errorf("it had %v", had)
	}
	if c.Find(Tools, "b__z") != nil || len(c.Items(Tools)) != 1 {
		t.Error("a forgotten server is still there")
	}
}

func TestResourcesAreRoutedByURIThenTemplate(t *testing.T) {
	c := New()
	c.Set(listing("a", Templates, `{"uriTemplate":"file:///{+path}"}`))
	c.Set(listing("a", Resources, `{"uri":"test://x"}`))
	c.Set(listing("b", Resources, `{"uri":"file:///exact"}`, `{"uri":"test://x"}`))
	for uri, want := range map[string]string{
		"test://x": "a", "file:///exact": "b", "file:///other/one": "a", "http://nobody": "",
	} {
		if got, _ := c.Route(t.Context(), uri); got != want {
			t.Errorf("%s: got %q, want %q", uri, got, want)
		}
	}
	clashes := c.Clashes(Resources)
	if len(clashes) != 1 || clashes[0].Hidden.Server != "b" || clashes[0].Shown.Server != "a" {
		t.Errorf("clashes: %v", clashes)
	}
}

func TestSchemas(t *testing.T) {
	for schema, bad := range map[string]string{
		`{"type":"object"}`: "",
		`{"type":"object","properties":{"a":true,"b":{"$ref":"#"}},"required":["a"],"anyOf":[{}]}`: "",
		`{"type":"object","$defs":{"x":{"$ref":"#/$defs/x"}},"$ref":"#/$defs/x"}`:                  "",
		`null`:                              "no object",
		`true`:                              "no object",
		`[]`:                                "no object",
		`{}`:                                "none",
		`{"type":"string"}`:                 `"string"`,
		`{"anyOf":[{"type":"object"}]}`:     "none",
		`{"type":["object","null"]}`:        "object",
		`{"type":"object","properties":[]}`: "properties",
		`{"type":"object","properties":{"a":null}}`:     "a",
		`{"type":"object","properties":{"a":"string"}}`: "a",
		`{"type":"object","required":null}`:             "required",
		`{"type":"object","required":"a"}`:              "required",
		`{"type":"object","required":[1]}`:              "required",
	} {
		got := checkSchema(protocol.Raw(schema))
		if (got == "") != (bad == "") || !strings.Contains(got, bad) {
			t.Errorf("%s: got %q, want %q in it", schema, got, bad)
		}
	}
	if checkSchema(nil) == "" {
		t.Error("no schema is fine")
	}
}

func TestItemsWithoutNames(t *testing.T) {
	l := listing("a", Tools,
		`{"inputSchema":{"type":"object"}}`, `{"name":""}`, `{"name":7}`, `"text"`, tool("x"), tool("x"))
	problems := 0
	for _, item := range l.Items {
		if item.Problem != "" {
			problems++
		}
	}
	if problems != 5 || l.Find("x") == nil || l.Find("x").Problem != "" {
		t.Errorf("%d problems of 5", problems)
	}
}

func TestForAllChangesTheNameOnly(t *testing.T) {
	raw := `{"z":1.0,"name":"b c","execution":{"taskSupport":"optional"},` +
		`"inputSchema":{"type":"object"},"_meta":{"n":9007199254740993}}`
	item := newItem(Tools, "a", protocol.Raw(raw))
	want := strings.Replace(raw, `"b c"`, `"`+item.Exposed+`"`, 1)
	if got := string(item.ForAll()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTemplates(t *testing.T) {
	for template, problem := range map[string]string{
		"file:///{+path}":                   "",
		"db://{table}/{id:3}{?q,limit*}":    "",
		"x://{a":                            "no URI template",
		"x://" + strings.Repeat("y", 2000):  "over 1024 bytes",
		"{a}{b}{c}{d}{e}{f}{g}{h}{i}{j}{k}": "over 10 variables",
	} {
		got := newItem(Templates, "a", protocol.Raw(`{"uriTemplate":"`+template+`"}`)).Problem
		if (got == "") != (problem == "") || !strings.Contains(got, problem) {
			t.Errorf("%.40s: %q, want %q", template, got, problem)
		}
	}
	var many []string
	for i := range maxTemplates + 1 {
		many = append(many, fmt.Sprintf(`{"uriTemplate":"x%d://{a}"}`, i))
	}
	l := listing("a", Templates, many...)
	if first, last := l.Items[0].Problem, l.Items[maxTemplates].Problem; first != "" || last == "" {
		t.Errorf("%q, %q", first, last)
	}
}

// What a hostile server can make a lookup cost is bounded, and ends with the
// lookup.
func TestRoutingIsBounded(t *testing.T) {
	c := New()
	var many []string
	for i := range maxTemplates {
		many = append(many, fmt.Sprintf(`{"uriTemplate":"{+a%d*}{+b*}{+c*}{+d*}{+e*}{+f*}{+g*}{+h*}{+i*}Z"}`, i))
	}
	c.Set(listing("a", Templates, many...))
	if _, ok := c.Route(t.Context(), "file:///"+strings.Repeat("x", 1000)); ok {
		t.Error("it matches")
	}
	if _, ok := c.Route(t.Context(), "file:///"+strings.Repeat("Z", maxRouted)); ok {
		t.Error("a URI over the bound matches")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := c.Route(over, "file:///Z"); ok {
		t.Error("a lookup goes on that nobody wants")
	}
}
