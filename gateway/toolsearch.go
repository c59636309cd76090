// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/internal/ranking"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// The tools that clients of all servers get in the place of those that are to be
// searched. No server's tool has such a name: theirs have a separator, or the
// full length and a digest.
const (
	toolFind = "find_tool"
	toolCall = "call_tool"
)

const (
	fewFound  = 8        // tools of an answer, unless the model wants another number
	mostFound = 50       // whatever it wants
	findBytes = 48 << 10 // of all tools of an answer; the first is there in any case
)

// findTakes says which arguments find_tool has.
const findTakes = "it takes query and server, which are texts, and limit, which is a number"

// How much a word counts by where it stands.
const (
	weightName        = 3
	weightTitle       = 2
	weightServer      = 1.5
	weightDescription = 1
	weightParameters  = 0.5
)

// searched reports whether the server's tools are found by asking for them.
func (u *upstream) searched() bool { return u.current.Load().entry.Tools == mcpconfig.ToolsSearch }

// searchedServers are the servers whose tools are found by asking for them, in
// the order of their names.
func (g *Gateway) searchedServers() []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.searched
}

// searchTools are the tools by which those of the servers are found and called.
// What they say depends on the configuration alone: a list that changes whenever
// a server comes or goes would cost the client its cache.
func searchTools(servers []string) []Raw {
	find := protocol.Object{}
	find.Set("name", protocol.Quote(toolFind))
	find.Set("title", protocol.Quote("Find tools"))
	find.Set("description", protocol.Quote("Finds tools by what they do, with the schema of their arguments. "+
		"There are more tools than this list shows, of the servers: "+strings.Join(servers, ", ")+
		". Describe the task in a few words, then call what was found with "+toolCall+
		". Without a query it lists the names of all of them."))
	find.Set("inputSchema", Raw(`{"type":"object","properties":{`+
		`"query":{"type":"string","description":"What the tool should do, such as: create an issue"},`+
		`"server":{"type":"string","description":"Only tools of this server"},`+
		`"limit":{"type":"integer","minimum":1,"maximum":`+strconv.Itoa(mostFound)+
		`,"description":"How many tools at most, `+strconv.Itoa(fewFound)+` by default"}}}`))
	find.Set("annotations", Raw(`{"readOnlyHint":true,"openWorldHint":false}`))
	call := protocol.Object{}
	call.Set("name", protocol.Quote(toolCall))
	call.Set("title", protocol.Quote("Call a tool"))
	call.Set("description", protocol.Quote("Calls a tool that "+toolFind+" found."))
	call.Set("inputSchema", Raw(`{"type":"object","properties":{`+
		`"name":{"type":"string","description":"The tool's name, as `+toolFind+` gave it"},`+
		`"arguments":{"type":"object","description":"Its arguments, as its inputSchema says"}},`+
		`"required":["name"]}`))
	return []Raw{find.Raw(), call.Raw()}
}

// searchInstructions tell a model that there is more than the list shows.
func searchInstructions(servers []string) string {
	return "The tools of " + strings.Join(servers, ", ") + " are not in the list: find them with " + toolFind +
		" and call them with " + toolCall + "."
}

// A toolIndex is what can be searched. It never changes.
type toolIndex struct {
	items []*catalog.Item
	words *ranking.Index
}

// An indexCache keeps the index until what it is made of changes. It is safe for
// concurrent use.
type indexCache struct {
	mu    sync.Mutex      // guards all below; held while an index is made, so that it is made once
	lists []*catalog.List // that it is made of
	rules uint64
	index *toolIndex
}

