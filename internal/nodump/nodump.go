// SPDX-License-Identifier: Apache-2.0

// Package nodump keeps this process's memory to itself: it leaves no core file, and
// other processes of the same user can't trace it or read its memory and environment.
package nodump

// Set does so, as far as the system can. It holds until the process executes another
// program: what it starts is not affected, but for core files, of which nothing that it
// starts leaves any either.
func Set() error { return set() }
