// SPDX-License-Identifier: Apache-2.0

// Package servers knows the pinned real MCP servers of this folder, for the
// end-to-end tests: how each is started, and a call that is answered the same
// way each time, without a network. README.md has them as a table.
package servers

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// A Server is one pinned server and what is known of it.
type Server struct {
	Name    string
	Command string // the file that npm installed, absolute
	Args    []string
	Env     map[string]string // on top of PATH and HOME
	// Tools is the number of tools for a client without capabilities.
	Tools int
	// Tool and Arguments are a call whose answer is the same each time.
	Tool      string
	Arguments json.RawMessage
	// Silent says that the server never answers initialize.
	Silent bool
}

// kubeconfig names a cluster that isn't there, which is enough to start.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: nobody}}]
users: [{name: nobody, user: {token: none}}]
current-context: none
`

// Pinned returns the servers in the order of the table. folder is the absolute
// folder of this package, in which npm has installed them; scratch is an
// absolute folder for the files that they need, which Pinned writes.
func Pinned(folder, scratch string) ([]Server, error) {
	hello := filepath.Join(scratch, "hello.txt")
	config := filepath.Join(scratch, "kubeconfig")
	for file, text := range map[string]string{hello: "hello\n", config: kubeconfig} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	bin := func(name string) string { return filepath.Join(folder, "node_modules", ".bin", name) }
	path, err := json.Marshal(map[string]string{"path": hello})
	if err != nil {
		return nil, err
	}
	return []Server{
		{
			Name: "everything", Command: bin("mcp-server-everything"), Tools: 13,
			Tool: "echo", Arguments: json.RawMessage(`{"message":"hi"}`),
		},
		{
			Name: "filesystem", Command: bin("mcp-server-filesystem"), Args: []string{scratch}, Tools: 14,
			Tool: "read_text_file", Arguments: path,
		},
		{
			Name: "memory", Command: bin("mcp-server-memory"), Tools: 9,
			Env:  map[string]string{"MEMORY_FILE_PATH": filepath.Join(scratch, "memory.jsonl")},
			Tool: "read_graph", Arguments: json.RawMessage(`{}`),
		},
		{
			Name: "sequential-thinking", Command: bin("mcp-server-sequential-thinking"), Tools: 1,
			Tool:      "sequentialthinking",
			Arguments: json.RawMessage(`{"thought":"a","thoughtNumber":1,"totalThoughts":1,"nextThoughtNeeded":false}`),
		},
		{
			Name: "kubernetes", Command: bin("kubernetes-mcp-server"), Tools: 20,
			Env:  map[string]string{"KUBECONFIG": config},
			Tool: "configuration_view", Arguments: json.RawMessage(`{}`),
		},
		{
			Name: "context7", Command: bin("context7-mcp"), Tools: 2,
			Tool: "resolve-library-id", Arguments: json.RawMessage(`{"query":"x","libraryName":"x"}`),
		},
		{
			Name: "desktop-commander", Command: bin("desktop-commander"), Tools: 26,
			Env:  map[string]string{"HOME": scratch},
			Tool: "list_sessions", Arguments: json.RawMessage(`{}`),
		},
		{
			Name: "stripe", Command: bin("mcp"), Args: []string{"--api-key=sk_test_x"}, Silent: true,
		},
	}, nil
}