// toolIndex returns the tools that can be found: those that may be called, of the
// servers that are searched.
func (g *Gateway) toolIndex() *toolIndex {
	g.index.mu.Lock()
	defer g.index.mu.Unlock()
	rules := g.rules.Load() // before they are read: a change meanwhile makes it an old one
	var lists []*catalog.List
	for _, name := range g.searchedServers() {
		if list := g.catalog.List(name, catalog.Tools); list != nil {
			lists = append(lists, list)
		}
	}
	c := &g.index
	if c.index == nil || c.rules != rules || !slices.Equal(c.lists, lists) {
		c.lists, c.rules, c.index = lists, rules, g.indexOf(lists)
	}
	return c.index
}

// indexOf makes an index of lists.
func (g *Gateway) indexOf(lists []*catalog.List) *toolIndex {
	x := &toolIndex{}
	var documents [][]ranking.Field
	for _, list := range lists {
		u := g.upstream(list.Server)
		for _, item := range list.Items {
			if u != nil && u.tool(item).Allowed && g.catalog.Find(catalog.Tools, item.Exposed) == item {
				x.items = append(x.items, item)
				documents = append(documents, toolWords(item))
			}
		}
	}
	x.words = ranking.New(documents, sameMeaning()...)
	return x
}

// sameMeaning are words of which models use one and tools another.
func sameMeaning() []string {
	return []string{
		"folder directory dir", "delete remove forget erase", "create make new add", "list show which",
		"rename move", "run execute start launch", "remember store save memory", "connect link relation",
		"edit change modify update", "find search look query", "mail email", "picture image photo screenshot",
		"repo repository", "ticket issue bug", "k8s kubernetes", "db database", "docs documentation", "env environment",
		"web page website url", "fact observation note", "stop kill terminate end", "command shell terminal",
		"get fetch read retrieve",
	}
}

// toolWords is by what a tool is found.
func toolWords(item *catalog.Item) []ranking.Field {
	text := func(o *protocol.Object, member string) string {
		value, _ := protocol.Text(o.Get(member)) // absent is empty
		return value
	}
	object := func(raw Raw) *protocol.Object {
		if o, err := protocol.ParseObject(raw); err == nil {
			return o
		}
		return &protocol.Object{}
	}
	tool := object(item.Raw)
	var parameters strings.Builder
	for _, p := range object(object(tool.Get("inputSchema")).Get("properties")).Members {
		parameters.WriteString(p.Name + " " + text(object(p.Value), "description") + "\n")
	}
	title := cmp.Or(text(tool, "title"), text(object(tool.Get("annotations")), "title"))
	return []ranking.Field{
		{Text: item.Name, Weight: weightName},
		{Text: title, Weight: weightTitle},
		{Text: item.Server, Weight: weightServer},
		{Text: text(tool, "description"), Weight: weightDescription},
		{Text: parameters.String(), Weight: weightParameters},
	}
}

// findTool answers a call of find_tool.
func (a aggregate) findTool(ctx context.Context, params *protocol.Object) (Raw, error) {
	arguments, err := argumentsOf(params.Get("arguments"))
	if err != nil {
		return nil, source.Fail(source.CallInvalid, "", "%s: %v", toolFind, err)
	}
	query, server, limit, err := wish(arguments)
	if err != nil {
		return nil, source.Fail(source.CallInvalid, "", "%s: %v", toolFind, err)
	}
	a.gateway.settle(ctx, catalog.Tools)
	x := a.gateway.toolIndex()
	if strings.TrimSpace(query) == "" {
		return x.overview(server), nil
	}
	return x.find(query, server, min(limit, mostFound)), nil
}

// wish reads the arguments of find_tool. A limit without sense is the usual one; what
// garra would overlook is an error, since the answer would not be what was asked for.
func wish(arguments *protocol.Object) (query, server string, limit int, err error) {
	limit = fewFound
	for _, m := range arguments.Members {
		kind, want := Raw(m.Value).Kind(), byte('"')
		switch m.Name {
		case "query":
			query, _ = protocol.Text(m.Value) // what is no text is refused below
		case "server":
			server, _ = protocol.Text(m.Value)
		case "limit":
			want = '0'
			if n, err := strconv.Atoi(string(m.Value)); err == nil && n > 0 {
				limit = n
			}
		default:
			return "", "", 0, fmt.Errorf("it has no argument %.40q; %s", m.Name, findTakes)
		}
		if kind != 'n' && byte(kind) != want {
			return "", "", 0, fmt.Errorf("%s is %.40s; %s", m.Name, m.Value, findTakes)
		}
	}
	return query, server, limit, nil
}

