// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os/exec"
	"testing"
)

// A server has Unix sockets of its own where they lead to no other program: in its folders,
// between its own processes.
func TestUnixSocketsOfItsOwn(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	const script = `exec python3 -c "
import socket
s, c = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
s.bind('x.sock'); s.listen(); c.connect('x.sock'); print('connected')" 2>&1 | tail -1`
	atLevels(t, func(t *testing.T, level Level) {
		want := "OSError: [Errno 97] Address family not supported by protocol"
		if (&confinement{Level: level}).walledSockets() {
			want = "connected"
		}
		s := confined(t, level, t.TempDir(), script)
		if got := s.line(t); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
