// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// echo has servers say all canaries that are held: text and JSON by each kind of
// message. prefix is what the client's endpoint puts before names of tools.
func (c *client) echo(canaries flock, prefix string) {
	c.t.Helper()
	for _, of := range canaries {
		if !of.held {
			continue
		}
		said := []string{of.value}
		if !slices.Contains(of.parts, of.value) {
			said = append(said, of.parts...)
		}
		for _, text := range said {
			c.echoOne(prefix, text)
		}
	}
	c.call(prefix+"env", nil)
	c.call(prefix+"params", map[string]any{"text": canaries.value("own")})
}

// echoOne has a server say a secret in all forms.
func (c *client) echoOne(prefix, secret string) {
	c.t.Helper()
	all := forms(secret)
	plain := make([]string, len(all))
	for i, f := range all {
		plain[i] = f.text
	}
	text := strings.Join(plain, " | ")
	c.call(prefix+"echo", map[string]any{"text": text})
	c.call(prefix+"say_stderr", map[string]any{"text": text})
	c.call(prefix+"log", map[string]any{"level": "error", "text": text})
	c.call(prefix+"ask_elicitation", map[string]any{"text": text})
	c.call(prefix+"emit", map[string]any{
		"method": "notifications/message",
		"params": map[string]any{"level": "error", "data": map[string]string{text: text}},
	})
	c.request("resources/read", fmt.Sprintf(`{"uri":%q}`, "test://item/"+eachByte(secret, "%%%02X")))
	c.request("prompts/get", fmt.Sprintf(`{"name":%q,"arguments":{"who":"%s"}}`, prefix+"greet", quoted(text, false)))
	for _, line := range lines(secret, quoted(text, false)) {
		c.call(prefix+"say", map[string]any{"line": line})
	}
}

// lines are answers, and what servers write beside them, with a secret. text is all
// forms of it for a string of JSON.
func lines(secret, text string) []string {
	const answer = `{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}`
	list := []string{
		`{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"` + text + `"}],"isError":true}}`,
		"a line: " + secret + "\n" + answer,
		`{"jsonrpc":"2.0","id":999999,"result":{"late":"` + text + `"}}` + "\n" + answer,
		`{"jsonrpc":"2.0","id":1,"result":{"cut off":"` + text + "\n" + answer,
		`["` + text + `"]` + "\n" + answer,
		"{\"bytes\":\"\xff\xfe " + text + "\"}\n" + answer,
		`{"jsonrpc":"2.0","method":"` + text + `","params":{"` + text + `":1}}` + "\n" + answer,
		`{"jsonrpc":"2.0","id":"` + text + `","method":"` + text + `"}` + "\n" + answer,
	}
	for _, f := range forms(secret) {
		if f.json {
			text += " " + f.text
		}
	}
	return append(list,
		`{"jsonrpc":"2.0","id":$id,"result":{"content":[],"structuredContent":{"`+text+`":["`+text+`"]}}}`,
		`{"jsonrpc":"2.0","id":$id,"error":{"code":-32000,"message":"`+text+`","data":{"`+text+`":"`+text+`"}}}`)
}

// textOf returns the first text of a result; empty when there is none.
func textOf(answer string) string {
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	if json.Unmarshal([]byte(answer), &m) != nil || len(m.Result.Content) == 0 {
		return ""
	}
	return m.Result.Content[0].Text
}
