// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/garraia/garra/protocol"
)

// A memory is what a gateway must be told that knows nothing of a client which it
// is to serve as the last one did: the handshake, the log level, and the resources
// that the client subscribed to.
type memory struct {
	hello    []byte // the client's initialize
	helloID  protocol.ID
	welcomed bool                    // hello was answered with a result
	news     []string                // notifications that tell of changed lists, as far as that promised them
	level    protocol.Raw            // params of the last logging/setLevel
	topics   map[string]protocol.Raw // params of resources/subscribe, by URI
	prefix   string                  // of the ids of what is repeated; random, so no client has it
}

func newMemory() *memory {
	return &memory{topics: make(map[string]protocol.Raw), prefix: "garra-" + rand.Text() + "-"}
}

// said notes what a client asked for.
func (y *memory) said(m *protocol.Message, frame []byte) {
	switch m.Method {
	case protocol.MethodInitialize:
		if !y.welcomed { // a second one is an error, which the gateway tells
			y.hello, y.helloID = frame, m.ID
		}
	case protocol.MethodSetLevel:
		y.level = m.Params
	case protocol.MethodSubscribe:
		y.topics[textOf(m.Params, "uri")] = m.Params
	case protocol.MethodUnsubscribe:
		delete(y.topics, textOf(m.Params, "uri"))
	}
}

// answered notes the answer to the client's handshake: whether it has begun, and
// which lists the client expects news of.
func (y *memory) answered(m *protocol.Message) {
	if m.ID != y.helloID || m.Result == nil || y.welcomed {
		return
	}
	y.welcomed, y.news = true, nil
	for _, kind := range []struct{ name, note string }{
		{"tools", protocol.NoteToolsChanged},
		{"prompts", protocol.NotePromptsChanged},
		{"resources", protocol.NoteResourcesChanged},
	} {
		if string(member(m.Result, "capabilities", kind.name, "listChanged")) == "true" {
			y.news = append(y.news, kind.note)
		}
	}
}

// lost forgets a handshake that nobody has answered: the client begins anew.
func (y *memory) lost() {
	if !y.welcomed {
		y.hello = nil
	}
}

// repeated are the requests that bring a gateway up to date, in the order in which
// they are to be made. Their answers are nobody's.
func (y *memory) repeated() (requests []*protocol.Message) {
	add := func(method string, params protocol.Raw) {
		id := protocol.StringID(y.prefix + strconv.Itoa(len(requests)))
		requests = append(requests, protocol.NewRequest(id, method, params))
	}
	if y.level != nil {
		add(protocol.MethodSetLevel, y.level)
	}
	for _, uri := range slices.Sorted(maps.Keys(y.topics)) {
		add(protocol.MethodSubscribe, y.topics[uri])
	}
	return requests
}

// owns reports whether an id is of a repeated request.
func (y *memory) owns(id protocol.ID) bool {
	return strings.HasPrefix(id.String(), `"`+y.prefix)
}

// member goes down into an object; nil when there is nothing.
func member(raw protocol.Raw, path ...string) protocol.Raw {
	for _, name := range path {
		object, err := protocol.ParseObject(raw)
		if err != nil {
			return nil
		}
		raw = object.Get(name)
	}
	return raw
}

// textOf is a string in an object; empty when there is none.
func textOf(raw protocol.Raw, name string) string {
	text, _ := protocol.Text(member(raw, name))
	return text
}
