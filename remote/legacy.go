// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A legacy is the wire of HTTP+SSE (MCP specification, 2024-11-05,
// "Transports"): one stream on which everything comes, and an address that it
// names for what is sent.
type legacy struct {
	*caller
	inlet    inlet
	endpoint *url.URL // set by open
}

var _ wire = (*legacy)(nil)

// open implements wire: it opens the stream and waits for the address.
func (g *legacy) open(begin Context) *mishap {
	ctx, begun, cancel := cancelAfter(g.inlet.alive(), begin)
	res, m := g.do(ctx, &request{method: http.MethodGet, accept: typeStream})
	if m != nil {
		cancel()
		return m
	}
	events := newEventReader(res.Body, g.limits.frame)
	m = g.locate(ctx, res, events)
	begun()
	reading := m == nil && g.inlet.goes(func() {
		defer cancel()
		defer res.Body.Close()
		err := g.read(events)
		g.inlet.over(g.ended(res.from, err))
	})
	if !reading {
		cancel()
		_ = res.Body.Close()
	}
	return m
}

// locate waits for the event that names the address for messages, which must be
// of the same origin: the headers go there too.
func (g *legacy) locate(ctx Context, res *response, events *eventReader) *mishap {
	if res.kind != typeStream {
		return g.mishap(fmt.Sprintf("%s answered GET with %.100q in place of a stream", host(res.from.url), res.kind),
			"look whether url and type are right").with(func(m *mishap) { m.lasting = true })
	}
	for {
		e, err := events.next()
		switch {
		case ctx.Err() != nil:
			return &mishap{failure: source.Cancelled(ctx, g.target.entry.Name)}
		case err != nil:
			return g.ended(res.from, err)
		case e.kind != "endpoint":
			continue
		}
		to, err := res.from.url.Parse(string(e.data))
		if err != nil || !sameOrigin(to, res.from.url) {
			return g.mishap("the server wants messages at an address of another origin", "tell its author").
				with(func(m *mishap) { m.lasting = true })
		}
		to.User = res.from.url.User
		g.endpoint = to
		return nil
	}
}

// ended is the mishap of a session whose stream ended.
func (g *legacy) ended(from *address, err error) *mishap {
	text := "the server closed the stream"
	if err != nil && !errors.Is(err, io.EOF) {
		text = "the stream broke: " + from.scrub(err.Error())
	}
	return g.mishap(text, "").with(func(m *mishap) { m.ends, m.failure.Code = true, source.ServerCrashed })
}

// read takes all events, until the stream ends.
func (g *legacy) read(events *eventReader) error {
	for {
		e, err := events.next()
		switch {
		case err != nil:
			return err
		case e.kind != "" && e.kind != "message":
		case e.size > g.limits.frame:
			g.inlet.tooLarge(e.data, e.size, nil)
		default:
			g.inlet.take(e.data, nil)
		}
	}
}

// greeted implements wire. Nothing depends on the revision here.
func (g *legacy) greeted(protocol.Revision) {}

// send implements wire: one POST, whose answer says only that it was taken.
func (g *legacy) send(ctx Context, p *parcel) *mishap {
	res, m := g.do(ctx, &request{method: http.MethodPost, to: g.endpoint, accept: typeJSON, parcel: p})
	if m != nil {
		m.forgotten = m.status == http.StatusNotFound
		m.lasting = m.lasting && !m.forgotten
		return m
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxRefusal) // so that the connection can be used again
	_ = res.Body.Close()
	return nil
}

// close implements wire: the session ends with its stream.
func (g *legacy) close(context.Context) { g.client.CloseIdleConnections() }
