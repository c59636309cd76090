// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"flag"
	"os"
	"testing"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/test/rig"
)

var only = flag.String("only", "", "part of the names of the only misbehaviours that TestChaos runs")

// atOnce is how many subtests run at the same time: they wait more than they do.
const atOnce = "64"

func TestMain(m *testing.M) {
	misbehave.Main()
	rig.DefineFlags()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
