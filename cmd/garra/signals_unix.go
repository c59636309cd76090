// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifySuccession has a channel get the signals that ask for a successor.
func notifySuccession(ch chan<- os.Signal) { signal.Notify(ch, syscall.SIGUSR2) }
