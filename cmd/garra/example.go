// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/mcpconfig"
)

// exampleName is the name of the built-in server, and of the hidden command
// that it is.
const (
	exampleName    = "example"
	exampleCommand = "example-server"
)

// addExample returns what adds the built-in server to a configuration, and says so
// once when it has one of that name, which is used then.
func (e *engine) addExample() func(*mcpconfig.Config) error {
	warned := false
	return func(config *mcpconfig.Config) error {
		own, taken := config.Entry(exampleName)
		if !taken {
			return addExample(config)
		}
		if !warned {
			e.log.Warn().Str("server", exampleName).Msgf("--example: the server of that name in %s is used, and not "+
				"the one that is built in; give yours another name to have both", own.Origin)
		}
		warned = true
		return nil
	}
}

// addExample adds the built-in server. It is an ordinary child: this binary, started
// with a hidden command.
func addExample(config *mcpconfig.Config) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("adding the example: %w", err)
	}
	entry := mcpconfig.NewServer(exampleName, mcpconfig.Position{File: "--example"}, config.Settings)
	entry.Transport, entry.Command, entry.Args = mcpconfig.Stdio, self, []string{exampleCommand}
	config.Servers = append(config.Servers, entry)
	slices.SortFunc(config.Servers, func(a, b *mcpconfig.Server) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func newExampleServer() *cobra.Command {
	return &cobra.Command{
		Use:    exampleCommand,
		Short:  "A small MCP server over stdio, for trying things out",
		Hidden: true,
		Args:   exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return exampleServer().Run(c.Context(), &mcp.StdioTransport{})
		},
	}
}

type echoInput struct {
	Text string `json:"text" jsonschema:"what to say back"`
}

type addInput struct {
	A float64 `json:"a" jsonschema:"the first number"`
	B float64 `json:"b" jsonschema:"the second number"`
}

type addOutput struct {
	Sum float64 `json:"sum"`
}

type envOutput struct {
	Names []string `json:"names" jsonschema:"the names, never the values"`
}

// exampleServer has a tool that answers, one that computes, and one that shows
// what a server's environment holds.
func exampleServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "garra-example", Version: version.String()}, &mcp.ServerOptions{
		Instructions: "A server for trying garra out.",
	})
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says back what it is told."},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds two numbers."},
		func(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, addOutput, error) {
			return nil, addOutput{in.A + in.B}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "environment", Description: "Names the variables in this server's environment."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, envOutput, error) {
			names := []string{}
			for _, v := range os.Environ() {
				name, _, _ := strings.Cut(v, "=")
				names = append(names, name)
			}
			slices.Sort(names)
			return nil, envOutput{names}, nil
		})
	return s
}
