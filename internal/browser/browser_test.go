// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The address is one argument of the opener, whatever is in it.
func TestOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the opener of this system can't be replaced")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("OPENED", filepath.Join(dir, "opened"))
	script := "#!/bin/sh\nprintf '%s|' \"$@\" > \"$OPENED.new\" && mv \"$OPENED.new\" \"$OPENED\"\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if err := Open("https://example.com/"); !errors.Is(err, ErrNone) {
		t.Errorf("without a screen: %v", err)
	}
	t.Setenv("DISPLAY", ":0")
	for _, address := range []string{"javascript:alert(1)", "file:///etc/passwd", "--version", ""} {
		if Open(address) == nil {
			t.Errorf("%q was opened", address)
		}
	}
	if err := Open("https://example.com/?a=$(id)&b=c d"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		text, err := os.ReadFile(filepath.Join(dir, "opened"))
		if err == nil {
			if strings.Count(string(text), "|") != 1 || !strings.Contains(string(text), "$(id)&b=c") {
				t.Errorf("it got %s", text)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}
