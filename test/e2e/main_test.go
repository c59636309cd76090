// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/test/rig"
)

// recorder is the first argument of the test binary as a server that writes the
// first message which it gets to a file, its second argument, and ends.
const recorder = "garra-e2e-recorder"

func TestMain(m *testing.M) {
	misbehave.Main()
	rig.DefineFlags()
	if len(os.Args) == 3 && os.Args[1] == recorder {
		record(os.Args[2])
		return
	}
	if len(os.Args) == 6 && os.Args[1] == behindGarra {
		os.Exit(runBehindGarra(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	}
	os.Exit(m.Run())
}

func record(file string) {
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err == nil {
		err = os.WriteFile(file, line, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recording the first message:", err)
	}
}
