// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
)

func newMCPLogs(g *globals) *cobra.Command {
	asJSON, follow := false, false
	c := &cobra.Command{
		Use: "logs NAME", Short: "Show what a server wrote to standard error", Args: exactArgs(1),
		ValidArgsFunction: g.serverNames,
		Long: `Shows the last lines that a server wrote to standard error, and between them, after
--, when it ended and how. The running gateway keeps them, in memory only. With -f
it ends when the gateway does, and says so.

Exit codes: 1 for an unknown server, and when no gateway runs.`,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.running(c.Context())
			if err != nil {
				return err
			}
			if client == nil {
				return fmt.Errorf("%w, and it is what keeps logs; `garra mcp inspect %s` starts the server "+
					"and shows what it says", adminapi.ErrNotRunning, args[0])
			}
			err = client.Logs(c.Context(), args[0], follow, func(l adminapi.LogLine) error {
				return g.printLog(l, asJSON)
			})
			switch {
			case err == nil && follow:
				fmt.Fprintln(g.err, "garra: the gateway has ended")
			case connectionLost(err):
				return errors.New("the gateway has ended, and not in order; start it with `garra serve`")
			}
			return err
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on as lines come")
	c.Flags().BoolVar(&asJSON, "json", false,
		`print {"time", "server", "line"} for each line, and "note": true of those after --`)
	return c
}

// connectionLost reports whether an error means that the other side of a connection
// went without a word.
func connectionLost(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (g *globals) printLog(l adminapi.LogLine, asJSON bool) error {
	if !asJSON {
		by := ""
		if l.Note {
			by = "-- "
		}
		_, err := fmt.Fprintf(g.out, "%s %s%s\n", l.Time.Format("15:04:05.000"), by, printable(l.Line))
		return err
	}
	line, err := json.Marshal(struct {
		Time   any    `json:"time"`
		Server string `json:"server"`
		Line   string `json:"line"`
		Note   bool   `json:"note,omitempty"`
	}{l.Time, l.Server, l.Line, l.Note})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(g.out, printableJSON(string(line)))
	return err
}
