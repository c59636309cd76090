// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/handover"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/internal/systemd"
	"github.com/garraia/garra/mcpconfig"
)

type serveOptions struct {
	listen   string
	noAuth   bool
	example  bool
	hosts    []string
	certFile string
	keyFile  string
	drain    int // seconds

	replace   bool
	elsewhere bool // listen was asked for
}

func newServe(g *globals) *cobra.Command {
	o := serveOptions{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve all servers over streamable HTTP, with the admin API",
		Long: `Starts the servers of the configuration and serves them at /mcp, and each alone
at /mcp/NAME. Clients need a token (garra token create --client NAME); commands
on this machine reach the gateway over its socket and need none. Files that
change are applied at once, and so they are on SIGHUP, without touching servers that
did not change.

SIGTERM and SIGINT end the gateway: it listens no longer, /readyz answers 503, what is
new on open connections is refused, calls in flight get the time of --drain-secs, and
then the servers are stopped. A second signal ends the wait for calls.

With --replace it takes the place of the gateway that runs for the configuration, if one
does: it gets the sockets of that, and no client is refused. The other one finishes its
calls and ends; if this one doesn't come up, it goes on. On SIGUSR2 a gateway starts the
program that is installed now to be replaced by it.

Sockets that a service manager hands over (sd_listen_fds(3)) take the place of --listen,
and it is told how the gateway is (sd_notify(3)); docs/operations.md has a unit.

One gateway runs for a configuration folder. Its process id and address are in
run.json in the run folder (garra config path).

Exit codes: 0 after SIGTERM, 130 after SIGINT, 1 when the address is in use or another
gateway runs or doesn't hand over, 6 when that is another user's, 65 when a file cannot
be parsed.`,
		Args: exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			o.elsewhere = c.Flags().Changed("listen")
			return runServe(c.Context(), g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:3888", "the `ADDRESS` to listen on; port 0 takes a free one")
	f.BoolVar(&o.noAuth, "no-auth", false, "let in everybody who reaches the address (loopback only)")
	f.BoolVar(&o.example, "example", false, "add a small server that is built in, named example")
	f.BoolVar(&o.replace, "replace", false, "take the place of the gateway that runs, if one does")
	f.StringSliceVar(&o.hosts, "allowed-host", nil, "a `HOST` by which clients call it, without port; repeatable")
	f.StringVar(&o.certFile, "tls-cert", "", "the certificate `FILE` (PEM) to serve HTTPS with")
	f.IntVar(&o.drain, "drain-secs", 10,
		"the most `SECONDS` that calls in flight get when the gateway, or their server, ends")
	f.StringVar(&o.keyFile, "tls-key", "", "the key `FILE` (PEM) of the certificate")
	return c
}

func runServe(ctx context.Context, g *globals, o serveOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	places, err := g.places()
	if err != nil {
		return err
	}
	// What can't be served leaves no trace in the state folder.
	if _, err := g.config(); err != nil {
		return err
	}
	var taking *handover.Taking
	if o.replace {
		if taking, err = g.inherit(ctx, places, &o); err != nil {
			return err
		}
	}
	var lock *os.File
	if taking != nil {
		defer taking.Close()
		lock, places.Socket = taking.Estate.Lock, taking.Estate.Path
	} else if places, lock, err = g.ownRun(places); err != nil {
		return err
	}
	defer lock.Close()
	e, err := newEngine(places, g.log, purpose{
		keeps: true, drain: o.drainTime(), smith: g.locksmith(ctx, g.vaultOptions(places), true), redact: &g.secrets,
	})
	if err != nil {
		return err
	}
	if o.example {
		e.edit = e.addExample()
	}
	d := &daemon{
		engine: e, began: g, manager: g.manager, options: o, tokens: tokensIn(places), lock: lock,
		successors: make(chan *succession),
	}
	e.applied = func(config *mcpconfig.Config) {
		d.warnOpen(config)
		d.lend()
	}
	return d.run(ctx, taking)
}

// check refuses combinations that would open the gateway to the network. A
// listen address without a host means loopback.
func (o *serveOptions) check() error {
	if (o.certFile == "") != (o.keyFile == "") {
		return usageError(errors.New("--tls-cert and --tls-key belong together"))
	}
	if o.drain < 0 {
		return usageError(fmt.Errorf("--drain-secs %d is less than none", o.drain))
	}
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return usageError(fmt.Errorf("--listen %q is no host:port: %w", o.listen, err))
	}
	for i, name := range o.hosts {
		if o.hosts[i], err = hostName(name); err != nil {
			return usageError(fmt.Errorf("--allowed-host %w", err))
		}
	}
	if host == "" {
		o.listen = net.JoinHostPort("127.0.0.1", port)
	}
	if o.noAuth && !loopbackHost(host) && host != "" {
		return usageError(fmt.Errorf("--no-auth works on loopback only, not on %q", o.listen))
	}
	return nil
}

// hostName is a host as a Host header names it, without port and brackets.
func hostName(given string) (string, error) {
	name := strings.ToLower(given)
	if bare := strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"); net.ParseIP(bare) != nil {
		return bare, nil
	}
	if strings.Contains(name, "://") {
		return "", fmt.Errorf("%q has a scheme; give the name alone", given)
	}
	if _, port, err := net.SplitHostPort(name); err == nil {
		return "", fmt.Errorf("%q has a port, %q; give the name alone, which holds for every port", given, port)
	}
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-._", r) {
			return "", fmt.Errorf("%q is no host name: it has %q", given, r)
		}
	}
	if name == "" {
		return "", errors.New("is empty")
	}
	return name, nil
}

