// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strconv"
	"time"
)

// revision is what all clients here speak.
const revision = "2025-11-25"

// A responder answers the few requests that a benchmark needs, without an SDK,
// reflection or allocation.
type responder struct {
	list []byte // the result of tools/list
	big  []byte // what big tools repeat
}

func newResponder(tools int) *responder {
	return &responder{list: toolList(tools), big: bytes.Repeat([]byte("x"), 1<<20)}
}

// toolList is a tools/list result with so many tools, of which the first three
// are there to be called. Each is about as long as one of a real server.
func toolList(tools int) []byte {
	list := []byte(`{"tools":[`)
	add := func(name, properties string) {
		if list[len(list)-1] == '}' {
			list = append(list, ',')
		}
		list = append(list, `{"name":"`+name+`","description":"`+name+` does what its name says, and is described `+
			`in a sentence or two, as tools of real servers are, so that lists have their usual length.",`+
			`"inputSchema":{"type":"object","properties":{`+properties+`}}}`...)
	}
	add("echo", `"text":{"type":"string","description":"what comes back"}`)
	add("big", `"bytes":{"type":"integer","description":"the length of the text that comes back"}`)
	add("sleep", `"ms":{"type":"integer","description":"for how long the server does nothing at all"}`)
	for n := 4; n <= tools; n++ {
		add("tool_"+strconv.Itoa(n), `"path":{"type":"string","description":"a file"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":1000},"recursive":{"type":"boolean"}`)
	}
	return append(list, "]}"...)
}

// respond appends the answer to a message, nothing when it needs none.
func (r *responder) respond(dst, message []byte) []byte {
	var id, method, params []byte
	members(message, func(key, value []byte) {
		switch string(key) {
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		}
	})
	if id == nil || method == nil {
		return dst
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	switch string(method) {
	case `"tools/call"`:
		dst = r.call(dst, params)
	case `"tools/list"`:
		dst = append(append(dst, `,"result":`...), r.list...)
	case `"initialize"`:
		dst = appendGreeting(dst, params)
	case `"ping"`:
		dst = append(dst, `,"result":{}`...)
	default:
		dst = append(dst, `,"error":{"code":-32601,"message":"method not found"}`...)
	}
	return append(dst, '}')
}

// appendGreeting appends the result of initialize, in the client's revision.
func appendGreeting(dst, params []byte) []byte {
	wants := []byte(`"` + revision + `"`)
	members(params, func(key, value []byte) {
		if string(key) == "protocolVersion" {
			wants = value
		}
	})
	dst = append(append(dst, `,"result":{"protocolVersion":`...), wants...)
	return append(dst, `,"capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`...)
}

// call appends the outcome of a tool.
func (r *responder) call(dst, params []byte) []byte {
	var name, arguments, text []byte
	members(params, func(key, value []byte) {
		switch string(key) {
		case "name":
			name = value
		case "arguments":
			arguments = value
		}
	})
	text, count := []byte(`""`), -1
	members(arguments, func(key, value []byte) {
		switch string(key) {
		case "text":
			text = value
		case "bytes", "ms":
			count = number(value)
		}
	})
	switch string(name) {
	case `"echo"`:
		return appendText(dst, text)
	case `"big"`:
		if count < 0 {
			break
		}
		return r.appendBig(dst, count)
	case `"sleep"`:
		time.Sleep(time.Duration(count) * time.Millisecond)
		return appendText(dst, []byte(`"slept"`))
	}
	return append(dst, `,"error":{"code":-32602,"message":"no such tool, or not with such arguments"}`...)
}

const (
	textBegin = `,"result":{"content":[{"type":"text","text":`
	textEnd   = `}]}`
)

// appendText appends a result that is one text, given as JSON.
func appendText(dst, text []byte) []byte {
	return append(append(append(dst, textBegin...), text...), textEnd...)
}

// appendBig appends a result that is a text of so many bytes.
func (r *responder) appendBig(dst []byte, bytes int) []byte {
	dst = slices.Grow(dst, bytes+len(textBegin)+len(textEnd)+3)
	dst = append(dst, textBegin+`"`...)
	for bytes > 0 {
		n := min(bytes, len(r.big))
		dst = append(dst, r.big[:n]...)
		bytes -= n
	}
	return append(dst, `"`+textEnd...)
}
