// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// openPipe starts an MCP server and begins a session on its standard input and
// output. One caller has the pipe to itself; several share it, with a goroutine
// that hands out what comes.
func (p program) openPipe(ctx context.Context, callers int) (*session, error) {
	s, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	c := &pipeCaller{in: s.in, lines: newLineReader(s.out)}
	if _, err = c.call("initialize", initialize); err == nil {
		_, err = io.WriteString(s.in, initialized+"\n")
	}
	if err != nil {
		s.stop()
		return nil, s.explain(fmt.Errorf("beginning a session with %s: %w", p, err))
	}
	opened := &session{process: s, close: s.stop, callers: []caller{c}}
	if callers > 1 {
		opened.callers = c.share(callers)
	}
	return opened, nil
}

// A pipeCaller is the one caller on a pipe.
type pipeCaller struct {
	in    io.Writer
	lines *lineReader
	frame []byte
	id    int
}

func (c *pipeCaller) call(method, params string) ([]byte, error) {
	c.id++
	c.frame = append(appendRequest(c.frame[:0], c.id, method, params), '\n')
	if _, err := c.in.Write(c.frame); err != nil {
		return nil, fmt.Errorf("writing request %d: %w", c.id, err)
	}
	for {
		line, err := c.lines.next()
		if err != nil {
			return nil, fmt.Errorf("reading the answer to request %d: %w", c.id, err)
		}
		if answerID(line) >= 0 { // else a notification
			return line, check(line, c.id)
		}
	}
}

// share returns callers that use the pipe together from now on.
func (c *pipeCaller) share(callers int) []caller {
	shared := &sharedPipe{in: c.in, answers: newInbox(), id: c.id}
	// Ends with the process, for which the session's close waits.
	go shared.read(c.lines)
	list := make([]caller, callers)
	for i := range list {
		list[i] = &pipeSharer{pipe: shared, waiter: waiter{ready: make(chan struct{}, 1)}}
	}
	return list
}

// A sharedPipe is a pipe that several use.
type sharedPipe struct {
	answers *inbox

	mu sync.Mutex // guards in and id
	in io.Writer
	id int
}

// read hands out answers until there are no more.
func (p *sharedPipe) read(lines *lineReader) {
	for {
		line, err := lines.next()
		if err != nil {
			p.answers.fail(err)
			return
		}
		p.answers.deliver(line)
	}
}

// write writes whole lines.
func (p *sharedPipe) write(lines []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.in.Write(lines); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// A pipeSharer is one of the callers on a shared pipe.
type pipeSharer struct {
	pipe   *sharedPipe
	waiter waiter
	frame  []byte
}

func (c *pipeSharer) call(method, params string) ([]byte, error) {
	p := c.pipe
	p.mu.Lock()
	p.id++
	id := p.id
	c.frame = append(appendRequest(c.frame[:0], id, method, params), '\n')
	p.answers.expect(id, &c.waiter)
	_, err := p.in.Write(c.frame)
	p.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("writing request %d: %w", id, err)
	}
	return p.answers.await(id, &c.waiter)
}
