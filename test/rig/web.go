// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/garraia/garra/protocol"
)

// A Web is a conversation over streamable HTTP (MCP specification,
// "Transports"), without a stream of its own.
type Web struct {
	URL, Token string
	Client     *http.Client
	session    string
	Last       atomic.Uint64
}

// Connect opens a session on the endpoint of one server, or of all when server
// is empty, and makes the handshake.
func (g *Gateway) Connect(server string) *Client {
	g.T.Helper()
	return Greet(g.T, NewWeb(g.URL(server), g.Token()))
}

// NewWeb returns a conversation with an endpoint, before its handshake.
func NewWeb(url, token string) *Web {
	return &Web{URL: url, Token: token, Client: &http.Client{Transport: &http.Transport{}}}
}

// Ask implements conversation.
func (w *Web) Ask(method, params string, noted func()) (*protocol.Message, error) {
	id := protocol.NumberID(w.Last.Add(1))
	response, err := w.Post(protocol.NewRequest(id, method, protocol.Raw(params)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	defer response.Body.Close()
	if session := response.Header.Get("Mcp-Session-Id"); session != "" {
		w.session = session // of the answer to initialize, before anything else is asked
	}
	m, err := ReadAnswer(response, id, noted)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", method, response.Status, err)
	}
	return m, nil
}

// Tell implements conversation.
func (w *Web) Tell(method, params string) error {
	response, err := w.Post(protocol.NewNotification(method, protocol.Raw(params)))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s: %s", method, response.Status)
	}
	return nil
}

// HangUp implements conversation: it ends the session.
func (w *Web) HangUp() error {
	defer w.Client.CloseIdleConnections()
	response, err := w.Send(http.MethodDelete, nil)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("ending the session: %s", response.Status)
	}
	return nil
}

// Post sends one message. The caller closes the body.
func (w *Web) Post(m *protocol.Message) (*http.Response, error) {
	return w.Send(http.MethodPost, m.Append(nil))
}

// Send makes an HTTP request, with a bound on the whole of it. headers are names
// and values.
func (w *Web) Send(method string, body []byte, headers ...string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	request, err := http.NewRequestWithContext(ctx, method, w.URL, bytes.NewReader(body))
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Authorization", "Bearer "+w.Token)
	if w.session != "" {
		request.Header.Set("Mcp-Session-Id", w.session)
		request.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := w.Client.Do(request)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &boundedBody{response.Body, cancel}
	return response, nil
}

// A boundedBody ends its request's context when it is closed.
type boundedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// ReadAnswer finds the answer to a request in a body that is one message or a
// stream of events.
func ReadAnswer(response *http.Response, id protocol.ID, noted func()) (*protocol.Message, error) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, err
		}
		m, err := protocol.Parse(bytes.TrimSpace(body))
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, body)
		}
		if m.ID != id {
			return nil, fmt.Errorf("no answer to %s: %q", id, body)
		}
		return m, nil
	}
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = ErrEnded
		}
		if err != nil {
			return nil, err
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		m, err := protocol.Parse(data)
		switch {
		case err != nil: // the event at the start of a stream holds no message
		case m.IsResponse() && m.ID == id:
			return m, nil
		case m.IsNotification() && noted != nil:
			noted()
		}
	}
}
