// SPDX-License-Identifier: Apache-2.0

// Package pidone is what process 1 of a container has to be, so that a program can be
// started there as it is.
//
// Process 1 becomes the parent of every orphan, and nobody else collects those when they
// end; and signals that it does not handle don't reach it (pid_namespaces(7)). A program
// that also waits for children of its own would have to tell them apart, whenever one
// ends. So it starts itself again as its child, and does nothing else: it collects whatever
// ends, passes on signals, and ends as its child does. The child has only its own.
package pidone

import "os"

// childVariable tells the child what it is.
const childVariable = "GARRA_CHILD_OF_INIT"

// PID is the process id by which those who started this process know it: 1 for the child
// of process 1. It is to be called once, before other children are started, since it takes
// what tells that out of the environment.
func PID() int {
	if _, ok := os.LookupEnv(childVariable); ok {
		os.Unsetenv(childVariable)
		return 1
	}
	return os.Getpid()
}
