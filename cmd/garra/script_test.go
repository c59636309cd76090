// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/internal/pidone"
	"github.com/garraia/garra/sandbox"
)

// TestMain makes the test binary whatever a script runs: garra, the guardians
// of its servers, and the server of internal/misbehave.
func TestMain(m *testing.M) {
	sandbox.Main()
	misbehave.Main()
	testscript.Main(m, map[string]func(){
		"garra": garra,
		"misbehave": func() {
			_, args := misbehave.Command(os.Args[1:]...)
			os.Args = append(os.Args[:1], args...)
			misbehave.Main()
		},
		"authserver": func() { authServer(os.Args[1]) },
		"browse":     func() { os.Exit(browse(os.Args[1:])) },
		"admin":      func() { os.Exit(admin(os.Args[1:])) },
		"onterminal": func() { os.Exit(onTerminal(os.Args[1:])) },
		"typed":      func() { os.Exit(typed(os.Args[1], os.Args[2:])) },
		"garraia":    func() { os.Exit(garraiaVault(os.Args[1:])) },
	})
}

// quietVariable is how long garra waits without a word in a script that is about
// that. In all others it doesn't say so: how long a server takes depends on what
// else the machine does.
const quietVariable = "TEST_QUIET_WAIT"

// garra is main, for scripts. The key of a vault takes it milliseconds.
func garra() {
	pidone.Main(passphraseVariable, oldVariable)
	quiet := time.Hour
	if text := os.Getenv(quietVariable); text != "" {
		var err error
		if quiet, err = time.ParseDuration(text); err != nil {
			panic(err)
		}
	}
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, pace{quiet, 8}))
}

// TestScripts runs testdata/script. Beside testscript's own commands there are
//
//	exits N COMMAND…       runs a command, which must exit with code N
//	await REGEXP COMMAND…  runs a command until its standard output matches
//	terminate              sends SIGTERM to every `garra serve` in the background
//
// and, for `exec`, `onterminal COMMAND…`, which runs a command with a terminal as
// its standard output and standard error, and prints what the terminal got;
// `typed FILE COMMAND…`, which does so with its standard input too, where it types
// the lines of a file, one for each question; `garraia PASSPHRASE JSON`, which
// prints a vault of GarraIA;
// `authserver FILE`, which is an MCP server that wants OAuth, and writes its
// address to a file; `admin METHOD PATH [BODY [IF-MATCH]]`, which makes a request to
// the gateway over its socket; and `browse COMMAND…`, which runs a command and opens the
// address that it prints, as a browser does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		Setup:               setUp,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "await": await, "terminate": terminate,
		},
	})
}

// setUp gives each script a home. Its configuration is in $CONFIG, its state is
// in $STATE; the paths are short enough for a socket.
func setUp(env *testscript.Env) error {
	for name, folder := range map[string]string{
		"HOME": "h", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "s", "XDG_RUNTIME_DIR": "r",
	} {
		path := filepath.Join(env.WorkDir, folder)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		env.Setenv(name, path)
	}
	env.Setenv("CONFIG", filepath.Join(env.WorkDir, "c", "garraia"))
	env.Setenv("STATE", filepath.Join(env.WorkDir, "s", "garraia"))
	return nil
}

// exits runs a command and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = failed.ExitCode(), nil
	}
	ts.Check(err)
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// await runs a command again and again, until its output matches.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await REGEXP COMMAND…")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// A command that fails may succeed later.
		_ = ts.Exec(args[1], args[2:]...)
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%q does not come", args[0])
		}
	}
}

// terminate sends SIGTERM to the gateways in the background.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: terminate")
	}
	for _, cmd := range ts.BackgroundCmds() {
		if filepath.Base(cmd.Path) == "garra" && cmd.Args[1] == "serve" {
			ts.Check(cmd.Process.Signal(syscall.SIGTERM))
		}
	}
}
