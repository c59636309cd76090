// SPDX-License-Identifier: Apache-2.0

// Package stores gets secrets from where they are kept besides the vault: a
// password manager's command prints one, or the keyring of the operating system
// has it. Commands run without a shell, in a clean environment, for a bounded time.
package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

const (
	// keep is how long a secret is not asked for again: a server at a url needs it
	// for each request.
	keep = time.Minute
	// maxSecret bounds what a command may print, in bytes.
	maxSecret = 64 << 10
	// maxComplaint bounds what of a command's standard error is quoted.
	maxComplaint = 200
	// place stands for the key in a command.
	place = "{key}"
)

// An Error is why a store has no secret.
type Error struct {
	Store, Key string
	Message    string
	Fix        string
	Cause      error
}

// Error says which store it is and what happened.
func (e *Error) Error() string { return fmt.Sprintf("the store %q %s", e.Store, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Advice says what can be done.
func (e *Error) Advice() string { return e.Fix }

// A Store is one store. It is safe for concurrent use.
type Store struct {
	name    string
	command []string
	timeout time.Duration
	env     []string

	mu      sync.Mutex         // guards both below
	kept    map[string]value   // by key
	flights map[string]*flight // by key
}

// A value is a secret that was got a moment ago.
type value struct {
	secret *vault.Secret
	until  time.Time
}

// New returns the store that a configuration describes. Its commands get a few
// variables of env, which is garra's own environment.
func New(of mcpconfig.Store, env []string) (*Store, error) {
	s := &Store{
		name: of.Name, command: of.Command, timeout: of.Timeout,
		kept: make(map[string]value), flights: make(map[string]*flight),
	}
	if of.Invalid {
		return nil, &Error{
			Store: of.Name, Message: "is not valid in config.yml",
			Fix: "mend it; `garra config check` says what is wrong",
		}
	}
	if of.Keyring != "" {
		if s.command = keyring(runtime.GOOS, of.Keyring); s.command == nil {
			return nil, &Error{
				Store: of.Name, Message: "is a keyring, which garra can't ask on this system",
				Fix: "give the store a command that prints the secret",
			}
		}
	}
	for _, line := range env {
		if name, _, _ := strings.Cut(line, "="); passed(name) {
			s.env = append(s.env, line)
		}
	}
	return s, nil
}

// keyring is the command that asks the keyring of a system.
func keyring(goos, service string) []string {
	switch goos {
	case "darwin":
		return []string{"security", "find-generic-password", "-w", "-s", service, "-a", place}
	case "linux", "freebsd", "openbsd", "netbsd":
		return []string{"secret-tool", "lookup", "service", service, "account", place}
	}
	return nil
}

// passed reports whether a command gets a variable: what a program needs to run and
// to find its agent, and what password managers are set up with.
func passed(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
		"DBUS_SESSION_BUS_ADDRESS", "GNUPGHOME", "GPG_TTY", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA":
		return true
	}
	for _, prefix := range []string{"OP_", "VAULT_", "BW_", "PASSWORD_STORE_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// A flight is a command that runs for a key.
type flight struct {
	done chan struct{} // closed when it has ended
	err  error         // written before that: what others who wait for it get, too; nil to look again
}

// Secret returns the secret of a key. Who asks for the same key at the same time shares
// one run of the command, and its failure. Its error is an *[Error], or the cause of ctx.
func (s *Store) Secret(ctx context.Context, key string) (string, error) {
	for {
		text, f, mine := s.look(key)
		switch {
		case mine:
			return s.fetch(ctx, key, f)
		case f == nil:
			return text, nil
		}
		select {
		case <-f.done:
			if f.err != nil {
				return "", f.err
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// look returns what is kept of a key, or else the flight that gets it, which is the
// caller's own when nobody else has begun one.
func (s *Store) look(key string) (text string, f *flight, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.kept[key]; ok && time.Now().Before(v.until) {
		if text, err := v.secret.Reveal(); err == nil {
			return text, nil, false
		}
	}
	if f, ok := s.flights[key]; ok {
		return "", f, false
	}
	f = &flight{done: make(chan struct{})}
	s.flights[key] = f
	return "", f, true
}

// fetch gets a secret, and ends its flight.
func (s *Store) fetch(ctx context.Context, key string, f *flight) (text string, err error) {
	out, err := s.run(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, key)
	defer close(f.done)
	if err != nil {
		if ctx.Err() == nil { // else it says nothing of the store
			f.err = err
		}
		return "", err
	}
	text = string(out)
	if sealed, err := vault.Seal(out); err == nil { // else it is asked for each time
		s.kept[key] = value{sealed, time.Now().Add(keep)}
	}
	return text, nil
}

// run asks for a secret.
func (s *Store) run(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, "-") || strings.ContainsFunc(key, unicode.IsControl) {
		return nil, &Error{
			Store: s.name, Key: key, Message: "is asked for a key that a program would misread",
			Fix: "write a key that doesn't begin with - and has no control characters",
		}
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	argv := s.argv(key)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.WaitDelay = append([]string{}, s.env...), time.Second
	stdout, stderr := &limited{most: maxSecret}, &limited{most: 16 << 10}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	alone(cmd)
	err := cmd.Run()
	endAll(cmd)
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and something that it started holds its output
		err = nil
	}
	failure := &Error{
		Store: s.name, Key: key, Cause: err,
		Fix: "run `" + strings.Join(s.argv("KEY"), " ") + "` in a terminal to see what it says",
	}
	switch {
	case caller.Err() != nil:
		failure.Message, failure.Cause = "was not waited for", context.Cause(caller)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failure.Message, failure.Cause = fmt.Sprintf("did not answer within %s", s.timeout), ctx.Err()
	case cmd.Process == nil && err != nil:
		failure.Message = fmt.Sprintf("needs %q, which can't be run: %v", argv[0], err)
		failure.Fix = "install it, or write its whole path as the store's command"
	case err != nil:
		failure.Message = fmt.Sprintf("has no %q: %s", key, complaint(err, stderr.kept))
	case stdout.over:
		failure.Message = fmt.Sprintf("has more than %d bytes for %q", maxSecret, key)
	case len(trimEnd(stdout.kept)) == 0:
		failure.Message = fmt.Sprintf("has an empty value for %q", key)
	default:
		return trimEnd(stdout.kept), nil
	}
	clear(stdout.kept)
	return nil, failure
}

// argv is the command for one key.
func (s *Store) argv(key string) []string {
	argv, placed := make([]string, len(s.command)), false
	for i, word := range s.command {
		argv[i] = word
		if i > 0 && strings.Contains(word, place) {
			argv[i], placed = strings.ReplaceAll(word, place, key), true
		}
	}
	if !placed {
		argv = append(argv, key)
	}
	return argv
}

// trimEnd takes off the line end that programs put behind what they print.
func trimEnd(out []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(out, []byte("\n")), []byte("\r"))
}

// complaint is the last line that a command wrote to standard error, or how it ended.
func complaint(err error, stderr []byte) string {
	lines := strings.Split(strings.TrimSpace(string(stderr)), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" {
		return err.Error()
	}
	if len(last) > maxComplaint {
		last = last[:maxComplaint] + "…"
	}
	return fmt.Sprintf("%q", last)
}

// limited keeps as much as it may of what is written. It has no method but Write:
// io.Copy would prefer others, which know no limit.
type limited struct {
	kept []byte
	most int
	over bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	room := min(len(p), l.most-len(l.kept))
	l.over = l.over || room < len(p)
	l.kept = append(l.kept, p[:room]...)
	return len(p), nil
}
