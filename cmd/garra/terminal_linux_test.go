// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

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
