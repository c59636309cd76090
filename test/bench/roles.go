// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The roles that the program plays for itself, as its first argument.
const (
	roleChild = "child" // an MCP server on a pipe
	roleBare  = "bare"  // the same answers from a net/http handler
	roleRelay = "relay" // a child behind the least that passes messages on
)

// playRole runs the role that arguments ask for; played is false when they are
// none of a role.
func playRole(args []string) (played bool, err error) {
	if len(args) == 0 || !slices.Contains([]string{roleChild, roleBare, roleRelay}, args[0]) {
		return false, nil
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	tools := flags.Int("tools", 3, "how many tools there are")
	delay := flags.Duration("delay", 0, "how long the server takes to start")
	list := flags.String("list", "", "the file of another result of tools/list")
	http := flags.Bool("http", false, "relay from HTTP, not from a pipe")
	if err := flags.Parse(args[1:]); err != nil {
		return true, err
	}
	if args[0] == roleRelay {
		return true, serveRelay(*http)
	}
	time.Sleep(*delay)
	r := newResponder(*tools)
	if *list != "" {
		if r.list, err = os.ReadFile(*list); err != nil {
			return true, fmt.Errorf("reading the list: %w", err)
		}
	}
	if args[0] == roleChild {
		return true, serveChild(r, os.Stdin, os.Stdout)
	}
	return true, serveHTTP(bareHandler(r))
}

// serveRelay relays to a child of its own.
func serveRelay(http bool) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	child := program{path: self, args: []string{roleChild}}
	if !http {
		return relayPipe(child)
	}
	handler, err := relayHTTP(child)
	if err != nil {
		return err
	}
	return serveHTTP(handler)
}

// serveChild answers each line of its input, each answer in a write of its own,
// until there are no more. One request is handled at a time, so a tool that
// sleeps stalls the server.
func serveChild(r *responder, in io.Reader, out io.Writer) error {
	lines, answer := newLineReader(in), []byte(nil)
	for {
		line, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if answer = r.respond(answer[:0], line); len(answer) == 0 {
			continue
		}
		answer = append(answer, '\n')
		if _, err := out.Write(answer); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
}

// serveHTTP serves at an address that it prints.
func serveHTTP(handler http.HandlerFunc) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Println("http://" + listener.Addr().String() + "/mcp")
	return http.Serve(listener, handler)
}

// bareHandler is the least that answers with net/http: no sessions, no checks,
// no second process behind it.
func bareHandler(r *responder) http.HandlerFunc {
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client is gone
		}
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		if *buffer = r.respond((*buffer)[:0], body); len(*buffer) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		writeAnswer(w, *buffer)
	}
}

// writeAnswer writes a body of JSON.
func writeAnswer(w http.ResponseWriter, answer []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.Write(answer) // an error is that the client is gone
}
