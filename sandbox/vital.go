// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Vitals are signs of life of a server: of its main process and of all that is in the
// process group of that.
type Vitals struct {
	Stopped bool          // a process of it is suspended by a signal (SIGSTOP)
	CPU     time.Duration // processor time that those that run have used
}

// Look returns the server's signs of life. It is false where nobody can tell, and once the
// server has exited. It takes less than a millisecond.
func (p *Process) Look() (Vitals, bool) {
	if closed(p.exited) {
		return Vitals{}, false
	}
	return p.look()
}
