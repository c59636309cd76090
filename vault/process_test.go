// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"
)

// writeMany is the part of a process that stores many values, one at a time. Its
// arguments are the vault, the record, a prefix for names, and how many.
func writeMany(args []string) error {
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	p, err := Seal([]byte("correct horse"))
	if err != nil {
		return err
	}
	v, err := Open(Options{Path: args[0], Record: args[1], WorkFactor: 1}, Passphrase(p))
	if err != nil {
		return err
	}
	defer v.Close()
	for i := range count {
		value, err := Seal(fmt.Appendf(nil, "value %d", i))
		if err != nil {
			return err
		}
		name := args[2] + strconv.Itoa(i)
		if err := v.Update(func(e *Edit) error { return e.Set(name, value) }); err != nil {
			return err
		}
	}
	return nil
}

// Processes that write at the same time lose nothing, and none is in another's
// way.
func TestProcessesWriteAtOnce(t *testing.T) {
	const count = 15
	o := options(t)
	v := create(t, o, phrase(t), nil)
	var writers []*exec.Cmd
	for _, prefix := range []string{"a", "b", "c"} {
		cmd := child(t, "write", o.Path, o.Record, prefix, strconv.Itoa(count))
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, cmd)
	}
	for i := range count {
		set(t, v, map[string]string{"d" + strconv.Itoa(i): fmt.Sprintf("value %d", i)})
		open(t, o, phrase(t)) // never ErrRollback, though others write
	}
	for _, cmd := range writers {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	got := values(t, open(t, o, phrase(t)))
	for _, prefix := range []string{"a", "b", "c", "d"} {
		for i := range count {
			if name := prefix + strconv.Itoa(i); got[name] != fmt.Sprintf("value %d", i) {
				t.Errorf("%s is %q", name, got[name])
			}
		}
	}
	if len(got) != 4*count {
		t.Errorf("%d values, want %d", len(got), 4*count)
	}
}
