// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/handover"
	"github.com/garraia/garra/internal/place"
)

// doors are where a gateway listens.
type doors struct {
	socket    net.Listener   // for commands of its user
	addresses []net.Listener // for clients
}

func (d *doors) close() {
	closeAll(d.addresses)
	d.socket.Close()
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// listen takes the doors of the gateway whose place this one takes, else opens its own,
// and says where they are.
func (d *daemon) listen(taking *handover.Taking) (opened *doors, err error) {
	if taking != nil {
		opened, err = inherited(&taking.Estate)
	} else {
		opened, err = d.openDoors()
	}
	if err == nil && d.options.noAuth && !onLoopback(opened.addresses) {
		opened.close()
		err = errors.New("--no-auth works on loopback only, and one of the sockets that were handed over is elsewhere")
	}
	return opened, err
}

// openDoors opens the socket and the addresses.
func (d *daemon) openDoors() (*doors, error) {
	socket, err := adminapi.ListenSocket(d.places.Socket)
	if err != nil {
		return nil, err
	}
	opened := &doors{socket: socket}
	if opened.addresses, err = d.listenAtAddresses(); err != nil {
		socket.Close()
		os.Remove(d.places.Socket)
		return nil, err
	}
	return opened, nil
}

// listenAtAddresses takes the sockets that a service manager has opened, else opens the
// one of --listen.
func (d *daemon) listenAtAddresses() ([]net.Listener, error) {
	if len(d.manager.Sockets) == 0 {
		l, err := net.Listen("tcp", d.options.listen)
		if err != nil {
			return nil, fmt.Errorf("listening on %s: %w; choose another address with --listen", d.options.listen, err)
		}
		return []net.Listener{l}, nil
	}
	return asListeners(d.manager.Sockets)
}

// asListeners makes listeners of sockets that listen, all or none. The files are closed.
func asListeners(files []*os.File) (listeners []net.Listener, err error) {
	for _, file := range files {
		l, failed := net.FileListener(file) // a duplicate
		file.Close()
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s is no socket that takes connections: %w", file.Name(), failed))
			continue
		}
		listeners = append(listeners, l)
	}
	if err != nil {
		closeAll(listeners)
		return nil, err
	}
	return listeners, nil
}

// onLoopback reports whether only this machine reaches the addresses.
func onLoopback(listeners []net.Listener) bool {
	for _, l := range listeners {
		if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			return false
		}
	}
	return true
}

// loopbackHost reports whether a host that is to be listened on is this machine alone.
func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// url is where clients find the gateway.
func (d *daemon) url(address net.Addr) string {
	scheme := "http"
	if d.options.certFile != "" {
		scheme = "https"
	}
	if address.Network() == "unix" {
		return "unix:" + address.String()
	}
	return scheme + "://" + address.String() + "/mcp"
}

// A runFile tells others about the running gateway.
type runFile struct {
	PID       int       `json:"pid"`
	Address   string    `json:"address"`   // the first one
	Addresses []string  `json:"addresses"` // all
	Socket    string    `json:"socket"`
	StartedAt time.Time `json:"started_at"`
}

// tidy removes what says where the gateway is.
func (d *daemon) tidy() {
	os.Remove(runFilePath(d.places))
	os.Remove(d.places.Socket)
}

// writeRunFile says where the gateway is.
func (d *daemon) writeRunFile() error {
	run := runFile{PID: os.Getpid(), Socket: d.places.Socket, StartedAt: time.Now().UTC()}
	for _, l := range d.doors.addresses {
		run.Addresses = append(run.Addresses, l.Addr().String())
	}
	run.Address = run.Addresses[0]
	data, err := json.MarshalIndent(run, "", "  ")
	if err == nil {
		err = atomicfile.Write(runFilePath(d.places), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing run.json: %w", err)
	}
	return nil
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