// A daemon is a running gateway: the engine, its listeners, and what makes it
// load its configuration again.
type daemon struct {
	*engine
	began   *globals // as which it was started
	manager *systemd.Manager
	options serveOptions
	tokens  *adminapi.Tokens
	loaded  atomic.Bool
	lock    *os.File // of the run folder
	doors   *doors
	life    context.Context // ends when the gateway begins to end

	handing    atomic.Bool      // a successor is starting
	successors chan *succession // the one that is ready

	open  []string      // servers that --no-auth was warned of; guarded by the engine's mu
	lent  *place.Places // whose run folder leads to this gateway's, nil for none; likewise
	leads string        // the run folder of where the configuration folder last led; likewise
}

// run serves until ctx ends, a listener breaks, or a successor takes its place; it takes
// that of another gateway when there is a taking.
func (d *daemon) run(ctx context.Context, taking *handover.Taking) (err error) {
	tlsConfig, err := d.options.tls()
	if err != nil {
		return err
	}
	if d.doors, err = d.listen(taking); err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	defer end()
	d.life = life
	server := adminapi.NewServer(&adminapi.API{
		Gateway: d.gateway, Reload: d.reload, Events: d.events, Loaded: d.loaded.Load,
		Vault: unlocking{d.engine}, Editor: editing{d.engine}, Refused: d.whyRefused, Handover: d.handOver,
	})
	if err := d.begin(ctx, taking); err != nil {
		d.doors.close()
		d.close(ctx)
		return err
	}
	server.ServeSocket(d.doors.socket)
	for _, address := range d.doors.addresses {
		server.ServeAddress(address, adminapi.Options{Tokens: d.door(), Hosts: d.options.hosts, TLS: tlsConfig})
	}
	d.greet(d.doors.addresses)
	successor, err := d.attend(ctx, server)
	end()
	d.leave(server, successor)
	return err
}

// begin starts the servers, and says where the gateway is once it is the one.
func (d *daemon) begin(ctx context.Context, taking *handover.Taking) (err error) {
	if taking != nil {
		if err = d.load(); err == nil {
			err = d.succeed(ctx, taking)
		}
		if err != nil {
			return err // the other goes on, and so does what it says
		}
	}
	if err = d.writeRunFile(); err == nil && taking == nil {
		err = d.load()
	}
	if err != nil {
		d.tidy()
		return err
	}
	d.loaded.Store(true)
	return nil
}

// door are the tokens that are asked for at the addresses; nil for none.
func (d *daemon) door() *adminapi.Tokens {
	if d.options.noAuth {
		return nil
	}
	return d.tokens
}

func (o *serveOptions) tls() (*tls.Config, error) {
	if o.certFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// greet says where the gateway is and what to do next.
func (d *daemon) greet(addresses []net.Listener) {
	for _, address := range addresses {
		d.log.Info().Str("url", d.url(address.Addr())).Str("socket", d.places.Socket).Msg("serving")
	}
	if !onLoopback(addresses) && d.options.certFile == "" {
		d.log.Warn().Msg("tokens and everything else go over the network in the clear; give --tls-cert and --tls-key")
	}
	if config := d.current(); len(config.Servers)+len(config.LeftOut) == 0 {
		d.log.Info().Msgf("no servers are configured; write them to %s",
			filepath.Join(d.places.ConfigDir, mcpconfig.ServersFile))
	}
	if d.options.noAuth {
		return
	}
	if list, err := d.tokens.List(); err == nil && len(list) == 0 {
		d.log.Info().Msg("no token exists yet; make one for a client with `garra token create --client NAME`")
	}
}

// warnOpen names the servers that --no-auth opens, once for each set of them. It
// runs under the engine's mu.
func (d *daemon) warnOpen(config *mcpconfig.Config) {
	names := make([]string, 0, len(config.Servers))
	for _, s := range config.Servers {
		names = append(names, s.Name)
	}
	if d.options.noAuth && !slices.Equal(names, d.open) {
		d.open = names
		d.log.Warn().Strs("servers", names).
			Msg("--no-auth: every program that reaches the address can use these servers")
	}
}
