// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
)

// relayPipe is the least gateway between two pipes: lines are passed on as they
// come, and looked at for their end only.
func relayPipe(p program) error {
	s, err := p.start(context.Background())
	if err != nil {
		return err
	}
	defer s.stop()
	ended := make(chan error, 1)
	// Ends with the client's input; a child that ends first leaves it behind.
	go func() {
		err := passLines(s.in, newLineReader(os.Stdin))
		s.in.Close()
		ended <- err
	}()
	if err := passLines(os.Stdout, newLineReader(s.out)); err != nil {
		return err
	}
	return <-ended
}

// passLines writes each line that it reads.
func passLines(out io.Writer, lines *lineReader) error {
	var line []byte
	for {
		text, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		line = append(append(line[:0], text...), '\n')
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
}

// relayHTTP returns the least gateway from net/http to a pipe: bodies are passed
// on as they are, and answers found by the ids that clients gave.
func relayHTTP(p program) (http.HandlerFunc, error) {
	s, err := p.start(context.Background())
	if err != nil {
		return nil, err
	}
	pipe := &sharedPipe{in: s.in, answers: newInbox()}
	// Ends with the child, which ends with this process.
	go pipe.read(newLineReader(s.out))
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client is gone
		}
		id := answerID(body)
		if id < 0 {
			_ = pipe.write(append(body, '\n')) // the next request says so
			w.WriteHeader(http.StatusAccepted)
			return
		}
		waiter := waiter{ready: make(chan struct{}, 1)}
		pipe.answers.expect(id, &waiter)
		if err = pipe.write(append(body, '\n')); err == nil {
			_, err = pipe.answers.await(id, &waiter)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		writeAnswer(w, waiter.answer)
	}, nil
}
