// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"os"
)

// errNoPinning is returned where processes can't be kept on cores.
var errNoPinning = errors.New("keeping processes on cores is for Linux only")

// canPin reports whether processes can be kept on different cores.
func canPin() bool { return false }

func pinProcess(int, int) error { return errNoPinning }

func pinned(int, func() error) error { return errNoPinning }

func block(*os.File) error { return errNoPinning }
