// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal runs a command with a new pseudo-terminal (pty(7)) as its standard
// output and standard error, prints what the terminal got, and returns the
// command's exit code.
func onTerminal(args []string) int {
	ours, theirs, err := openTerminal()
	if err != nil {
		fmt.Fprintln(os.Stderr, "opening a terminal:", err)
		return 1
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, theirs, theirs
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "starting the command:", err)
		return 1
	}
	theirs.Close()
	// The end of the last process that has the terminal open is an error here.
	_, _ = io.Copy(os.Stdout, ours)
	_ = cmd.Wait() // its error is the exit code
	return cmd.ProcessState.ExitCode()
}

// typed runs a command with a new pseudo-terminal as all its standard streams, and
// types the lines of a file there: one for each prompt, once the terminal doesn't show
// what is typed. It prints what the terminal got and returns the command's exit code.
func typed(file string, args []string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ours, theirs, err := openTerminal()
	if err != nil {
		fmt.Fprintln(os.Stderr, "opening a terminal:", err)
		return 1
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "starting the command:", err)
		return 1
	}
	ended := make(chan struct{})
	go func() { // ends with the last process that has the terminal open; it is waited for
		defer close(ended)
		answer(ours, strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n"))
	}()
	_ = cmd.Wait() // its error is the exit code
	theirs.Close() // after the command: a terminal without a user is an error to read
	<-ended
	return cmd.ProcessState.ExitCode()
}

// answer prints what a terminal gets until nobody has it open, and types the next line
// whenever that ends in a prompt.
func answer(terminal *os.File, lines []string) {
	got := make([]byte, 4096)
	for {
		n, err := terminal.Read(got)
		_, _ = os.Stdout.Write(got[:n])
		if err != nil {
			return
		}
		if len(lines) > 0 && bytes.HasSuffix(got[:n], []byte(": ")) && silent(terminal) {
			_, _ = terminal.WriteString(strings.TrimSuffix(lines[0], "\n") + "\n")
			lines = lines[1:]
		}
	}
}

// silent waits until a terminal doesn't show what is typed.
func silent(terminal *os.File) bool {
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		settings, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err == nil && settings.Lflag&unix.ECHO == 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
}

// columnsVariable is how wide the terminals of a script are; they don't know by
// themselves.
const columnsVariable = "TEST_COLUMNS"

// openTerminal returns both ends of a new pseudo-terminal, which passes output
// on as it is.
func openTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(ours.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	if columns, err := strconv.Atoi(os.Getenv(columnsVariable)); err == nil {
		size := &unix.Winsize{Row: 24, Col: uint16(columns)}
		if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size); err != nil {
			return nil, nil, err
		}
	}
	settings, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
	if err != nil {
		return nil, nil, err
	}
	settings.Oflag &^= unix.OPOST // no CR before LF
	return ours, theirs, unix.IoctlSetTermios(int(theirs.Fd()), unix.TCSETS, settings)
}
