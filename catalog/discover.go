// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// Bounds of what is read of one list, against a server without an end.
const (
	maxPages    = 1000
	maxItems    = 20_000
	maxBytes    = 256 << 20
	listTimeout = time.Minute // for each page
)

// A Kind is a kind of item.
type Kind string

// The kinds. Tools, prompts and resources are capabilities of a server;
// templates come with resources.
const (
	Tools     Kind = "tools"
	Prompts   Kind = "prompts"
	Resources Kind = "resources"
	Templates Kind = "resourceTemplates"
)

// Kinds are all kinds, in the order in which they are discovered.
func Kinds() []Kind { return []Kind{Tools, Prompts, Resources, Templates} }

// Singular is what one item of the kind is called.
func (k Kind) Singular() string {
	if k == Templates {
		return "resource template"
	}
	return strings.TrimSuffix(string(k), "s")
}

// method lists the items of the kind.
func (k Kind) method() string {
	switch k {
	case Tools:
		return protocol.MethodToolsList
	case Prompts:
		return protocol.MethodPromptsList
	case Resources:
		return protocol.MethodResourcesList
	case Templates:
		return protocol.MethodTemplatesList
	}
	return ""
}

// capability is what a server declares when it has items of the kind.
func (k Kind) capability() string {
	if k == Templates {
		return string(Resources)
	}
	return string(k)
}

// key is the member that tells items of the kind apart.
func (k Kind) key() string {
	switch k {
	case Resources:
		return "uri"
	case Templates:
		return "uriTemplate"
	case Tools, Prompts:
	}
	return "name"
}

// An Item is one tool, prompt, resource or template. It never changes.
type Item struct {
	Kind    Kind
	Server  string
	Name    string       // its key: the server's own name, URI or URI template
	Exposed string       // to clients of all servers; of tools and prompts
	Raw     protocol.Raw // as the server wrote it
	Problem string       // why it is left out; empty when it isn't
	forAll  protocol.Raw // as clients of all servers see it
}

// A Listing is what one server offers. It never changes.
type Listing struct {
	Items    map[Kind][]*Item // in the server's order
	Problems []string         // of whole lists, for a person
	tools    map[string]*Item // by name; of two the first
}

// Tool returns a tool by the server's own name for it, nil when it has none.
func (l *Listing) Tool(name string) *Item { return l.tools[name] }

// ToolNames returns the server's own names of all its tools, also of those that
// are left out.
func (l *Listing) ToolNames() []string {
	names := make([]string, 0, len(l.Items[Tools]))
	for _, item := range l.Items[Tools] {
		names = append(names, item.Name)
	}
	return names
}

// Discover asks a server for everything that it declares to have, all pages of
// it. It fails when the server can't be asked; a list that the server refuses,
// or that has no end, is a Problem of the Listing.
func Discover(ctx context.Context, server string, src source.Source) (*Listing, error) {
	hello, err := src.Hello(ctx)
	if err != nil {
		return nil, err
	}
	l := &Listing{Items: make(map[Kind][]*Item), tools: make(map[string]*Item)}
	for _, kind := range Kinds() {
		if !hello.Declares(kind.capability()) {
			continue
		}
		if err := l.read(ctx, server, src, kind); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// read collects the pages of one list.
func (l *Listing) read(ctx context.Context, server string, src source.Source, kind Kind) error {
	seen := make(map[string]bool)
	cursors := make(map[string]bool)
	params, size := protocol.Raw(nil), 0
	for range maxPages {
		result, err := src.Call(ctx, &source.Call{Method: kind.method(), Params: params, Timeout: listTimeout})
		if err != nil {
			return l.refused(kind, err)
		}
		if size += len(result); size > maxBytes {
			l.problem("%s: the list is over %d bytes; the rest is left out", kind, maxBytes)
			return nil
		}
		page, next, err := readPage(kind, result)
		if err != nil {
			l.problem("%s: %v", kind, err)
			return nil
		}
		for _, raw := range page {
			l.add(newItem(kind, server, raw), seen)
		}
		switch {
		case next == nil:
			return nil
		case len(l.Items[kind]) > maxItems:
			l.problem("%s: more than %d of them; the rest is left out", kind, maxItems)
			return nil
		case cursors[string(next)]:
			l.problem("%s: the server gives the same cursor again; what came so far is used", kind)
			return nil
		}
		cursors[string(next)] = true
		o := protocol.Object{}
		o.Set("cursor", next)
		params = o.Raw()
	}
	l.problem("%s: more than %d pages; the rest is left out", kind, maxPages)
	return nil
}

// refused tells a list that the server doesn't give from a server that is gone.
func (l *Listing) refused(kind Kind, err error) error {
	refusal, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return err
	}
	if kind != Templates || refusal.Code != protocol.CodeMethodNotFound {
		l.problem("%s: the server refused to list them: %s", kind, refusal.Message)
	}
	return nil
}

// add takes an item in; of two with the same name the first counts.
func (l *Listing) add(item *Item, seen map[string]bool) {
	if seen[item.Name] && item.Problem == "" {
		item.Problem = "the server has two of this name; the first one counts"
	}
	seen[item.Name] = true
	if item.Kind == Tools && l.tools[item.Name] == nil {
		l.tools[item.Name] = item
	}
	l.Items[item.Kind] = append(l.Items[item.Kind], item)
}

func (l *Listing) problem(format string, args ...any) {
	l.Problems = append(l.Problems, fmt.Sprintf(format, args...))
}

// readPage splits one answer; next is nil on the last page.
func readPage(kind Kind, result protocol.Raw) (items []protocol.Raw, next protocol.Raw, err error) {
	obj, err := protocol.ParseObject(result)
	if err != nil {
		return nil, nil, fmt.Errorf("the answer can't be read: %w", err)
	}
	list := obj.Get(string(kind))
	if list == nil {
		return nil, nil, fmt.Errorf("the answer has no %q", kind)
	}
	if items, err = protocol.Elements(list); err != nil {
		return nil, nil, fmt.Errorf("%q of the answer: %w", kind, err)
	}
	if next = obj.Get("nextCursor"); next.Kind() != '"' || string(next) == `""` {
		next = nil
	}
	return items, next, nil
}

// newItem reads what garra has to know of an item.
func newItem(kind Kind, server string, raw protocol.Raw) *Item {
	item := &Item{Kind: kind, Server: server, Raw: raw}
	obj, err := protocol.ParseObject(raw)
	if err != nil {
		item.Problem = err.Error()
		return item
	}
	if item.Name, err = protocol.Text(obj.Get(kind.key())); err != nil || item.Name == "" {
		item.Problem = fmt.Sprintf("it has no %s", kind.key())
		return item
	}
	item.forAll = raw
	if kind == Tools {
		item.Problem = checkSchema(obj.Get("inputSchema"))
	}
	if kind == Tools || kind == Prompts {
		item.Exposed = Expose(server, item.Name)
		obj.Set("name", protocol.Quote(item.Exposed))
		item.forAll = obj.Raw()
	}
	return item
}

// NewTool reads a tool as a server lists it.
func NewTool(server string, raw protocol.Raw) *Item { return newItem(Tools, server, raw) }

// ForAll returns the item as clients of all servers see it: under its exposed
// name, and otherwise as the server wrote it.
func (i *Item) ForAll() protocol.Raw { return i.forAll }
