// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/place"
)

func newToken(g *globals) *cobra.Command {
	return group("token", "Make, list and revoke the tokens of clients and administrators",
		newTokenCreate(g), newTokenList(g), newTokenRevoke(g))
}

// tokens opens the tokens of the configuration, which need not exist.
func (g *globals) tokens() (*adminapi.Tokens, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	return tokensIn(places), nil
}

func tokensIn(places place.Places) *adminapi.Tokens {
	return adminapi.OpenTokens(filepath.Join(places.RunDir, "tokens.json"))
}

func newTokenCreate(g *globals) *cobra.Command {
	role, client, asJSON := "", "", false
	c := &cobra.Command{
		Use: "create", Short: "Make a token and show it, this one time", Args: exactArgs(0),
		Long: `Makes a token: with --client NAME one for the MCP endpoints, with --role one for
the admin routes. Only a digest is stored, so the token is shown this one time.`,
		RunE: func(*cobra.Command, []string) error {
			role, err := tokenRole(role, client)
			if err != nil {
				return usageError(err)
			}
			return g.createToken(role, client, asJSON)
		},
	}
	c.Flags().StringVar(&role, "role", "", "the `ROLE` of an admin token: viewer, operator or admin")
	c.Flags().StringVar(&client, "client", "", "the `NAME` of the MCP client that the token is for")
	c.Flags().BoolVar(&asJSON, "json", false, `print {"id", "role", "client", "created_at", "token"}`)
	return c
}

// tokenRole is the role that the flags of `token create` ask for.
func tokenRole(role, client string) (adminapi.Role, error) {
	switch r := adminapi.Role(role); {
	case (role == "") == (client == ""):
		return "", errors.New("give either --client NAME or --role viewer|operator|admin")
	case client != "":
		return adminapi.RoleClient, nil
	case !r.Valid() || r == adminapi.RoleClient:
		return "", fmt.Errorf("--role %q is none of viewer, operator, admin", role)
	default:
		return r, nil
	}
}

func (g *globals) createToken(role adminapi.Role, client string, asJSON bool) error {
	places, err := g.places()
	if err != nil {
		return err
	}
	if err := places.Make(); err != nil {
		return err
	}
	token, secret, err := tokensIn(places).Create(role, client, time.Now())
	if err != nil {
		return err
	}
	if asJSON {
		return g.writeJSON(struct {
			adminapi.Token
			Secret string `json:"token"`
		}{token, secret})
	}
	fmt.Fprintln(g.out, secret)
	fmt.Fprintf(g.err, "token %s of role %s; it is not shown again\n", token.ID, token.Role)
	return nil
}

func newTokenList(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "list", Short: "List tokens by their ids", Args: exactArgs(0),
		Long: `Lists the tokens by their ids. A token itself is not stored and can't be shown.`,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := g.tokens()
			if err != nil {
				return err
			}
			list, err := tokens.List()
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(map[string]any{"tokens": listed(list)})
			}
			t := g.table("ID", "ROLE", "CLIENT", "CREATED")
			for _, token := range list {
				t.row(token.ID, string(token.Role), token.Client, token.CreatedAt.Local().Format(time.DateTime))
			}
			return t.flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"tokens": [...]}`)
	return c
}

// A tokenLine is one token of `token list`.
type tokenLine struct {
	ID        string        `json:"id"`
	Role      adminapi.Role `json:"role"`
	Client    *string       `json:"client"`
	CreatedAt time.Time     `json:"created_at"`
}

func listed(list []adminapi.Token) []tokenLine {
	lines := make([]tokenLine, len(list))
	for i, t := range list {
		lines[i] = tokenLine{ID: t.ID, Role: t.Role, CreatedAt: t.CreatedAt}
		if t.Client != "" {
			lines[i].Client = &list[i].Client
		}
	}
	return lines
}

func newTokenRevoke(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token; sessions that use it end", Args: exactArgs(1),
		Long: `Revokes a token. The running gateway refuses it from then on, and ends the sessions
that it had opened within a second or two. Prints nothing.

Exit codes: 1 when there is no such token.`,
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := g.tokens()
			if err != nil {
				return err
			}
			return tokens.Revoke(args[0])
		},
	}
}
