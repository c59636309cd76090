// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

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

// A web is a conversation over streamable HTTP (MCP specification,
// "Transports"), without a stream of its own.
type web struct {
	url, token string
	client     *http.Client
	session    string
	last       atomic.Uint64
}

// connect opens a session on the endpoint of one server, or of all when server
// is empty, and makes the handshake.
func (g *gateway) connect(server string) *client {
	g.t.Helper()
	return greet(g.t, newWeb(g.url(server), g.token()))
}

func newWeb(url, token string) *web {
	return &web{url: url, token: token, client: &http.Client{Transport: &http.Transport{}}}
}

// ask implements conversation.
func (w *web) ask(method, params string, noted func()) (*protocol.Message, error) {
	id := protocol.NumberID(w.last.Add(1))
	response, err := w.post(protocol.NewRequest(id, method, protocol.Raw(params)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	defer response.Body.Close()
	if session := response.Header.Get("Mcp-Session-Id"); session != "" {
		w.session = session // of the answer to initialize, before anything else is asked
	}
	m, err := readAnswer(response, id, noted)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", method, response.Status, err)
	}
	return m, nil
}

// tell implements conversation.
func (w *web) tell(method, params string) error {
	response, err := w.post(protocol.NewNotification(method, protocol.Raw(params)))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s: %s", method, response.Status)
	}
	return nil
}

// hangUp implements conversation: it ends the session.
func (w *web) hangUp() error {
	defer w.client.CloseIdleConnections()
	response, err := w.send(http.MethodDelete, nil)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("ending the session: %s", response.Status)
	}
	return nil
}

func (w *web) post(m *protocol.Message) (*http.Response, error) {
	return w.send(http.MethodPost, m.Append(nil))
}

// send makes an HTTP request, with a bound on the whole of it. headers are names
// and values.
func (w *web) send(method string, body []byte, headers ...string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	request, err := http.NewRequestWithContext(ctx, method, w.url, bytes.NewReader(body))
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Authorization", "Bearer "+w.token)
	if w.session != "" {
		request.Header.Set("Mcp-Session-Id", w.session)
		request.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := w.client.Do(request)
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

// readAnswer finds the answer to a request in a body that is one message or a
// stream of events.
func readAnswer(response *http.Response, id protocol.ID, noted func()) (*protocol.Message, error) {
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
			err = errEnded
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
