// SPDX-License-Identifier: Apache-2.0

package nodump

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/garraia/garra/internal/ownenv"
)

const (
	role   = "NODUMP_TEST_ROLE"
	secret = "NODUMP_TEST_SECRET"
)

// TestMain plays a process that keeps its memory to itself, or one that wants to read it.
func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "keeper":
		ownenv.Take(secret) // before, since the environment can't be overwritten afterwards
		if err := Set(); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		var core unix.Rlimit
		err := unix.Getrlimit(unix.RLIMIT_CORE, &core)
		fmt.Println(core.Max, err)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test is done with it
	case "reader":
		_, err := os.ReadFile("/proc/" + os.Args[1] + "/environ")
		if !errors.Is(err, fs.ErrPermission) {
			os.Stderr.WriteString("it could be read")
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// play returns a process of this binary in a role, as nobody.
func play(t *testing.T, part string, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run two processes of another user")
	}
	binary := t.TempDir() + "/test"
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := binary[:bytes.LastIndexByte([]byte(binary), '/')]; len(dir) > len("/tmp"); {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		dir = dir[:bytes.LastIndexByte([]byte(dir), '/')]
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = []string{role + "=" + part, secret + "=hush-hush"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Stderr = os.Stderr
	return cmd
}

func TestOthersOfTheUserCannotReadIt(t *testing.T) {
	keeper := play(t, "keeper")
	in, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 64)
	n, err := out.Read(ready)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(ready[:n]); got != "0 <nil>\n" {
		t.Errorf("its core file may have %s bytes", got)
	}
	if err := play(t, "reader", strconv.Itoa(keeper.Process.Pid)).Run(); err != nil {
		t.Error(err)
	}
	shown, err := os.ReadFile("/proc/" + strconv.Itoa(keeper.Process.Pid) + "/environ") // as root
	if err != nil || bytes.Contains(shown, []byte("hush")) {
		t.Errorf("the system shows %q, %v", shown, err)
	}
	in.Close()
	if err := keeper.Wait(); err != nil {
		t.Error(err)
	}
}
