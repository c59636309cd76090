// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

func newMCPCall(g *globals) *cobra.Command {
	asJSON, args := false, ""
	c := &cobra.Command{
		Use: "call NAME TOOL", Short: "Call a tool of a server and print its result", Args: exactArgs(2),
		ValidArgsFunction: g.serverNames,
		Long: `Calls a tool of a server, by the server's own name for it, and prints the result.
When no gateway runs, the server is started for this and stopped again.

Exit codes: 1 when the result is an error or the call failed, 6 when policy
refused it.`,
		Example: `  garra mcp call example echo --args '{"text":"hello"}'
  garra mcp call example echo --args @arguments.json
  echo '{"text":"hello"}' | garra mcp call example echo --args -`,
		RunE: func(c *cobra.Command, names []string) error {
			arguments, err := g.readObject("--args", args)
			if err != nil {
				return err
			}
			result, err := g.callTool(c.Context(), names[0], names[1], arguments)
			if err != nil {
				return err
			}
			return g.printResult(result, asJSON)
		},
	}
	c.Flags().StringVar(&args, "args", "{}", "the arguments: a `JSON` object, @FILE, or - for standard input")
	c.Flags().BoolVar(&asJSON, "json", false, "print the whole result, as the server wrote it")
	return c
}

// readObject reads a JSON object from where the value of a flag says.
func (g *globals) readObject(flag, value string) (protocol.Raw, error) {
	text, err := []byte(value), error(nil)
	if value == "-" {
		text, err = io.ReadAll(g.in)
	} else if path, ok := strings.CutPrefix(value, "@"); ok {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, usageError(fmt.Errorf("reading %s: %w", flag, err))
	}
	object, err := protocol.ParseObjectStrict(text)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "jsontext: ")
		return nil, usageError(fmt.Errorf(`%s is no JSON object: %s; write it as '{"name":"value"}'`, flag, reason))
	}
	return object.Raw(), nil
}

// callTool calls a tool through the running gateway, or one of its own.
func (g *globals) callTool(ctx context.Context, server, tool string, arguments protocol.Raw) (protocol.Raw, error) {
	conn, in, done, err := g.pipe(ctx, server)
	if err != nil {
		return nil, err
	}
	defer done()
	defer g.waitFor(server).stop()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	params := protocol.Object{}
	params.Set("name", protocol.Quote(tool))
	params.Set("arguments", arguments)
	c := pipeClient{frames: protocol.NewReader(in, 0), out: conn}
	if err := c.hello(); err != nil {
		if connectionLost(err) {
			err = &source.Failure{
				Code: source.GatewayEnded, Server: server, Cause: err,
				Message: "the gateway ended before it got the call", Fix: "call again",
			}
		}
		return nil, err
	}
	result, err := c.ask(protocol.MethodToolsCall, params.Raw())
	if e, ok := errors.AsType[*protocol.Error](err); ok && strings.Contains(e.Message, " has no tool ") {
		end := "; "
		if strings.HasSuffix(e.Message, "?") {
			end = " "
		}
		return nil, errors.New(e.Message + end + "`garra mcp tools` lists what there is")
	}
	if connectionLost(err) {
		return nil, &source.Failure{
			Code: source.GatewayEnded, Server: server, Cause: err,
			Message: fmt.Sprintf("the gateway ended before it answered the call of %.100q, which may have run", tool),
			Fix:     "look whether it has before you call again",
		}
	}
	return result, err
}

