// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// selector is the first argument by which Main knows that it is to serve.
const selector = "garra-misbehave"

// The only flags of the workers that the server starts: one that never ends, and one
// that ends at once.
const (
	idle  = "--idle"
	brief = "--brief"
)

// Command returns the file and the arguments, argv[0] not included, that start
// the server with some flags: the running test binary, whose TestMain calls
// [Main].
func Command(flags ...string) (path string, args []string) {
	path, err := os.Executable()
	if err != nil {
		panic("misbehave: finding the test binary: " + err.Error())
	}
	return path, append([]string{selector}, flags...)
}

// Main turns a process that [Command] started into the server and doesn't
// return then; in any other process it returns at once.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != selector {
		return
	}
	if len(os.Args) == 3 && os.Args[2] == idle {
		forever()
	}
	if len(os.Args) == 3 && os.Args[2] == brief {
		exit(0)
	}
	opts, err := parseOptions(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "misbehave:", err)
		exit(2)
	}
	if err := begin(opts); err != nil {
		fmt.Fprintln(os.Stderr, "misbehave:", err)
		exit(2)
	}
	newServer(opts, os.Stdin, os.Stdout, os.Stderr).serve()
	exit(finish(opts))
}

// begin does what the flags say of the time before the first message.
func begin(opts *options) error {
	if err := noteStart(opts.noteStart); err != nil {
		return err
	}
	if opts.exitAtStart {
		exit(opts.exitCode)
	}
	if opts.traceback {
		fmt.Fprint(os.Stderr, traceback)
		exit(1)
	}
	if opts.ignoreTerm {
		// Not signal.Ignore, which the workers would inherit.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	}
	if opts.exitAfter > 0 {
		time.AfterFunc(opts.exitAfter, func() { exit(opts.exitCode) })
	}
	if err := dumpEnv(opts.envDump); err != nil {
		return err
	}
	if err := startWorker(opts.forkWorker, false); err != nil {
		return err
	}
	if err := startWorker(opts.setsidWorker, true); err != nil {
		return err
	}
	if err := startZombies(opts.zombies); err != nil {
		return err
	}
	if opts.spin {
		spin()
	}
	return nil
}

// traceback is what a Python server leaves when a package is missing.
const traceback = `Traceback (most recent call last):
  File "server.py", line 1, in <module>
    import mcp
ModuleNotFoundError: No module named 'mcp'
`

// noteStart appends this process's id to a file.
func noteStart(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, os.Getpid())
	return errors.Join(err, f.Close())
}

func dumpEnv(file string) error {
	if file == "" {
		return nil
	}
	var text bytes.Buffer
	for _, entry := range os.Environ() {
		text.WriteString(entry + "\x00")
	}
	return os.WriteFile(file, text.Bytes(), 0o600)
}

// finish is the end of the input. It returns the exit code, if it returns.
func finish(opts *options) int {
	if opts.eofMarker != "" {
		if err := os.WriteFile(opts.eofMarker, []byte("clean exit\n"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "misbehave:", err)
			return 2
		}
	}
	if opts.ignoreEOF {
		forever()
	}
	return opts.exitCode
}

// forever blocks in a way that the runtime doesn't take for a deadlock.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// spin burns a core.
func spin() {
	for n := uint(0); ; n++ {
	}
}

// exit ends the process at once. What os.Exit runs before, in a binary with the
// race detector, sleeps for a second.
func exit(code int) { syscall.Exit(code) }

// flood returns n bytes of lines.
func flood(n int) []byte {
	const line = "the quick brown fox jumps over the lazy dog; nobody reads this.\n" // 64 bytes
	return []byte(strings.Repeat(line, n/len(line)+1)[:n])
}
