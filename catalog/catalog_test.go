// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/protocol"
)

// listing makes a listing out of items' JSON.
func listing(server string, kind Kind, raws ...string) *Listing {
	l := &Listing{Items: make(map[Kind][]*Item), tools: make(map[string]*Item)}
	seen := make(map[string]bool)
	for _, raw := range raws {
		l.add(newItem(kind, server, protocol.Raw(raw)), seen)
	}
	return l
}

func tool(name string) string {
	return `{"name":"` + name + `","inputSchema":{"type":"object"}}`
}

func TestCatalogFindsAndOrders(t *testing.T) {
	c := New()
	if got := c.Set("b", listing("b", Tools, tool("z"), tool("a"))); !slices.Equal(got, []Kind{Tools}) {
		t.Errorf("changed: %v", got)
	}
	c.Set("a", listing("a", Tools, tool("m")))
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
	if got := c.Set("b", listing("b", Tools, tool("z"), tool("a"))); len(got) > 0 {
		t.Errorf("the same listing changed %v", got)
	}
	if len(c.Items(Tools)) != 3 {
		t.Error("setting the same listing again loses items")
	}
	c.Set("b", nil)
	if c.Find(Tools, "b__z") != nil || len(c.Items(Tools)) != 1 {
		t.Error("a forgotten server is still there")
	}
}

func TestResourcesAreRoutedByURIThenTemplate(t *testing.T) {
	c := New()
	a := listing("a", Templates, `{"uriTemplate":"file:///{+path}"}`)
	a.Items[Resources] = listing("a", Resources, `{"uri":"test://x"}`).Items[Resources]
	c.Set("a", a)
	c.Set("b", listing("b", Resources, `{"uri":"file:///exact"}`, `{"uri":"test://x"}`))
	for uri, want := range map[string]string{
		"test://x": "a", "file:///exact": "b", "file:///other/one": "a", "http://nobody": "",
	} {
		if got, _ := c.Route(uri); got != want {
			t.Errorf("%s: got %q, want %q", uri, got, want)
		}
	}
	if clashes := c.Clashes(); len(clashes) != 1 || clashes[0].Hidden.Server != "b" || clashes[0].Shown.Server != "a" {
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
	for _, item := range l.Items[Tools] {
		if item.Problem != "" {
			problems++
		}
	}
	if problems != 5 || l.Tool("x") == nil || l.Tool("x").Problem != "" {
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
