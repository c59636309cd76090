// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/garraia/garra/gateway"
)

// ErrNotRunning is returned by [Dial] when no gateway listens on the socket.
var ErrNotRunning = errors.New("no gateway is running for this configuration")

// A Client speaks to a running gateway over its socket. It is safe for
// concurrent use. Errors of the gateway are *[Error].
type Client struct {
	socket string
	http   *http.Client
}

// Dial finds out whether a gateway listens on the socket.
func Dial(ctx context.Context, socket string) (*Client, error) {
	c := &Client{socket: socket}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", ErrNotRunning, socket)
	}
	conn.Close()
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.connect(ctx) },
	}}
	return c, nil
}

// Close ends the connections that are open and idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	return d.DialContext(ctx, "unix", c.socket)
}

// List lists all servers, and the entries that could not become one.
func (c *Client) List(ctx context.Context) (list Listing, err error) {
	err = c.do(ctx, http.MethodGet, "/admin/mcp", &list)
	return list, err
}

// Detail returns everything about one server; with wait a server that starts is
// waited for.
func (c *Client) Detail(ctx context.Context, name string, wait bool) (gateway.ServerDetail, error) {
	path := "/admin/mcp/" + url.PathEscape(name)
	if wait {
		path += "?wait=1"
	}
	var detail gateway.ServerDetail
	err := c.do(ctx, http.MethodGet, path, &detail)
	return detail, err
}

// Act starts, stops or restarts a server and waits for the outcome.
func (c *Client) Act(ctx context.Context, name, action string) (RestartResult, error) {
	var result RestartResult
	err := c.do(ctx, http.MethodPost, "/admin/mcp/"+url.PathEscape(name)+"/"+action, &result)
	return result, err
}

// Create adds a server to mcp.json, of fields in JSON.
func (c *Client) Create(ctx context.Context, name string, fields []byte, allowPlaintext bool) (Created, error) {
	var created Created
	entry := bytes.TrimSpace(fields)
	quoted, err := json.Marshal(name)
	if err != nil {
		return created, err
	}
	if !bytes.HasPrefix(entry, []byte("{")) {
		return created, errors.New("the entry is no JSON object")
	}
	body := append([]byte(`{"name":`), quoted...)
	if rest := bytes.TrimSpace(entry[1:]); !bytes.HasPrefix(rest, []byte("}")) {
		body = append(body, ',')
	}
	path := "/admin/mcp"
	if allowPlaintext {
		path += "?allow_plaintext=1"
	}
	err = c.send(ctx, http.MethodPost, path, append(body, entry[1:]...), &created)
	return created, err
}

// Remove stops a server and takes it out of the configuration.
func (c *Client) Remove(ctx context.Context, name string) (Deleted, error) {
	var deleted Deleted
	err := c.do(ctx, http.MethodDelete, "/admin/mcp/"+url.PathEscape(name), &deleted)
	return deleted, err
}

// UnlockVault opens the gateway's vault and returns the servers that are restarted for
// that. An error of the passphrase has the code [CodeVaultLocked].
func (c *Client) UnlockVault(ctx context.Context, passphrase []byte) ([]string, error) {
	body, err := json.Marshal(unlockRequest{string(passphrase)})
	if err != nil {
		return nil, err
	}
	var result vaultResult
	err = c.send(ctx, http.MethodPost, "/admin/vault/unlock", body, &result)
	return result.Restarted, err
}

// Vault returns what may be seen of the gateway's vault.
func (c *Client) Vault(ctx context.Context) (info VaultInfo, err error) {
	err = c.do(ctx, http.MethodGet, "/admin/vault", &info)
	return info, err
}

// RefreshVault has the gateway read the vault again and returns the servers that are
// restarted for that.
func (c *Client) RefreshVault(ctx context.Context) ([]string, error) {
	var result vaultResult
	err := c.do(ctx, http.MethodPost, "/admin/vault/refresh", &result)
	return result.Restarted, err
}

// Logs hands the lines of a server's standard error to each, and with follow
// goes on until ctx ends or the gateway does.
func (c *Client) Logs(ctx context.Context, name string, follow bool, each func(LogLine) error) error {
	path := "/admin/mcp/" + url.PathEscape(name) + "/logs"
	if follow {
		return c.follow(ctx, path, each)
	}
	var body struct{ Lines []LogLine }
	if err := c.do(ctx, http.MethodGet, path, &body); err != nil {
		return err
	}
	for _, line := range body.Lines {
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// follow reads server-sent events.
func (c *Client) follow(ctx context.Context, path string, each func(LogLine) error) error {
	resp, err := c.request(ctx, http.MethodGet, path, "text/event-stream", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var line LogLine
		if err := json.Unmarshal([]byte(data), &line); err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		if err := each(line); err != nil {
			return err
		}
	}
	return lines.Err()
}

// do makes a request and decodes its answer.
func (c *Client) do(ctx context.Context, method, path string, into any) error {
	return c.send(ctx, method, path, nil, into)
}

// send makes a request with a body, and decodes its answer.
func (c *Client) send(ctx context.Context, method, path string, body []byte, into any) error {
	resp, err := c.request(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the gateway's answer: %w", err)
	}
	return nil
}

// request makes a request and turns an answer that is an error into one.
func (c *Client) request(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

func readError(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the gateway's answer: %w", err)
	}
	var body errorBody
	if json.Unmarshal(data, &body) != nil || body.Error == nil {
		return fmt.Errorf("the gateway answered %s: %.200s", resp.Status, data)
	}
	body.Error.Status, body.Error.Name, body.Error.State = resp.StatusCode, body.Name, body.State
	return body.Error
}

// Attach opens a pipe to the gateway, for the view of one server or, when server
// is empty, of all. The caller closes it.
func (c *Client) Attach(ctx context.Context, server string) (net.Conn, io.Reader, error) {
	return c.switchTo(ctx, attachPath+"?"+url.Values{"server": {server}}.Encode(), attachProtocol)
}

// Handover opens a connection over which the gateway hands over what it listens on, to be
// spoken to as package handover does. The caller closes it.
func (c *Client) Handover(ctx context.Context) (*net.UnixConn, error) {
	conn, _, err := c.switchTo(ctx, handoverPath, handoverProtocol) // nothing comes before it is asked for
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok || !ofThisUser(conn) {
		conn.Close()
		return nil, errors.New("the gateway is another user's")
	}
	return unix, nil
}

// switchTo opens a connection to the gateway and switches it to another protocol.
func (c *Client) switchTo(ctx context.Context, path, protocol string) (net.Conn, io.Reader, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%s)", ErrNotRunning, c.socket)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, http.NoBody)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	req.Header.Set("Upgrade", protocol)
	req.Header.Set("Connection", "Upgrade")
	if err := req.Write(conn); err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("asking the gateway for %s: %w", protocol, err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("asking the gateway for %s: %w", protocol, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer conn.Close()
		return nil, nil, readError(resp)
	}
	return conn, in, nil
}
