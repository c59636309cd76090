// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/browser"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/oauth"
	"github.com/garraia/garra/remote"
	"github.com/garraia/garra/source"
)

// loginPatience is how long a person has to log in.
const loginPatience = 10 * time.Minute

// loginsIn are the tokens of the servers of a configuration.
func loginsIn(places place.Places) *oauth.Store {
	return oauth.NewStore(filepath.Join(places.RunDir, "oauth"))
}

// account returns who garra is at a server.
func (g *globals) account(ctx context.Context, name string) (*oauth.Account, error) {
	config, err := g.config()
	if err != nil {
		return nil, err
	}
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	entry, ok := config.Entry(name)
	if !ok {
		if entry = g.builtIn(ctx, config, name); entry == nil {
			return nil, noServer(name, places.ConfigDir)
		}
	}
	if message, fix := entry.Invalid(); message != "" {
		return nil, &source.Failure{Code: source.ServerFailed, Server: name, Message: message, Fix: fix}
	}
	options := remote.Options{Host: envbuild.SystemHost(), Logins: loginsIn(places), Redact: &g.secrets}
	if slices.ContainsFunc(config.Secrets, func(use mcpconfig.SecretUse) bool { return use.Server == name }) {
		held := g.heldSecrets(ctx, places, &config.Settings)
		defer held.Close()
		options.Secrets = held
	}
	return remote.Account(ctx, entry, options)
}

// builtIn is the entry of a server that the running gateway has and no file, such as
// that of --example; nil when there is none.
func (g *globals) builtIn(ctx context.Context, config *mcpconfig.Config, name string) *mcpconfig.Server {
	client, err := g.running(ctx)
	if client == nil || err != nil {
		return nil
	}
	detail, err := client.Detail(ctx, name, false)
	if err != nil || detail.Transport != string(mcpconfig.Stdio) {
		return nil
	}
	entry := mcpconfig.NewServer(name, mcpconfig.Position{File: detail.Source}, config.Settings)
	entry.Transport = mcpconfig.Stdio
	return entry
}

// A loginFlags is what `mcp login` is told.
type loginFlags struct {
	scopes           []string
	asJSON, headless bool
}

func newMCPLogin(g *globals) *cobra.Command {
	f := loginFlags{}
	c := &cobra.Command{
		Use: "login NAME", Short: "Log in to a server at a url that wants OAuth", Args: exactArgs(1),
		ValidArgsFunction: g.serverNames,
		Long: `Logs in to a server at a url: prints the address of its authorization server's page,
opens it in a browser where there is one, and waits up to ten minutes until the
browser comes back. The token is kept in a file that only you can read, is renewed
by itself, and is sent to that url alone. A running gateway uses it at once.

When the browser is on another machine, it ends at an address that it can't open
there; paste that into the terminal.

Exit codes: 1 when the login fails, and when the server does not start after it.`,
		Example: `  garra mcp login notion
  garra mcp login files --scope files:write`,
		RunE: func(c *cobra.Command, args []string) error { return g.login(c.Context(), args[0], &f) },
	}
	c.Flags().StringArrayVar(&f.scopes, "scope", nil, "a `SCOPE` to ask for as well; the flag can be repeated")
	c.Flags().BoolVar(&f.headless, "no-browser", false, "open no browser, only print the address")
	c.Flags().BoolVar(&f.asJSON, "json", false, `print {"name", "issuer", "scopes", "expires_at"}`)
	return c
}

func (g *globals) login(ctx context.Context, name string, f *loginFlags) error {
	account, err := g.account(ctx, name)
	if err != nil {
		return err
	}
	patience, cancel := context.WithTimeoutCause(ctx, loginPatience,
		fmt.Errorf("nobody logged in within %s", loginPatience))
	defer cancel()
	login, err := account.Login(patience, &oauth.Ask{
		Scopes: splitScopes(f.scopes), Pasted: g.pasted(), Show: func(address string) { g.show(address, f.headless) },
	})
	if err != nil {
		failure := source.Fail(source.ServerFailed, name, "logging in: %v", err)
		failure.Fix = loginFix(err)
		return failure
	}
	if f.asJSON {
		err = g.writeJSON(login)
	} else {
		fmt.Fprintln(g.out, printable(loginText(login)))
	}
	return errors.Join(err, g.afterLogin(ctx, name))
}

