// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

// look: nobody can tell here.
func (p *Process) look() (Vitals, bool) { return Vitals{}, false }
