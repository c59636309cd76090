// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/mcpconfig"
)

// stopBudget bounds the end of a gateway.
const stopBudget = 20 * time.Second

type serveOptions struct {
	listen   string
	noAuth   bool
	example  bool
	hosts    []string
	certFile string
	keyFile  string
	drain    int // seconds
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

One gateway runs for a configuration folder. Its process id and address are in
run.json in the run folder (garra config path).

Exit codes: 0 after SIGTERM, 130 after SIGINT, 1 when the address is in use or another
gateway runs, 65 when a file cannot be parsed.`,
		Args: exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return runServe(c.Context(), g, o) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:3888", "the `ADDRESS` to listen on; port 0 takes a free one")
	f.BoolVar(&o.noAuth, "no-auth", false, "let in everybody who reaches the address (loopback only)")
	f.BoolVar(&o.example, "example", false, "add a small server that is built in, named example")
	f.StringSliceVar(&o.hosts, "allowed-host", nil, "a `HOST` by which clients call it, without port; repeatable")
	f.StringVar(&o.certFile, "tls-cert", "", "the certificate `FILE` (PEM) to serve HTTPS with")
	f.IntVar(&o.drain, "drain-secs", 10, "the most `SECONDS` that calls in flight get when the gateway ends")
	f.StringVar(&o.keyFile, "tls-key", "", "the key `FILE` (PEM) of the certificate")
	return c
}

// A runFile tells others about the running gateway.
type runFile struct {
	PID       int       `json:"pid"`
	Address   string    `json:"address"`
	Socket    string    `json:"socket"`
	StartedAt time.Time `json:"started_at"`
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
	places, unlock, err := g.ownRun(places)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := newEngine(places, g.log, purpose{
		keeps: true, smith: g.locksmith(ctx, g.vaultOptions(places), true), redact: &g.secrets,
	})
	if err != nil {
		return err
	}
	if o.example {
		e.edit = e.addExample()
	}
	d := &daemon{engine: e, options: o, tokens: tokensIn(places)}
	e.applied = func(config *mcpconfig.Config) {
		d.warnOpen(config)
		d.lend()
	}
	return d.run(ctx)
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
	if o.noAuth && !o.onLoopback() {
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

// onLoopback reports whether only this machine reaches the address.
func (o *serveOptions) onLoopback() bool {
	host, _, err := net.SplitHostPort(o.listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || (ip != nil && ip.IsLoopback()))
}

func readRunFile(places place.Places) (runFile, error) {
	var run runFile
	data, err := os.ReadFile(runFilePath(places))
	if err != nil {
		return run, err
	}
	return run, json.Unmarshal(data, &run)
}

func runFilePath(places place.Places) string { return filepath.Join(places.RunDir, "run.json") }

// A daemon is a running gateway: the engine, its listeners, and what makes it
// load its configuration again.
type daemon struct {
	*engine
	options serveOptions
	tokens  *adminapi.Tokens
	loaded  atomic.Bool
	open    []string      // servers that --no-auth was warned of; guarded by the engine's mu
	lent    *place.Places // whose run folder leads to this gateway's, nil for none; likewise
	leads   string        // the run folder of where the configuration folder last led; likewise
}

// run serves until ctx ends or a listener breaks.
func (d *daemon) run(ctx context.Context) (err error) {
	tlsConfig, err := d.options.tls()
	if err != nil {
		return err
	}
	socket, tcp, err := d.listen()
	if err != nil {
		return err
	}
	defer os.Remove(runFilePath(d.places))
	defer os.Remove(d.places.Socket)
	server := adminapi.NewServer(&adminapi.API{
		Gateway: d.gateway, Reload: d.reload, Events: d.events, Loaded: d.loaded.Load,
		Vault: unlocking{d.engine}, Editor: editing{d.engine}, Refused: d.whyRefused,
	})
	if err := d.load(); err != nil {
		socket.Close()
		tcp.Close()
		d.close(ctx)
		return err
	}
	d.loaded.Store(true)
	server.ServeSocket(socket)
	server.ServeAddress(tcp, adminapi.Options{Tokens: d.door(), Hosts: d.options.hosts, TLS: tlsConfig})
	d.greet(tcp.Addr().String())

	err = d.attend(ctx, server)
	d.leave(server)
	return err
}

// leave ends a gateway that serves: what runs is waited for, what is new is refused.
func (d *daemon) leave(server *adminapi.Server) {
	again, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	d.loaded.Store(false)
	d.log.Info().Int("drain_secs", d.options.drain).Msg("stopping")
	server.StopListening()
	os.Remove(d.places.Socket)
	d.unlend()
	d.drain(again, d.gateway.Drain)
	stop() // a third signal kills
	ctx, cancel := context.WithTimeout(context.Background(), stopBudget)
	defer cancel()
	server.Shutdown(ctx)
	d.close(ctx)
}

// drain waits until sessions have ended in one of the ways that the gateway has, but not
// past ctx and not for longer than was asked for. What is left then is cut off, and told.
func (d *daemon) drain(ctx context.Context, part func(context.Context) (busy int)) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(d.options.drain)*time.Second)
	defer cancel()
	if busy := part(ctx); busy > 0 {
		d.log.Warn().Int("sessions", busy).Msg("calls in flight are cut off")
	}
	d.gateway.EndSessions(func(string) bool { return true })
}

// door are the tokens that are asked for at the address; nil for none.
func (d *daemon) door() *adminapi.Tokens {
	if d.options.noAuth {
		return nil
	}
	return d.tokens
}

// listen opens the socket and the address, and says where they are.
func (d *daemon) listen() (socket, tcp net.Listener, err error) {
	if socket, err = adminapi.ListenSocket(d.places.Socket); err != nil {
		return nil, nil, err
	}
	tcp, err = net.Listen("tcp", d.options.listen)
	if err != nil {
		socket.Close()
		os.Remove(d.places.Socket)
		return nil, nil, fmt.Errorf("listening on %s: %w; choose another address with --listen", d.options.listen, err)
	}
	run := runFile{
		PID: os.Getpid(), Address: tcp.Addr().String(), Socket: d.places.Socket, StartedAt: time.Now().UTC(),
	}
	data, err := json.MarshalIndent(run, "", "  ")
	if err == nil {
		err = atomicfile.Write(runFilePath(d.places), append(data, '\n'))
	}
	if err != nil {
		socket.Close()
		tcp.Close()
		os.Remove(d.places.Socket)
		return nil, nil, fmt.Errorf("writing run.json: %w", err)
	}
	return socket, tcp, nil
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
func (d *daemon) greet(address string) {
	scheme := "http"
	if d.options.certFile != "" {
		scheme = "https"
	}
	d.log.Info().Str("url", scheme+"://"+address+"/mcp").Str("socket", d.places.Socket).Msg("serving")
	if !d.options.onLoopback() && d.options.certFile == "" {
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

// attend reloads on SIGHUP and when a file changes, ends the sessions and
// streams of tokens that were revoked, and returns when ctx ends or a listener breaks.
func (d *daemon) attend(ctx context.Context, server *adminapi.Server) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	defer d.follow(ctx)()
	revoked := time.NewTicker(time.Second)
	defer revoked.Stop()
	for {
		select {
		case <-hangup:
			_ = d.reload(ctx) // it has said what is wrong
		case <-revoked.C:
			whose := d.tokens.Revoked()
			d.gateway.EndSessions(whose)
			server.EndStreams(whose)
		case err := <-server.Failed():
			return err
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errInterrupted) {
				return context.Cause(ctx)
			}
			return nil
		}
	}
}
