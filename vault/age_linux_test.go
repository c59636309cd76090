// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// needAge skips a test where the age command isn't installed.
func needAge(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("age"); err != nil {
		t.Skip("the age command is not installed (Debian: apt-get install age)")
	}
}

// terminal returns both ends of a new pseudoterminal, pty(7).
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("pseudoterminals:", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// answer runs age on a terminal of its own, and types the passphrase whenever it
// asks for one, which it does so many times.
func answer(t *testing.T, passphrase string, times int, args ...string) {
	t.Helper()
	master, slave := terminal(t)
	cmd := exec.CommandContext(t.Context(), "age", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var shown []byte
	for range times {
		for !bytes.Contains(shown, []byte("passphrase")) || !bytes.HasSuffix(shown, []byte(": ")) {
			buf := make([]byte, 1024)
			n, err := master.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q", err, shown)
			}
			shown = append(shown, buf[:n]...)
		}
		shown = nil
		if _, err := master.WriteString(passphrase + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("age %q: %v", args, err)
	}
}

// document reads what age decrypted.
func document(t *testing.T, text []byte) (values map[string]string) {
	t.Helper()
	var d struct {
		Version int `json:"garra_vault"`
		Entries map[string]struct{ Value string }
	}
	if err := json.Unmarshal(text, &d); err != nil || d.Version != 1 {
		t.Fatalf("version %d, %v: %s", d.Version, err, text)
	}
	values = make(map[string]string)
	for name, entry := range d.Entries {
		values[name] = entry.Value
	}
	return values
}

// The age command opens what garra wrote, and garra opens what age wrote of that.
func TestAgeWithAPassphrase(t *testing.T) {
	needAge(t)
	o := options(t)
	want := map[string]string{"mcp.gh.TOKEN": "one", "b": "two\n\"ü"}
	create(t, o, phrase(t), want)
	plain := filepath.Join(privateDir(t), "plain.json")
	answer(t, "correct horse", 1, "-d", "-o", plain, o.Path)
	text, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, document(t, text)); diff != "" {
		t.Error(diff)
	}

	text = bytes.Replace(text, []byte(`"one"`), []byte(`"edited"`), 1)
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(o.Path); err != nil {
		t.Fatal(err)
	}
	answer(t, "correct horse", 2, "-p", "-a", "-o", o.Path, plain)
	chmod(t, o.Path, 0o600)
	want["mcp.gh.TOKEN"] = "edited"
	if diff := cmp.Diff(want, values(t, open(t, o, phrase(t)))); diff != "" {
		t.Error(diff)
	}
}

func TestAgeWithIdentities(t *testing.T) {
	needAge(t)
	for name, make := range map[string]func(testing.TB) identity{"x25519": newIdentity, "ssh": newSSH} {
		t.Run(name, func(t *testing.T) {
			o, id := options(t), make(t)
			want := map[string]string{"a": "one"}
			create(t, o, id.key, want)
			out, err := exec.CommandContext(t.Context(), "age", "-d", "-i", id.path, o.Path).Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, document(t, out)); diff != "" {
				t.Error(diff)
			}
			for _, form := range []string{"", "-a"} {
				args := append(strings.Fields(form), "-r", strings.TrimSpace(id.recipient), "-o", o.Path)
				encrypt := exec.CommandContext(t.Context(), "age", args...)
				encrypt.Stdin = strings.NewReader(`{"garra_vault": 1, "entries": {"a": "two"}}`)
				if out, err := encrypt.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				chmod(t, o.Path, 0o600)
				if got := values(t, open(t, o, id.key)); got["a"] != "two" {
					t.Errorf("got %v", got)
				}
			}
		})
	}
}
