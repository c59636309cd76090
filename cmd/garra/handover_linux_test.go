// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// nobody is a user that every system has.
const nobody = 65534

// Root may do everything over the socket of another user's gateway but take its place.
func TestAnotherUserIsNoSuccessor(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not root: there is no other user to be")
	}
	h := newHome(t, map[string]map[string]any{})
	program, err := os.ReadFile(h.garra)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(h.folder, "copy") // the test binary's folder is root's alone
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{h.folder, h.config(), filepath.Join(h.config(), "mcp.json")} {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), copied)
	cmd.Args, cmd.Env = []string{"garra", "serve", "--listen", "127.0.0.1:0", "--no-auth"}, h.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	p := start(t, cmd)
	h.serving(p)

	asking := start(t, h.command("serve", "--replace", "--no-auth"))
	if code := asking.code(); code != exitRefused || !asking.said("hands over to its own user alone") {
		t.Errorf("garra asks as root: exit code %d", code)
	}
	run, _ := h.run()
	conn, err := net.Dial("unix", run.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(processPatience))
	fmt.Fprint(conn, "POST /handover HTTP/1.1\r\nHost: localhost\r\nUpgrade: garra-handover\r\n"+
		"Connection: Upgrade\r\n\r\n{\"pid\":1}\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("another program asks as root: %s, %s, %v", resp.Status, answer, err)
	}
	if run, ok := h.run(); !ok || run.PID != cmd.Process.Pid {
		t.Errorf("run.json says %+v", run)
	}
}