// find is the answer with the tools that fit a query best.
func (x *toolIndex) find(query, server string, limit int) Raw {
	tools, size, more := []Raw{}, 0, 0
	for _, hit := range x.words.Search(query) {
		item := x.items[hit.Document]
		if server != "" && item.Server != server {
			continue
		}
		tool := found(item)
		if len(tools) == limit || (len(tools) > 0 && size+len(tool) > findBytes) {
			more++
			continue
		}
		tools = append(tools, tool)
		size += len(tool)
	}
	o := protocol.Object{}
	o.Set("tools", protocol.Array(tools))
	switch {
	case len(tools) == 0:
		o.Set("hint", protocol.Quote("nothing fits: try other words, or no query for the names of all tools"))
	case more > 0:
		o.Set("more", Raw(strconv.Itoa(more)))
	}
	return textResult(string(o.Raw())).Raw()
}

// found is a tool as find_tool shows it: what a model needs to call it.
func found(item *catalog.Item) Raw {
	o := protocol.Object{}
	tool, err := protocol.ParseObject(item.ForAll())
	if err != nil {
		return item.ForAll()
	}
	for _, member := range []string{"name", "title", "description", "inputSchema", "annotations"} {
		if value := tool.Get(member); value != nil {
			o.Set(member, value)
		}
	}
	return o.Raw()
}

// overview is the answer with the names of all tools, by server.
func (x *toolIndex) overview(server string) Raw {
	o, size, more := protocol.Object{}, 0, 0
	var names []Raw
	for i, item := range x.items {
		if server != "" && item.Server != server {
			continue
		}
		if name := protocol.Quote(item.Exposed); size+len(name) <= findBytes {
			names = append(names, name)
			size += len(name)
		} else {
			more++
		}
		if i+1 == len(x.items) || x.items[i+1].Server != item.Server {
			o.Set(item.Server, protocol.Array(names))
			names = nil
		}
	}
	servers := protocol.Object{}
	servers.Set("servers", o.Raw())
	if more > 0 {
		servers.Set("more", Raw(strconv.Itoa(more)))
	}
	return textResult(string(servers.Raw())).Raw()
}

// unwrap makes of the params of call_tool those of the call that is meant.
func unwrap(params *protocol.Object) (name string, err error) {
	outer, err := argumentsOf(params.Get("arguments"))
	if err != nil {
		return "", source.Fail(source.CallInvalid, "", "%s: %v", toolCall, err)
	}
	if name, err = protocol.Text(outer.Get("name")); err != nil || name == "" {
		return "", source.Fail(source.CallInvalid, "", "%s without the name of a tool", toolCall)
	}
	inner, err := argumentsOf(outer.Get("arguments"))
	if err != nil {
		return "", source.Fail(source.CallInvalid, "", "%s: %v", toolCall, err)
	}
	params.Set("arguments", inner.Raw())
	return name, nil
}

// argumentsOf reads the arguments of a call. Absent ones are none, and models
// write an object as a text that holds one.
func argumentsOf(raw Raw) (*protocol.Object, error) {
	switch raw.Kind() {
	case 0, 'n':
		return &protocol.Object{}, nil
	case '"':
		text, err := protocol.Text(raw)
		if err != nil {
			return nil, err
		}
		raw = Raw(text)
	}
	o, err := protocol.ParseObjectStrict(raw)
	if err != nil {
		return nil, errors.New("the arguments are no object, or one with a name twice")
	}
	return o, nil
}