// loginFix is what to do about a login that failed, empty when the error says it.
func loginFix(err error) string {
	switch {
	case errors.Is(err, oauth.ErrNoOAuth):
		return "if it wants a token, set it as Authorization in headers"
	case errors.As(err, new(*net.OpError)):
		return "look whether url is right, and whether the server runs"
	}
	return ""
}

// splitScopes lets scopes be written with blanks between them too.
func splitScopes(flags []string) []string { return strings.Fields(strings.Join(flags, " ")) }

// show shows a person where to log in.
func (g *globals) show(address string, headless bool) {
	fmt.Fprintf(g.err, "open this address to log in:\n\n  %s\n\n", printable(address))
	if !headless && browser.Open(address) == nil {
		fmt.Fprintln(g.err, "a browser is asked to open it")
	}
	if isTerminal(g.in) {
		fmt.Fprintln(g.err, "if the browser ends on a page that it can't open, paste the address of that page here")
	}
}

// pasted gives the first line that is typed into the terminal, nil when there is
// none.
func (g *globals) pasted() <-chan string {
	if !isTerminal(g.in) {
		return nil
	}
	lines := make(chan string, 1)
	go func() { // ends with a line, or with the program
		in := bufio.NewScanner(g.in)
		for in.Scan() {
			if strings.TrimSpace(in.Text()) != "" {
				lines <- in.Text()
				return
			}
		}
	}()
	return lines
}

// loginText says that somebody is logged in, and as long as what.
func loginText(l *oauth.Login) string {
	text := fmt.Sprintf("logged in to %s at %s", l.Name, l.Issuer)
	if len(l.Scopes) > 0 {
		text += ", scopes " + strings.Join(l.Scopes, " ")
	}
	return text
}

// afterLogin has the running gateway, if there is one, start the server with its
// new token, unless the entry is disabled.
func (g *globals) afterLogin(ctx context.Context, name string) error {
	client, err := g.running(ctx)
	if client == nil || err != nil {
		return err
	}
	detail, err := client.Detail(ctx, name, false)
	if err != nil || detail.State == source.Disabled {
		return err
	}
	if _, err = client.Act(ctx, name, "start"); err != nil {
		return fmt.Errorf("the login is kept, but the server does not start: %w", err)
	}
	return nil
}

// An authInfo is what `mcp inspect` says of the login of a server at a url.
type authInfo struct {
	LoggedIn  bool       `json:"logged_in"`
	Issuer    string     `json:"issuer"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// auth is what is known of the login of a server; nil for one that can have none.
func (g *globals) auth(ctx context.Context, name string) *authInfo {
	account, err := g.account(ctx, name)
	if err != nil {
		return nil // what is wrong with the entry is told in other places
	}
	login, err := account.Current()
	if err != nil || login == nil {
		return &authInfo{Scopes: []string{}}
	}
	return &authInfo{true, login.Issuer, login.Scopes, login.ExpiresAt}
}

func newMCPLogout(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "logout NAME", Short: "Forget the login of a server", Args: exactArgs(1),
		ValidArgsFunction: g.serverNames,
		Long: `Forgets the token of a server, and tells the authorization server where it can be
told. In a running gateway the server ends its session.

Exit codes: 1 when nobody is logged in.`,
		RunE: func(c *cobra.Command, args []string) error { return g.logout(c.Context(), args[0]) },
	}
}

func (g *globals) logout(ctx context.Context, name string) error {
	account, err := g.account(ctx, name)
	if err != nil {
		return err
	}
	was, err := account.Logout(ctx)
	switch {
	case !was && err != nil:
		return source.Fail(source.ServerFailed, name, "logging out: %v", err)
	case !was:
		return source.Fail(source.ServerFailed, name, "%v", oauth.ErrLogin)
	case err != nil:
		fmt.Fprintf(g.err, "garra: %s\n", printableLines(err.Error()))
	}
	fmt.Fprintf(g.out, "logged out of %s\n", name)
	return g.afterLogout(ctx, name)
}

// afterLogout has the running gateway, if there is one, end what was begun with
// the token.
func (g *globals) afterLogout(ctx context.Context, name string) error {
	client, err := g.running(ctx)
	if client == nil || err != nil {
		return err
	}
	detail, err := client.Detail(ctx, name, false)
	if err != nil || detail.State == source.Disabled || detail.State == source.Stopped {
		return err
	}
	_, _ = client.Act(ctx, name, "restart") // without a token it most likely fails, as it should
	return nil
}
