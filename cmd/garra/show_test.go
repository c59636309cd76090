// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"testing"

	"github.com/garraia/garra/mcpconfig"
)

// TestShowHasEveryField changes each field of an entry, and wants that to show as
// JSON and as text, be it in a server that garra runs or in one at a url.
func TestShowHasEveryField(t *testing.T) {
	for field := range reflect.TypeFor[mcpconfig.Server]().Fields() {
		if !field.IsExported() || field.Name == "Transport" { // which shows as command or url
			continue
		}
		asJSON, asText := false, false
		for _, transport := range []mcpconfig.Transport{mcpconfig.Stdio, mcpconfig.HTTP} {
			entry := func() *mcpconfig.Server {
				s := mcpconfig.NewServer("a", mcpconfig.Position{File: "mcp.json", Line: 1}, mcpconfig.Settings{})
				s.Transport = transport
				return s
			}
			changed := entry()
			change(t, reflect.ValueOf(changed).Elem().FieldByIndex(field.Index))
			jsonBefore, textBefore := shownAs(t, entry())
			jsonAfter, textAfter := shownAs(t, changed)
			asJSON = asJSON || jsonBefore != jsonAfter
			asText = asText || textBefore != textAfter
		}
		if !asJSON || !asText {
			t.Errorf("%s: shown in JSON %t, in text %t", field.Name, asJSON, asText)
		}
	}
}

func shownAs(t *testing.T, s *mcpconfig.Server) (asJSON, asText string) {
	t.Helper()
	shown := show(s)
	data, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	g := &globals{streams: streams{out: &out, err: io.Discard}}
	if err := g.printShown([]shownServer{shown}); err != nil {
		t.Fatal(err)
	}
	return string(data), out.String()
}

// change gives a field, or all in it, a value that is no default.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("search") // a text, and a word of Tools
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(7_000_000_000)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Slice:
		item := reflect.New(v.Type().Elem()).Elem()
		change(t, item)
		v.Set(reflect.Append(v, item))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("KEY"), reflect.ValueOf("value"))
	case reflect.Struct:
		for i := range v.NumField() {
			change(t, v.Field(i))
		}
	default:
		t.Fatalf("a field of type %s", v.Type())
	}
}
