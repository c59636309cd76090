// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/awnumar/memcall"
	"golang.org/x/sync/semaphore"
)

// How many pages are locked at a time. memguard keeps its own key in three
// pages, and copies it to one more whenever a value is sealed or opened.
const (
	keyPages  = 3
	viewPages = 1
	minPages  = 8    // below, not even small values can be opened: a refusal
	maxPages  = 1024 // 4 MiB where a page is 4 KiB; more is left to others
)

// A MemoryMode says how values are kept in memory.
type MemoryMode int

const (
	// Locked keeps values encrypted, and opens them in memory that is never
	// swapped. It is the default.
	Locked MemoryMode = iota
	// Unlocked keeps values as they are, in ordinary memory: they can end in
	// swap, in a hibernation image or in a core file. It is for systems that
	// don't let a process lock memory.
	Unlocked
)

// memory is the process's, as the limit on locked memory is.
var memory pageBudget

// A pageBudget bounds how much memory is locked at the same time. memguard must
// never meet the limit of the system: it doesn't return an error then, it waits
// forever for a lock that it has itself.
type pageBudget struct {
	mu      sync.Mutex // guards all below
	decided bool
	mode    MemoryMode
	free    *semaphore.Weighted // the pages that nobody has; set once
	total   int64               // how many there are
}

// LockMemory prepares the memory that values are kept in; [Locked] is the mode
// when none is given. It raises this process's soft limit on locked memory to
// the hard one, tries how much can be locked, and bounds the values that are
// open at a time by that. It returns [ErrNoLockedMemory] when there is too
// little; the caller may then choose [Unlocked].
//
// Call it at start. Without it the first [Seal] does, in the mode [Locked].
// Values that are sealed already stay as they are. LockMemory is safe for
// concurrent use.
func LockMemory(mode ...MemoryMode) error {
	memory.mu.Lock()
	defer memory.mu.Unlock()
	for _, m := range mode {
		if m == Unlocked {
			memory.decided, memory.mode = true, Unlocked
			return nil
		}
	}
	return memory.lockLocked()
}

// lockLocked makes the budget when there is none yet.
func (m *pageBudget) lockLocked() error {
	if m.free == nil {
		raiseLimit()
		pages := lockablePages()
		if pages < minPages {
			need := minPages * os.Getpagesize() / 1024
			return tooLittle(fmt.Sprintf("%d KiB of memory can't be locked, so secrets could get into swap", need))
		}
		m.total = int64(pages - keyPages)
		m.free = semaphore.NewWeighted(m.total)
	}
	m.decided, m.mode = true, Locked
	return nil
}

// current returns the mode, and decides on one when nobody has.
func (m *pageBudget) current() (MemoryMode, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decided {
		return m.mode, nil
	}
	return Locked, m.lockLocked()
}

// acquire waits for the pages that it takes to open, or to seal, a number of
// bytes. They come in the order in which they were asked for, so a large value
// isn't overtaken forever.
func (m *pageBudget) acquire(size int) (release func(), err error) {
	m.mu.Lock()
	free, total := m.free, m.total
	m.mu.Unlock()
	page := os.Getpagesize()
	pages := int64(viewPages + (size+page-1)/page)
	if pages > total {
		return nil, tooLittle(fmt.Sprintf("there is too little lockable memory for a value of %d bytes", size))
	}
	if err := free.Acquire(context.Background(), pages); err != nil {
		return nil, err // unreachable: the context has no end
	}
	return func() { free.Release(pages) }, nil
}

// tooLittle is the error for a limit that is too low.
func tooLittle(message string) error {
	return &Error{
		Kind: ErrNoLockedMemory, Message: message,
		Fix: "raise the limit (ulimit -l 8192 in the shell, LimitMEMLOCK=8M in a systemd unit, " +
			"--ulimit memlock=8388608 for a container), or allow ordinary memory",
	}
}

// lockablePages returns how many pages can be locked now, at most maxPages. It
// locks them and lets go: that also counts what privileges allow, and what other
// parts of the process have locked already.
func lockablePages() int {
	for pages := maxPages; pages >= minPages; pages /= 2 {
		if canLock(pages * os.Getpagesize()) {
			return pages
		}
	}
	return 0
}

// canLock tells whether a number of bytes can be locked.
func canLock(size int) bool {
	b, err := memcall.Alloc(size)
	if err != nil {
		return false
	}
	locked := memcall.Lock(b) == nil
	if locked {
		locked = memcall.Unlock(b) == nil
	}
	return memcall.Free(b) == nil && locked
}
