// SPDX-License-Identifier: Apache-2.0

package ownenv

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
)

// Where proc_pid_stat(5) has the bounds of the environment, counted from the field
// behind the command's name, which is the third of all.
const (
	envStartField = 50 - 3
	envEndField   = 51 - 3
)

// forget overwrites a variable in the memory that the system shows as this process's
// environment. Where /proc is missing there is nothing that shows it.
func forget(name string) {
	start, end, err := bounds()
	if err != nil {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	block := make([]byte, end-start)
	defer clear(block)
	if _, err := memory.ReadAt(block, start); err != nil {
		return
	}
	at := int64(0)
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			// An error leaves it as it is: that is how it would be without this.
			_, _ = memory.WriteAt(make([]byte, len(value)), start+at+int64(len(name)+1))
		}
		at += int64(len(entry)) + 1
	}
}

// bounds returns where the environment begins and ends in memory.
func bounds() (start, end int64, err error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= envEndField {
		return 0, 0, errors.New("the system doesn't say where the environment is")
	}
	if start, err = strconv.ParseInt(fields[envStartField], 10, 64); err != nil {
		return 0, 0, err
	}
	if end, err = strconv.ParseInt(fields[envEndField], 10, 64); err != nil {
		return 0, 0, err
	}
	if start <= 0 || end < start || end-start > 64<<20 {
		return 0, 0, errors.New("the system doesn't say where the environment is")
	}
	return start, end, nil
}
