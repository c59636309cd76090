// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
	Name    string         // its key: the server's own name, URI or URI template
	Exposed string         // to clients of all servers; of tools and prompts
	Raw     protocol.Raw   // as the server wrote it
	Problem string         // why it is left out; empty when it isn't
	forAll  protocol.Raw   // as clients of all servers see it
	matches *regexp.Regexp // of a template without a problem: the URIs that it stands for
}

// A List is what one server offers of one kind. It never changes.
type List struct {
	Server   string
	Kind     Kind
	Items    []*Item  // in the server's order
	Problems []string // of the list as a whole, for a person
	Failed   bool     // the server did not give it, and might another time
	ReadAt   time.Time
	byName   map[string]*Item
}

// Find returns an item by the server's own name for it, of two the first; nil
// when there is none.
func (l *List) Find(name string) *Item {
	if l == nil {
		return nil
	}
	return l.byName[name]
}

// Names returns the server's own names of all items, also of those that are left
// out.
func (l *List) Names() []string {
	names := make([]string, 0, len(l.Items))
	for _, item := range l.Items {
		names = append(names, item.Name)
	}
	return names
}

// Unread is the list of a server that is not asked, and why.
func Unread(server string, kind Kind, why string) *List {
	l := newList(server, kind)
	l.problem("%s", why)
	return l
}

// newList is a list that is read now.
func newList(server string, kind Kind) *List {
	return &List{Server: server, Kind: kind, ReadAt: time.Now(), byName: make(map[string]*Item)}
}

// Read asks a server for all pages of one list; one that the server doesn't
// declare to have is empty. It fails when the server can't be asked. A list that
// the server refuses, doesn't give, or that has no end has Problems.
func Read(ctx context.Context, server string, src source.Source, kind Kind) (*List, error) {
	hello, err := src.Hello(ctx)
	if err != nil {
		return nil, err
	}
	l := newList(server, kind)
	if !hello.Declares(kind.capability()) {
		return l, nil
	}
	if err := l.read(ctx, src); err != nil {
		return nil, err
	}
	return l, nil
}

// read collects the pages.
func (l *List) read(ctx context.Context, src source.Source) error {
	cursors := make(map[string]bool)
	params, size := protocol.Raw(nil), 0
	for range maxPages {
		result, err := src.Call(ctx, &source.Call{Method: l.Kind.method(), Params: params, Timeout: listTimeout})
		if err != nil {
			return l.refused(ctx, err)
		}
		if size += len(result); size > maxBytes {
			l.problem("the list is over %d bytes; the rest is left out", maxBytes)
			return nil
		}
		page, next, err := readPage(l.Kind, result)
		if err != nil {
			l.problem("%v", err)
			return nil
		}
		for _, raw := range page {
			l.add(newItem(l.Kind, l.Server, raw))
		}
		switch {
		case next == nil:
			return nil
		case len(l.Items) > maxItems:
			l.problem("more than %d of them; the rest is left out", maxItems)
			return nil
		case cursors[string(next)]:
			l.problem("the server gives the same cursor again; what came so far is used")
			return nil
		}
		cursors[string(next)] = true
		o := protocol.Object{}
		o.Set("cursor", next)
		params = o.Raw()
	}
	l.problem("more than %d pages; the rest is left out", maxPages)
	return nil
}

// refused tells a list that the server doesn't give from a server that is gone.
func (l *List) refused(ctx context.Context, err error) error {
	if refusal, ok := errors.AsType[*protocol.Error](err); ok {
		if l.Kind != Templates || refusal.Code != protocol.CodeMethodNotFound {
			l.problem("the server refused to list them: %s", refusal.Message)
		}
		return nil
	}
	f, ok := errors.AsType[*source.Failure](err)
	if ok && ctx.Err() == nil && (f.Code == source.CallTimeout || f.Code == source.FrameTooLarge) {
		l.Failed = true
		l.problem("%s", f.Message)
		return nil
	}
	return err
}

// add takes an item in; of two with the same name the first counts.
func (l *List) add(item *Item) {
	if l.byName[item.Name] == nil {
		l.byName[item.Name] = item
	} else if item.Problem == "" {
		item.Problem = "the server has two of this name; the first one counts"
	}
	if l.Kind == Templates && len(l.Items) >= maxTemplates && item.Problem == "" {
		item.Problem = fmt.Sprintf("the server has over %d templates", maxTemplates)
	}
	l.Items = append(l.Items, item)
}

func (l *List) problem(format string, args ...any) {
	l.Problems = append(l.Problems, string(l.Kind)+": "+fmt.Sprintf(format, args...))
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
	switch kind {
	case Tools:
		item.Problem = checkSchema(obj.Get("inputSchema"))
	case Templates:
		item.matches, item.Problem = compileTemplate(item.Name)
	case Prompts, Resources:
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
