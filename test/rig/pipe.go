// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
)

// ErrEnded is the error of a request whose answer can't come any more.
var ErrEnded = errors.New("the other side ended before it answered")

// A Pipe is a conversation over the standard input and output of a process.
type Pipe struct {
	in     io.WriteCloser
	cmd    *exec.Cmd
	Ended  chan struct{} // closed when its output has ended
	Stderr *Transcript

	mu      sync.Mutex // guards all below, and writing
	last    uint64
	answers map[protocol.ID]chan *protocol.Message
	noted   map[protocol.ID]func(*protocol.Message) // who wants to know of notifications
	lines   int                                     // that were messages
	noise   []string                                // lines that were none
}

// StartPipe starts a process to talk to. It is killed at the end of the test if
// nobody hung up before.
func StartPipe(t testing.TB, cmd *exec.Cmd) *Pipe {
	t.Helper()
	p, err := NewPipe(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // gone is as good
			<-p.Ended
			_ = cmd.Wait() // killed
		}
	})
	return p
}

// NewPipe starts a process to talk to, until somebody hangs up.
func NewPipe(cmd *exec.Cmd) (*Pipe, error) {
	p := &Pipe{
		cmd: cmd, Ended: make(chan struct{}), Stderr: &Transcript{},
		answers: make(map[protocol.ID]chan *protocol.Message), noted: make(map[protocol.ID]func(*protocol.Message)),
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	cmd.Stderr = p.Stderr
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out) // ends with the output; hangUp and the cleanup wait for it
	return p, nil
}

// read takes messages until there are no more.
func (p *Pipe) read(out io.Reader) {
	defer close(p.Ended)
	frames := protocol.NewReader(out, 0)
	for {
		frame, err := frames.Next()
		if err != nil {
			return
		}
		p.take(frame)
	}
}

func (p *Pipe) take(frame []byte) {
	m, err := protocol.Parse(frame)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.noise = append(p.noise, string(frame))
		return
	case m.IsResponse() && p.answers[m.ID] != nil:
		p.answers[m.ID] <- m // has room for it
		delete(p.answers, m.ID)
		delete(p.noted, m.ID)
	case m.IsResponse():
		p.noise = append(p.noise, "an answer to nothing: "+string(frame))
	case m.IsRequest():
		refusal := protocol.NewError(m.ID, protocol.Errorf(protocol.CodeMethodNotFound, "this client can't"))
		_, _ = p.in.Write(append(refusal.Append(nil), '\n')) // its end shows here as the end of the output
	}
	if m.IsNotification() {
		for _, noted := range p.noted {
			noted(m)
		}
	}
	p.lines++
}

// Ask implements conversation.
func (p *Pipe) Ask(method, params string, noted func()) (*protocol.Message, error) {
	var each func(*protocol.Message)
	if noted != nil {
		each = func(*protocol.Message) { noted() }
	}
	_, answer, err := p.Begin(method, params, each)
	if err != nil {
		return nil, err
	}
	return p.await(method, answer)
}

// Begin sends a request, whose answer comes to the channel.
func (p *Pipe) Begin(method, params string, noted func(*protocol.Message)) (
	id protocol.ID, answer chan *protocol.Message, err error,
) {
	answer = make(chan *protocol.Message, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	id = protocol.NumberID(p.last)
	p.answers[id] = answer
	if noted != nil {
		p.noted[id] = noted
	}
	_, err = fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params)
	return id, answer, err
}

// Forget is for a request that will not be answered. If it is, that is noise.
func (p *Pipe) Forget(id protocol.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answers, id)
	delete(p.noted, id)
}

// await waits for the answer to a request.
func (p *Pipe) await(method string, answer <-chan *protocol.Message) (*protocol.Message, error) {
	select {
	case m := <-answer:
		return m, nil
	case <-p.Ended:
	case <-time.After(Patience):
		return nil, fmt.Errorf("%s: no answer within %s", method, Patience)
	}
	select {
	case m := <-answer: // it was the last thing that came
		return m, nil
	default:
		return nil, fmt.Errorf("%s: %w; standard error:\n%s", method, ErrEnded, p.Stderr)
	}
}

// Tell implements conversation.
func (p *Pipe) Tell(method, params string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","method":%q,"params":%s}`+"\n", method, params)
	return err
}

// HangUp implements conversation: it closes the process's input and waits for
// its end.
func (p *Pipe) HangUp() error {
	p.in.Close()
	select {
	case <-p.Ended:
		return p.cmd.Wait()
	case <-time.After(Patience):
		return fmt.Errorf("%q is still there %s after the end of its input", p.cmd.Args, Patience)
	}
}

// Heard returns how many messages came, and what was none.
func (p *Pipe) Heard() (messages int, noise []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines, slices.Clone(p.noise)
}

// Stdio starts `garra stdio` and makes the handshake.
func (h *Home) Stdio(flags ...string) (*Client, *Pipe) {
	h.T.Helper()
	p := StartPipe(h.T, h.Command(append([]string{"stdio"}, flags...)...))
	return Greet(h.T, p), p
}
