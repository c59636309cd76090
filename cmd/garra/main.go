// SPDX-License-Identifier: Apache-2.0

// Command garra is an MCP gateway: it runs the MCP servers of mcp.json and
// config.yml, each in a clean environment, and serves them as one.
package main

import (
	"os"

	"github.com/garraia/garra/internal/pidone"
	"github.com/garraia/garra/sandbox"
)

func main() {
	sandbox.Main()                               // never returns in the processes that guard servers
	pidone.Main(passphraseVariable, oldVariable) // never returns in process 1, whose child is garra
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, pace{quiet: quietWait}))
}
