// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// childEnv names the part that the test binary plays when it is not the test.
const childEnv = "GARRA_VAULT_TEST_CHILD"

// parts are what the test binary can be beside the test. Each gets the arguments
// and returns what went wrong.
func parts() map[string]func(args []string) error {
	all := map[string]func([]string) error{"write": writeMany}
	addPlatformParts(all)
	return all
}

func TestMain(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := parts()[name](os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// child returns a command that runs the test binary as a part; the race detector
// doesn't let it linger at its end.
func child(t *testing.T, part string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+part, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// newSecret seals a text.
func newSecret(t testing.TB, text string) *Secret {
	t.Helper()
	s, err := Seal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// text returns a secret's value.
func text(t testing.TB, s *Secret) string {
	t.Helper()
	got, err := s.Reveal()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// phrase is the passphrase of the vaults of tests.
func phrase(t testing.TB) Key {
	t.Helper()
	return Passphrase(newSecret(t, "correct horse"))
}

// options returns those of a vault that isn't there yet, in a folder of its own,
// with the least work.
func options(t testing.TB) Options {
	t.Helper()
	return Options{
		Path: filepath.Join(privateDir(t), "vault.age"), Record: filepath.Join(privateDir(t), "record.json"),
		WorkFactor: 1,
	}
}

// privateDir returns a new folder that is private whatever the umask is.
func privateDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// create makes a vault with values.
func create(t testing.TB, o Options, k Key, values map[string]string) *Vault {
	t.Helper()
	v, err := Create(o, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	if len(values) > 0 {
		set(t, v, values)
	}
	return v
}

// open opens a vault.
func open(t testing.TB, o Options, k Key) *Vault {
	t.Helper()
	v, err := Open(o, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// set stores values.
func set(t testing.TB, v *Vault, values map[string]string) {
	t.Helper()
	err := v.Update(func(e *Edit) error {
		for name, value := range values {
			if err := e.Set(name, newSecret(t, value)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// values returns all that a vault holds.
func values(t testing.TB, v *Vault) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, entry := range v.Entries() {
		s, err := v.Value(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name] = text(t, s)
	}
	return all
}

// wantKind fails unless err is of a kind, and of no other, and has a message that
// holds all words.
func wantKind(t testing.TB, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v; want %v", err, kind)
	}
	for _, other := range []error{
		ErrWrongPassphrase, ErrDamaged, ErrVersion, ErrWorkFactor, ErrRollback, ErrExposed, ErrNoVault,
		ErrExists, ErrClosed, ErrNoKey, ErrBadName, ErrNoLockedMemory,
	} {
		if other != kind && errors.Is(err, other) {
			t.Errorf("%v is also %v", err, other)
		}
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %v; want %q in it", err, word)
		}
	}
}
