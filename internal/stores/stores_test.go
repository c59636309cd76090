// SPDX-License-Identifier: Apache-2.0

//go:build unix

package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/mcpconfig"
)

// newStore returns a store whose command is a shell script; the key is its $1.
func newStore(t *testing.T, script string, env ...string) *Store {
	t.Helper()
	s, err := New(mcpconfig.Store{
		Name: "keep", Command: []string{"/bin/sh", "-c", script, "sh"}, Timeout: 30 * time.Second,
	}, append(env, "PATH="+os.Getenv("PATH")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused wants an error of a store without a secret, whose text and advice say something.
func refused(t *testing.T, s *Store, key string, says ...string) *Error {
	t.Helper()
	got, err := s.Secret(t.Context(), key)
	e, ok := errors.AsType[*Error](err)
	if got != "" || !ok || e.Key != key || e.Store != s.name || e.Advice() == "" {
		t.Fatalf("%q: got %q, %#v", key, got, err)
	}
	for _, part := range says {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q: %v lacks %q", key, e, part)
		}
	}
	return e
}

func TestWhereTheKeyGoes(t *testing.T) {
	tests := []struct {
		command, want []string
	}{
		{[]string{"pass", "show"}, []string{"pass", "show", "KEY"}},
		{[]string{"op", "read", "op:{key}"}, []string{"op", "read", "op:KEY"}},
		{[]string{"x", "{key}", "-f", "{key}/{key}"}, []string{"x", "KEY", "-f", "KEY/KEY"}},
		{[]string{"{key}"}, []string{"{key}", "KEY"}}, // a program is never taken from a reference
	}
	for _, test := range tests {
		s := &Store{command: test.command}
		if diff := cmp.Diff(test.want, s.argv("KEY")); diff != "" {
			t.Errorf("%q: %s", test.command, diff)
		}
	}
}

func TestKeyIsOneArgumentAndNoShell(t *testing.T) {
	s := newStore(t, `printf '%s/%s' "$#" "$1"`)
	for _, key := range []string{"plain", "a b", "$HOME `id`", "a;b|c>d", "//Private/GitHub/token?x=*"} {
		got, err := s.Secret(t.Context(), key)
		if want := "1/" + key; err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestOneLineEndIsNoPart(t *testing.T) {
	s := newStore(t, `printf "$1"`)
	for printed, want := range map[string]string{
		`a\n`: "a", `a\r\n`: "a", `a\n\n`: "a\n", ` a `: " a ", `a`: "a", `a\nb\n`: "a\nb",
	} {
		if got, err := s.Secret(t.Context(), printed); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", printed, got, err, want)
		}
	}
}

func TestKeysThatAProgramMisreads(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	s := newStore(t, "touch "+ran)
	for _, key := range []string{"-f", "--help", "a\nb", "a\x00b", "\x1b[2J"} {
		refused(t, s, key, `"keep"`, "misread")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command was run")
	}
}

func TestWhatACommandGets(t *testing.T) {
	s := newStore(t, "/usr/bin/env", "HOME=/h", "OP_ACCOUNT=o", "VAULT_ADDR=v", "BW_SESSION=b", "PASSWORD_STORE_DIR=p",
		"GNUPGHOME=g", "LANG=C", "SECRET=canary", "GARRAIA_CONFIG_DIR=canary", "LD_PRELOAD=canary", "AWS_SECRET=canary",
		"XOP_=canary", "VAULT=canary")
	got, err := s.Secret(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(got, "\n")
	for _, want := range []string{"HOME=/h", "OP_ACCOUNT=o", "VAULT_ADDR=v", "BW_SESSION=b", "GNUPGHOME=g", "LANG=C"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(got, "canary") {
		t.Errorf("it got more than it should: %s", got)
	}
	if s = newStore(t, "/usr/bin/env"); s.env == nil {
		t.Error("a command without variables would get all of garra's")
	}
}

func TestHowACommandFails(t *testing.T) {
	s := newStore(t, `case $1 in
	said) echo first >&2; echo >&2; echo '  "no such item"  ' >&2; echo >&2; exit 1 ;;
	silent) exit 3 ;;
	printed) echo not-a-secret; exit 1 ;;
	empty) ;;
	newline) echo ;;
	long) head -c 1000 /dev/zero | tr '\0' y >&2; exit 1 ;;
	killed) kill -KILL $$ ;;
	control) printf '\033[2Jx' >&2; exit 1 ;;
	esac`)
	e := refused(t, s, "said", `the store "keep" has no "said"`, `\"no such item\"`)
	if strings.Contains(e.Error(), "first") {
		t.Errorf("more than the last line: %v", e)
	}
	refused(t, s, "silent", "exit status 3")
	e = refused(t, s, "printed", "exit status 1")
	if strings.Contains(e.Error(), "not-a-secret") {
		t.Errorf("what it printed is quoted: %v", e)
	}
	refused(t, s, "empty", "empty value")
	refused(t, s, "newline", "empty value")
	refused(t, s, "killed", "killed")
	refused(t, s, "control", `\x1b`)
	if e = refused(t, s, "long"); len(e.Error()) > 2*maxComplaint {
		t.Errorf("%d bytes", len(e.Error()))
	}
	missing, err := New(mcpconfig.Store{Name: "m", Command: []string{"/no/such/program"}, Timeout: time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := refused(t, missing, "k", "/no/such/program"); !errors.Is(e, os.ErrNotExist) {
		t.Errorf("the cause is lost: %#v", e)
	}
}

func TestWhatACommandMayPrint(t *testing.T) {
	s := newStore(t, `head -c $1 /dev/zero | tr '\0' x`)
	if got, err := s.Secret(t.Context(), strconv.Itoa(maxSecret)); len(got) != maxSecret || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	refused(t, s, strconv.Itoa(maxSecret+1), "more than 65536 bytes")
	refused(t, newStore(t, `head -c 100000000 /dev/zero >&2; exit 1`), "flood")
}

func TestLimited(t *testing.T) {
	l := &limited{most: 3}
	for _, text := range []string{"ab", "cd", "", "e"} {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if string(l.kept) != "abc" || !l.over {
		t.Errorf("%q %v", l.kept, l.over)
	}
}

// What a command has started ends with it when its time is over.
func TestTimeout(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	s := newStore(t, `sleep 1000 & echo $! > `+file+`; wait`)
	s.timeout = 500 * time.Millisecond
	e := refused(t, s, "key", "did not answer within 500ms")
	if !errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("the cause is lost: %#v", e)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return gone(pid) })
}

// gone reports whether a process is no more, or waits to be collected.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return strings.Contains(string(stat), ") Z ")
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it never happened")
		}
	}
}

// A caller that gives up is no failure of the store, and keeps nothing.
func TestCallerGivesUp(t *testing.T) {
	s := newStore(t, "sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := s.Secret(ctx, "key"); got != "" || err == nil || len(s.kept) != 0 {
		t.Errorf("%q, %v, %v", got, err, s.kept)
	}
}

func TestASecretIsKeptForAWhile(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	s := newStore(t, `echo $1 >> `+count+`; echo value-of-$1`)
	runs := func() int {
		text, _ := os.ReadFile(count) // none is no runs
		return strings.Count(string(text), "\n")
	}
	get := func(key string) {
		t.Helper()
		if got, err := s.Secret(t.Context(), key); got != "value-of-"+key || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { get("a") })
	}
	all.Wait()
	if runs() != 1 {
		t.Errorf("%d runs for one key", runs())
	}
	if get("b"); runs() != 2 {
		t.Errorf("%d runs for two keys", runs())
	}
	old := s.kept["a"]
	s.kept["a"] = value{old.secret, time.Now()}
	if get("a"); runs() != 3 {
		t.Errorf("%d runs when its time is over", runs())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nobody waits"))
	if _, err := s.Secret(ctx, "c"); err == nil || strings.Contains(err.Error(), "did not answer") {
		t.Errorf("of a caller that has left: %v", err)
	}
	get("c")
}

func TestAFailureIsNotKept(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	s := newStore(t, `test -e `+ready+` || exit 1; echo value`)
	refused(t, s, "key")
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Secret(t.Context(), "key"); got != "value" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestKeyring(t *testing.T) {
	for goos, program := range map[string]string{
		"linux": "secret-tool", "darwin": "security", "windows": "", "plan9": "",
	} {
		command := keyring(goos, "garra")
		if program == "" {
			if command != nil {
				t.Errorf("%s: %q", goos, command)
			}
			continue
		}
		s := &Store{command: command}
		argv := s.argv("KEY")
		if argv[0] != program || !slices.Contains(argv, "garra") || !slices.Contains(argv, "KEY") {
			t.Errorf("%s: %q", goos, argv)
		}
	}
}