// pipe opens the view of one server: of the running gateway, or of a private
// one that ends with done.
func (g *globals) pipe(ctx context.Context, server string) (conn net.Conn, in io.Reader, done func(), err error) {
	client, err := g.running(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if client != nil {
		conn, in, err := client.Attach(ctx, server)
		return conn, in, func() { conn.Close() }, err
	}
	e, err := g.private(ctx, server, true)
	if err != nil {
		return nil, nil, nil, err
	}
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	var closed atomic.Bool
	go func() { // ends when ours is closed, which done does
		defer close(served)
		// What ends the pipe shows at our end of it.
		who := gateway.PipeClient{Server: server, Principal: "local", Gone: func() bool {
			return ctx.Err() != nil || closed.Load()
		}}
		_ = e.gateway.ServePipe(context.WithoutCancel(ctx), theirs, theirs, who)
		theirs.Close()
	}()
	return ours, ours, func() {
		closed.Store(true)
		ours.Close()
		<-served
		e.close(context.WithoutCancel(ctx))
	}, nil
}

// A pipeClient is the least MCP client that can call a tool.
type pipeClient struct {
	frames *protocol.Reader
	out    io.Writer
	last   uint64
}

// hello makes the handshake, as a client without capabilities.
func (c *pipeClient) hello() error {
	info := protocol.Object{}
	info.Set("name", protocol.Quote("garra mcp call"))
	info.Set("version", protocol.Quote(version.String()))
	params := protocol.Object{}
	params.Set("protocolVersion", protocol.Quote(string(protocol.LatestHandshake)))
	params.Set("capabilities", protocol.Raw("{}"))
	params.Set("clientInfo", info.Raw())
	if _, err := c.ask(protocol.MethodInitialize, params.Raw()); err != nil {
		return err
	}
	return c.send(protocol.NewNotification(protocol.NoteInitialized, nil))
}

// ask makes a request and waits for its answer; what comes before is skipped.
func (c *pipeClient) ask(method string, params protocol.Raw) (protocol.Raw, error) {
	c.last++
	id := protocol.NumberID(c.last)
	if err := c.send(protocol.NewRequest(id, method, params)); err != nil {
		return nil, err
	}
	for {
		frame, err := c.frames.Next()
		if err != nil {
			return nil, err
		}
		m, err := protocol.Parse(frame)
		if err != nil || !m.IsResponse() || m.ID != id {
			continue
		}
		if m.Error != nil {
			return nil, callError(m.Error)
		}
		return m.Result, nil
	}
}

func (c *pipeClient) send(m *protocol.Message) error {
	_, err := c.out.Write(append(m.Append(nil), '\n'))
	return err
}

// callError is the error of a call, as a failure when garra says which kind. Its
// message names the server as clients are told it.
func callError(raw protocol.Raw) error {
	err := asFailure(raw)
	if f, ok := errors.AsType[*source.Failure](err); ok {
		f.Message = protocol.ParseError(raw).Message
		f.Server, f.Message = "", strings.TrimSuffix(f.Message, "; "+f.Fix)
	}
	return err
}

// asFailure is a JSON-RPC error as the failure that it describes, when it is one of
// garra's.
func asFailure(raw protocol.Raw) error {
	e := protocol.ParseError(raw)
	object, err := protocol.ParseObject(raw)
	if err != nil {
		return e
	}
	f := described(object.Get("data"))
	if f == nil {
		return e
	}
	// The message is a whole sentence for clients: it names server and fix too.
	f.Message = strings.TrimPrefix(strings.TrimSuffix(e.Message, "; "+f.Fix), fmt.Sprintf("server %q: ", f.Server))
	return f
}

// described reads the failure under "garra/error"; nil when there is none.
func described(holder protocol.Raw) *source.Failure {
	object, err := protocol.ParseObject(holder)
	if err != nil {
		return nil
	}
	detail, err := protocol.ParseObject(object.Get("garra/error"))
	if err != nil {
		return nil
	}
	text := func(name string) string {
		s, _ := protocol.Text(detail.Get(name)) // absent is empty
		return s
	}
	return &source.Failure{Code: source.Code(text("code")), Server: text("server"), Fix: text("fix")}
}

// printResult prints the result of a tool call; one that is an error is an
// error of the command.
func (g *globals) printResult(result protocol.Raw, asJSON bool) error {
	object, err := protocol.ParseObject(result)
	if err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	if asJSON {
		g.printRaw(result)
	} else {
		g.printContent(object)
	}
	if string(object.Get("isError")) != "true" {
		return nil
	}
	code := exitFailed
	if f := described(object.Get("_meta")); f != nil && refused(f.Code) {
		code = exitRefused
	}
	return &exitError{code, nil}
}

// printContent prints texts as they are, and says of the rest what it is.
func (g *globals) printContent(result *protocol.Object) {
	parts, err := protocol.Elements(result.Get("content"))
	if err != nil {
		g.printRaw(result.Raw())
		return
	}
	for _, raw := range parts {
		part, err := protocol.ParseObject(raw)
		if err != nil {
			continue
		}
		kind, _ := protocol.Text(part.Get("type")) // absent is empty
		if text, err := protocol.Text(part.Get("text")); kind == "text" && err == nil {
			fmt.Fprintln(g.out, g.result(text))
			continue
		}
		fmt.Fprintf(g.out, "[%s, %d bytes; --json shows it]\n", printable(kind), len(raw))
	}
	if len(parts) == 0 && result.Get("structuredContent") != nil {
		g.printRaw(result.Get("structuredContent"))
	}
}

// printRaw prints JSON of a server byte for byte, but on a terminal with
// control characters escaped.
func (g *globals) printRaw(raw protocol.Raw) {
	text := string(raw)
	if isTerminal(g.out) {
		text = printableJSON(text)
	}
	fmt.Fprintln(g.out, text)
}
