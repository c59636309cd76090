// SPDX-License-Identifier: Apache-2.0

// Package browser opens addresses in the user's browser.
package browser

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// ErrNone is returned by [Open] where no browser is known that could be seen.
var ErrNone = errors.New("no browser is known")

// Open has the system open an http or https address, without a shell, and doesn't
// wait for the browser. That it opens can't be known.
func Open(address string) error {
	name, args := opener(runtime.GOOS, os.Getenv)
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.HasPrefix(address, "-") {
		return errors.New("not an http or https address")
	}
	if name == "" {
		return ErrNone
	}
	cmd := exec.Command(name, append(args, u.String())...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // ends with the opener; nobody waits, how it ended says nothing
	return nil
}

// opener is the program that opens addresses, empty where there is no screen.
func opener(system string, getenv func(string) string) (name string, args []string) {
	switch {
	case system == "darwin":
		return "open", nil
	case system == "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return "", nil
	}
	return "xdg-open", nil
}
