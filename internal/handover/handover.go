// SPDX-License-Identifier: Apache-2.0

// Package handover is how a gateway hands what it listens on to its successor, another
// process of the same user, over a connected Unix socket.
//
//	successor                       gateway
//	  Request  ─────────────────────▶
//	           ◀─────────────────────  offer, with descriptors (unix(7), SCM_RIGHTS)
//	  (starts; both can listen, only the gateway does)
//	  ready    ─────────────────────▶
//	                                   (stops listening)
//	           ◀─────────────────────  yours
//	  (listens)                        (finishes what it has begun, and ends)
//
// Until the successor is ready its end is noticed and changes nothing. A gateway that
// doesn't want to go on says so; one that just ends leaves everything to the successor,
// which has it already.
package handover

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// A Request is what a successor says of itself. A gateway goes only for one that serves
// the same configuration in the same way.
type Request struct {
	PID    int    `json:"pid"`
	RunDir string `json:"run_dir"`
	Listen string `json:"listen,omitempty"` // where it wants to listen; empty for wherever the gateway does
	TLS    bool   `json:"tls"`
}

// An Estate is what a successor gets.
type Estate struct {
	Lock      *os.File   // of the run folder
	Socket    *os.File   // a listener, for commands
	Addresses []*os.File // listeners, for clients
	Path      string     // of the socket
}

func (e *Estate) files() []*os.File { return append([]*os.File{e.Lock, e.Socket}, e.Addresses...) }

// Close closes what is in it.
func (e *Estate) Close() {
	for _, file := range e.files() {
		file.Close()
	}
}

// A word is a message of either side.
type word struct {
	Ready   bool     `json:"ready,omitempty"`
	Yours   bool     `json:"yours,omitempty"`
	Refused string   `json:"refused,omitempty"`
	Path    string   `json:"path,omitempty"`
	Names   []string `json:"names,omitempty"` // of the descriptors that come with it
}

const (
	maxFiles    = 64 // that go with one message
	maxWord     = 64 << 10
	sendTimeout = 10 * time.Second // for the other side to read a word
	askTimeout  = 10 * time.Second // for the other side to say what it can say at once
)

// errGone is that the other side has closed the connection.
var errGone = errors.New("the other process has ended")

// A side is one end of the connection.
type side struct {
	conn *net.UnixConn
	in   *bufio.Reader
}

func (s *side) say(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	s.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, err = s.conn.Write(append(line, '\n'))
	return err
}

func (s *side) hear(value any, within time.Duration) error {
	s.conn.SetReadDeadline(time.Now().Add(within))
	line, err := s.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), isReset(err):
		return errGone
	case err != nil:
		return err
	}
	return json.Unmarshal(line, value)
}

// A Giving is the gateway's side.
type Giving struct {
	side
	Request Request
}

// Give begins to hand over to whoever is at the other end of a connection, of which
// something may have been read already.
func Give(conn *net.UnixConn, in io.Reader) (*Giving, error) {
	g := &Giving{side: side{conn, bufio.NewReaderSize(in, maxWord)}}
	if err := g.hear(&g.Request, askTimeout); err != nil {
		return nil, fmt.Errorf("hearing what the successor wants: %w", err)
	}
	return g, nil
}

// Refuse says why the gateway goes on. There is nothing to do about an error: the
// successor is gone then.
func (g *Giving) Refuse(why error) { _ = g.say(word{Refused: why.Error()}) }

// Offer sends an estate, and waits until the successor is ready to use it, or is gone.
func (g *Giving) Offer(e *Estate, within time.Duration) error {
	offer := word{Path: e.Path}
	for _, file := range e.files() {
		offer.Names = append(offer.Names, file.Name())
	}
	line, err := json.Marshal(offer)
	if err != nil {
		return err
	}
	g.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err := sendFiles(g.conn, append(line, '\n'), e.files()); err != nil {
		return fmt.Errorf("sending what this gateway listens on: %w", err)
	}
	var answer word
	if err := g.hear(&answer, within); err != nil {
		return fmt.Errorf("waiting for the successor: %w", err)
	}
	if !answer.Ready {
		return errors.New("the successor says something else than that it is ready")
	}
	return nil
}

// Done tells the successor that it is alone now. One that doesn't hear it sees the end of
// the connection, which says the same.
func (g *Giving) Done() { _ = g.say(word{Yours: true}) }

// A Taking is the successor's side.
type Taking struct {
	side
	Estate Estate
}

// Take asks a gateway for what it has. The connection belongs to the Taking, unless there
// is an error.
func Take(conn *net.UnixConn, r Request) (*Taking, error) {
	t := &Taking{side: side{conn: conn}}
	if err := t.say(r); err != nil {
		return nil, fmt.Errorf("asking the gateway to hand over: %w", err)
	}
	conn.SetReadDeadline(time.Now().Add(askTimeout))
	line, files, err := receiveFiles(conn)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway to hand over: %w", err)
	}
	t.in = bufio.NewReaderSize(conn, maxWord)
	var offer word
	err = json.Unmarshal(line, &offer)
	switch {
	case err == nil && offer.Refused != "":
		err = fmt.Errorf("the gateway that runs does not hand over: %s", offer.Refused)
	case err == nil && (len(files) < 3 || len(files) != len(offer.Names)):
		err = fmt.Errorf("the gateway handed over %d descriptors, which can't be all", len(files))
	}
	if err != nil {
		for _, file := range files {
			file.Close()
		}
		return nil, err
	}
	t.Estate = Estate{Lock: files[0], Socket: files[1], Addresses: files[2:], Path: offer.Path}
	return t, nil
}

// Ready says that the successor can listen, and waits until the gateway doesn't. It is an
// error that the gateway goes on.
func (t *Taking) Ready() error {
	if err := t.say(word{Ready: true}); err != nil && !isReset(err) {
		return fmt.Errorf("telling the gateway to go: %w", err)
	}
	var answer word
	err := t.hear(&answer, askTimeout)
	switch {
	case errors.Is(err, errGone):
		return nil // it left everything here
	case err != nil:
		return fmt.Errorf("telling the gateway to go: %w", err)
	case answer.Refused != "":
		return fmt.Errorf("the gateway that runs goes on: %s", answer.Refused)
	case !answer.Yours:
		return errors.New("the gateway that runs says something else than that it goes")
	}
	return nil
}

// Close ends the connection. Before Ready that tells the gateway that nothing comes of it.
func (t *Taking) Close() { t.conn.Close() }
