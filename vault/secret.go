// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"

	"github.com/awnumar/memguard"
)

// shown stands for a value wherever one is printed.
const shown = "[secret]"

// A Secret is a value in memory. It is sealed until it is used, it never
// changes, and nothing prints it: all ways of formatting and encoding show
// "[secret]". It is safe for concurrent use.
//
// A plain value is in a function because package fmt calls no methods of what is
// in unexported fields of other structs, and prints what their pointers lead to.
type Secret struct {
	sealed *memguard.Enclave // nil for an empty value, and in the mode Unlocked
	plain  func() []byte     // returns the value in the mode Unlocked
}

// Seal takes a value over: b is zero afterwards, also when Seal fails. The value
// may be empty. In the mode [Locked] it returns [ErrNoLockedMemory] when no
// memory can be locked.
func Seal(b []byte) (*Secret, error) {
	defer clear(b)
	mode, err := memory.current()
	switch {
	case err != nil:
		return nil, err
	case len(b) == 0:
		return &Secret{}, nil
	case mode == Unlocked:
		plain := bytes.Clone(b)
		return &Secret{plain: func() []byte { return plain }}, nil
	}
	release, err := memory.acquire(0)
	if err != nil {
		return nil, err
	}
	defer release()
	return &Secret{sealed: memguard.NewEnclave(b)}, nil
}

// Use opens the value for f alone, which must not write to the bytes, and which
// has them only until it returns. Use waits while too many values are open, so f
// must not open another one. It returns the error of f, or [ErrNoLockedMemory]
// for a value that is larger than the memory that can be locked.
func (s *Secret) Use(f func(b []byte) error) error {
	switch {
	case s.plain != nil:
		b := bytes.Clone(s.plain())
		defer clear(b)
		return f(b)
	case s.sealed == nil:
		return f(nil)
	}
	release, err := memory.acquire(s.sealed.Size())
	if err != nil {
		return err
	}
	defer release()
	open, err := s.sealed.Open()
	if err != nil {
		return fmt.Errorf("opening a value in memory: %w", err)
	}
	defer open.Destroy()
	return f(open.Bytes())
}

// Reveal returns the value as a string, for what must be one: a variable of a
// child's environment, a header. No one can wipe a string: it stays in memory
// until the garbage collector gives its place to something else.
func (s *Secret) Reveal() (string, error) {
	var text string
	err := s.Use(func(b []byte) error {
		text = string(b)
		return nil
	})
	return text, err
}

// Equal tells, in constant time, whether two values are the same. A value that
// can't be opened is equal to none.
func (s *Secret) Equal(o *Secret) bool {
	a, errA := s.digest()
	b, errB := o.digest()
	return errA == nil && errB == nil && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// digest lets two values be compared without both being open.
func (s *Secret) digest() (sum [sha256.Size]byte, err error) {
	err = s.Use(func(b []byte) error {
		sum = sha256.Sum256(b)
		return nil
	})
	return sum, err
}

// String implements [fmt.Stringer]: "[secret]".
func (Secret) String() string { return shown }

// GoString implements [fmt.GoStringer]: "[secret]".
func (Secret) GoString() string { return shown }

// Format implements [fmt.Formatter]: "[secret]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// MarshalText implements [encoding.TextMarshaler]: "[secret]".
func (Secret) MarshalText() ([]byte, error) { return []byte(shown), nil }

// MarshalJSON implements the interface of encoding/json: "[secret]".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + shown + `"`), nil }

// size returns the length of the value in bytes.
func (s *Secret) size() int {
	switch {
	case s.plain != nil:
		return len(s.plain())
	case s.sealed == nil:
		return 0
	}
	return s.sealed.Size()
}
