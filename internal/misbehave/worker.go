// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"fmt"
	"os"
	"strconv"
)

// startWorker starts a process that never ends and writes its id to a file. It
// holds on to the server's standard output and error, as real workers do.
func startWorker(pidFile string, session bool) error {
	if pidFile == "" {
		return nil
	}
	path, args := Command(idle)
	worker, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys:   workerAttr(session),
	})
	if err != nil {
		return fmt.Errorf("starting a worker: %w", err)
	}
	return os.WriteFile(pidFile, []byte(strconv.Itoa(worker.Pid)+"\n"), 0o600)
}

// startZombies starts processes that end at once and waits for none.
func startZombies(n int) error {
	path, args := Command(brief)
	for range n {
		zombie, err := os.StartProcess(path, append([]string{path}, args...), new(os.ProcAttr))
		if err != nil {
			return fmt.Errorf("starting a zombie: %w", err)
		}
		if err := zombie.Release(); err != nil {
			return err
		}
	}
	return nil
}
