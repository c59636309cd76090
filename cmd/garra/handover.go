// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/handover"
	"github.com/garraia/garra/internal/place"
)

const (
	successorWait = 5 * time.Minute       // for a successor to be ready
	serversWait   = 2 * time.Minute       // for its servers to have been tried
	serversEvery  = 50 * time.Millisecond // how often that is looked at
)

// A succession is a successor that is ready to take this gateway's place.
type succession struct {
	giving *handover.Giving
	over   chan struct{} // closed when it has been told
}

// inherit takes what the gateway that runs for the configuration listens on, with its
// lock. It returns nil when none runs.
func (g *globals) inherit(ctx context.Context, places place.Places, o *serveOptions) (*handover.Taking, error) {
	client, err := g.running(ctx)
	if client == nil || err != nil {
		return nil, err
	}
	conn, err := client.Handover(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway that runs to hand over: %w", err)
	}
	request := handover.Request{PID: os.Getpid(), RunDir: places.RunDir, TLS: o.certFile != ""}
	if o.elsewhere {
		request.Listen = o.listen
	}
	taking, err := handover.Take(conn, request)
	if err != nil {
		conn.Close()
	}
	return taking, err
}

// inherited are the doors that another gateway has handed over.
func inherited(estate *handover.Estate) (*doors, error) {
	listeners, err := asListeners(append([]*os.File{estate.Socket}, estate.Addresses...))
	if err != nil {
		return nil, err
	}
	return &doors{socket: adminapi.OfPeers(listeners[0]), addresses: listeners[1:]}, nil
}

// succeed waits until the servers have been tried, so that no client waits for them that
// would not have waited for the gateway's before, and then has that go.
func (d *daemon) succeed(ctx context.Context, taking *handover.Taking) error {
	limit, cancel := context.WithTimeout(ctx, serversWait)
	defer cancel()
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for len(d.gateway.Waiting()) > 0 && limit.Err() == nil {
		select {
		case <-tick.C:
		case <-limit.Done():
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return taking.Ready()
}

// handOver serves a successor: it is given what this gateway listens on and, when it is
// ready, this gateway's place. Whatever goes wrong before that, this gateway goes on.
func (d *daemon) handOver(conn *net.UnixConn, in io.Reader) {
	giving, err := handover.Give(conn, in)
	if err != nil {
		return // it can't be told either
	}
	log := d.log.With().Int("successor", giving.Request.PID).Logger()
	if err := d.mayHandOver(&giving.Request); err != nil {
		log.Warn().Err(err).Msg("not handing over")
		giving.Refuse(err)
		return
	}
	defer d.handing.Store(false)
	estate, err := d.estate()
	if err != nil {
		log.Error().Err(err).Msg("not handing over")
		giving.Refuse(err)
		return
	}
	log.Info().Msg("a successor starts")
	refuse := context.AfterFunc(d.life, func() { giving.Refuse(errors.New("it was told to end meanwhile")) })
	err = giving.Offer(estate, successorWait)
	estate.Close()
	switch {
	case !refuse(): // it has been said
	case err != nil:
		log.Error().Err(err).Msg("the successor did not come up; this gateway goes on")
		giving.Refuse(err)
	default:
		s := &succession{giving, make(chan struct{})}
		select {
		case d.successors <- s:
			<-s.over
		case <-d.life.Done():
			giving.Refuse(errors.New("it was told to end meanwhile"))
		}
	}
}

// mayHandOver says why a successor gets nothing; without an error no other gets anything
// meanwhile.
func (d *daemon) mayHandOver(r *handover.Request) error {
	ours, err := os.Stat(d.places.RunDir)
	theirs, theirErr := os.Stat(r.RunDir)
	switch {
	case err != nil || theirErr != nil || !os.SameFile(ours, theirs):
		return errors.New("it is the gateway of another configuration folder")
	case d.began.pid != os.Getpid():
		return errors.New("it is process 1 of a container, which ends with it; start another container")
	case r.Listen != "" && r.Listen != d.options.listen:
		return fmt.Errorf("it listens on %s; leave out --listen, or end it first", d.options.listen)
	case r.TLS != (d.options.certFile != ""):
		return errors.New("it serves with TLS, or without, and the successor does the opposite; end it first")
	case !d.handing.CompareAndSwap(false, true):
		return errors.New("another successor is starting")
	}
	return nil
}

// estate is what a successor gets.
func (d *daemon) estate() (*handover.Estate, error) {
	var files []*os.File
	for i, of := range append([]any{d.lock, d.doors.socket}, asAny(d.doors.addresses)...) {
		file, err := handover.FileOf(of, fmt.Sprintf("descriptor %d of the gateway", i+1))
		if err != nil {
			for _, file := range files {
				file.Close()
			}
			return nil, fmt.Errorf("copying what this gateway listens on: %w", err)
		}
		files = append(files, file)
	}
	return &handover.Estate{Lock: files[0], Socket: files[1], Addresses: files[2:], Path: d.places.Socket}, nil
}

func asAny(listeners []net.Listener) (list []any) {
	for _, l := range listeners {
		list = append(list, l)
	}
	return list
}

// startSuccessor starts the program that is installed now in the way that this one was
// started, to take its place: with what was taken out of the environment.
func (d *daemon) startSuccessor() {
	path, err := os.Executable()
	if err != nil {
		d.log.Error().Err(err).Msg("the program to hand over to is not known")
		return
	}
	args := slices.Clone(d.began.args)
	if !slices.Contains(args, "--replace") {
		args = append(args, "--replace")
	}
	env := append(os.Environ(), d.manager.Environ()...)
	if d.began.given != nil {
		env = append(env, passphraseVariable+"="+string(d.began.given))
	}
	ended, err := handover.Start(path, append(os.Args[:1:1], args...), env)
	if err != nil {
		d.log.Error().Err(err).Msg("the successor could not be started; this gateway goes on")
		return
	}
	go func() { // ends with the successor; nobody waits for it, since this process may end first
		if err := <-ended; err != nil {
			d.log.Error().Err(err).Msg("the successor has ended; this gateway goes on")
		}
	}()
}
