// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"encoding/json"
	"fmt"
	"strings"
)

// What the server offers besides tools.

const (
	resources = `{"resources":[{"uri":"test://text","name":"text","mimeType":"text/plain"},` +
		`{"uri":"test://empty","name":"empty","annotations":{"priority":0}},` +
		`{"uri":"test://blob","name":"blob","mimeType":"application/octet-stream","size":3}]}`
	templates = `{"resourceTemplates":[{"uriTemplate":"test://item/{id}","name":"item"}]}`
	prompts   = `{"prompts":[{"name":"greet","description":"a greeting",` +
		`"arguments":[{"name":"who","required":true}]}]}`
)

func listResources(*server, json.RawMessage) (string, error) { return resources, nil }
func listTemplates(*server, json.RawMessage) (string, error) { return templates, nil }
func listPrompts(*server, json.RawMessage) (string, error)   { return prompts, nil }

func readResource(_ *server, params json.RawMessage) (string, error) {
	var p struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", err
	}
	content := ""
	switch id, isItem := strings.CutPrefix(p.URI, "test://item/"); {
	case isItem:
		content = `"text":` + encode("item "+id)
	case p.URI == "test://text":
		content = `"mimeType":"text/plain","text":"some text"`
	case p.URI == "test://empty":
		content = `"text":""`
	case p.URI == "test://blob":
		content = `"mimeType":"application/octet-stream","blob":"AAEC"`
	default:
		return "", fmt.Errorf("unknown resource %q", p.URI)
	}
	return `{"contents":[{"uri":` + encode(p.URI) + `,` + content + `}]}`, nil
}

func getPrompt(_ *server, params json.RawMessage) (string, error) {
	var p struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", err
	}
	if p.Name != "greet" {
		return "", fmt.Errorf("unknown prompt %q", p.Name)
	}
	return `{"messages":[{"role":"user","content":{"type":"text","text":` +
		encode("Greet "+p.Arguments["who"]+".") + `}}]}`, nil
}

// complete completes to names that begin like the argument.
func complete(_ *server, params json.RawMessage) (string, error) {
	var p struct {
		Argument struct {
			Value string `json:"value"`
		} `json:"argument"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", err
	}
	values := []string{}
	for _, name := range []string{"alice", "albert", "bob"} {
		if strings.HasPrefix(name, p.Argument.Value) {
			values = append(values, name)
		}
	}
	return `{"completion":{"values":` + encode(values) + `,"hasMore":false}}`, nil
}
