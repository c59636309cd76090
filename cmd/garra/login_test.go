// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/authserver"
)

// authServer is an MCP server with one tool, behind an authorization server. The
// tool `seen` says which Authorization headers came, and `end` ends all tokens.
func authServer(file string) {
	s := &authserver.Server{Scopes: "read", Clients: map[string]string{"registered": "client-secret-9d1c"}}
	server := mcp.NewServer(&mcp.Implementation{Name: "protected", Version: "1"}, nil)
	answer := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "seen"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return answer(strings.Join(s.Seen(), "\n"))
		})
	mcp.AddTool(server, &mcp.Tool{Name: "end"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			s.Expire(false)
			return answer(fmt.Sprintf("refreshed %d times; %v", s.Count("refresh_token"), s.Problems()))
		})
	s.Inner = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	if err := atomicfile.Write(file, []byte(l.Addr().String())); err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(l, s))
}

// browse runs a command, and opens the first address that it prints to standard
// error. It returns the command's exit code.
func browse(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout = os.Stdout
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		fmt.Fprintln(os.Stderr, lines.Text())
		if address, ok := strings.CutPrefix(lines.Text(), "  http"); ok {
			open("http" + address)
		}
	}
	err = cmd.Wait()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	return 0
}

// open prints the page at an address.
func open(address string) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, http.NoBody)
	if err != nil {
		log.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "page: %s\n", text)
}
