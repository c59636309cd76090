// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
)

// sdkSelector is the first argument by which the test binary becomes a server
// made with the SDK, which speaks the stateless era and no other.
const sdkSelector = "garra-sdk-server"

// sdkMain turns a process that sdkEntry describes into the server.
func sdkMain() {
	if len(os.Args) < 2 || os.Args[1] != sdkSelector {
		return
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "modern", Version: "1.2"}, &mcp.ServerOptions{
		Instructions:              "Be modern.",
		SupportedProtocolVersions: []string{string(protocol.LatestStateless)},
		SubscribeHandler:          func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler:        func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, sdkEcho)
	mcp.AddTool(s, &mcp.Tool{Name: "name"}, sdkName)
	mcp.AddTool(s, &mcp.Tool{Name: "log"}, sdkLog)
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(
		context.Context, *mcp.CallToolRequest, struct{},
	) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "grown"}, sdkEcho)
		return text("grown"), nil, nil
	})
	s.AddResource(&mcp.Resource{URI: "test://clock", Name: "clock"}, func(
		context.Context, *mcp.ReadResourceRequest,
	) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://clock", Text: "noon"}}}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "tick"}, func(
		ctx context.Context, _ *mcp.CallToolRequest, _ struct{},
	) (*mcp.CallToolResult, any, error) {
		return text("ticked"), nil, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://clock"})
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sdkEntry is a server of the stateless era.
func sdkEntry(name string) *mcpconfig.Server {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	settings := mcpconfig.Settings{DefaultTimeout: patience}
	e := mcpconfig.NewServer(name, mcpconfig.Position{File: "mcp.json", Line: 1}, settings)
	e.Transport, e.Command, e.Args = mcpconfig.Stdio, path, []string{sdkSelector}
	e.RestartDelay = 10 * time.Millisecond
	e.Era = mcpconfig.EraModern // the SDK takes the handshake of any revision
	return e
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func sdkEcho(_ context.Context, _ *mcp.CallToolRequest, in struct {
	Text string `json:"text"`
},
) (*mcp.CallToolResult, any, error) {
	return text(in.Text), nil, nil
}

func sdkLog(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	//lint:ignore SA1019 it is deprecated, and servers use it
	err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Data: "boom"})
	return text("logged"), nil, err
}

// sdkName asks for a name and greets it.
func sdkName(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	if answer, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult); ok {
		return text(fmt.Sprintf("hello %v, %s", answer.Content["name"], r.Params.RequestState)), nil, nil
	}
	return &mcp.CallToolResult{
		RequestState: "state 1",
		InputRequests: mcp.InputRequestMap{"who": &mcp.ElicitParams{
			Message: "who?",
			RequestedSchema: map[string]any{
				"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
			},
		}},
	}, nil, nil
}
