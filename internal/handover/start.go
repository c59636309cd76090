// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"fmt"
	"os"
)

// Start starts a program as a successor, with the standard streams of this process. It
// stays in the session, as every child of a gateway that is no server's does. ended gets
// one value, nil when it ended well.
func Start(path string, args, env []string) (ended <-chan error, err error) {
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { // ends with the process
		state, err := process.Wait()
		if err == nil && !state.Success() {
			err = fmt.Errorf("%s: %s", path, state)
		}
		done <- err
	}()
	return done, nil
}
