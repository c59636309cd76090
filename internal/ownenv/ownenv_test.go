// SPDX-License-Identifier: Apache-2.0

package ownenv

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

const (
	role  = "OWNENV_TEST_ROLE"
	name  = "OWNENV_TEST_SECRET"
	value = "a value that occurs nowhere else: 7c1f"
)

// TestMain plays the process that is to forget a variable, when it is told to.
func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	got, ok := Take(name)
	_, still := os.LookupEnv(name)
	shown, err := os.ReadFile("/proc/self/environ")
	fmt.Printf("%q %v %v\n%q %v\n", got, ok, still, shown, err)
	os.Exit(0)
}

func TestTake(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{"FIRST=1", name + "=" + value, role + "=1", name + "X=other"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	first, shown, _ := strings.Cut(string(out), "\n")
	if want := fmt.Sprintf("%q true false", value); first != want {
		t.Errorf("took %s, want %s", first, want)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the system shows no environment in /proc")
	}
	kept := strings.Contains(shown, `FIRST=1\x00`) && strings.Contains(shown, "X=other")
	if strings.Contains(shown, "7c1f") || !kept {
		t.Errorf("the system shows %s", shown)
	}
}

func TestTakeWhatIsSetLater(t *testing.T) {
	t.Setenv(name, "later")
	if got, ok := Take(name); string(got) != "later" || !ok {
		t.Errorf("took %q, %v", got, ok)
	}
	if got, ok := Take(name); got != nil || ok {
		t.Errorf("took it again: %q", got)
	}
}
