// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"strings"
)

// The kinds of failure, for [errors.Is]. Where a file is concerned they come
// in an [*Error], which says what to do.
var (
	// ErrWrongPassphrase: the key doesn't open the file: the passphrase is
	// another one, or none of the identities is among the recipients. Returned
	// by whatever reads a file: [Open], [Vault.Reload], [Vault.Update],
	// [Vault.Rekey] and [FromGarraIA].
	ErrWrongPassphrase = errors.New("wrong passphrase")
	// ErrDamaged: the file was cut or changed, or what is in it is no vault.
	// Returned by whatever reads a file.
	ErrDamaged = errors.New("vault is damaged")
	// ErrVersion: the vault was written by a garra that is newer than this one.
	// Returned by whatever reads a file.
	ErrVersion = errors.New("vault is of a newer version")
	// ErrWorkFactor: opening the file would cost more than is accepted, which
	// is said before any of it is spent; or [Options] ask for such a cost.
	ErrWorkFactor = errors.New("work factor out of bounds")
	// ErrRollback: the file is older than one that was seen before. Returned by
	// whatever reads a file, when [Options] name a record.
	ErrRollback = errors.New("vault is older than it was")
	// ErrExposed: others can read or change a file or its folder, or own it.
	// Returned by whatever reads a file, [Create] and [Identities].
	ErrExposed = errors.New("file is exposed to others")
	// ErrNoVault: there is no file. Returned by whatever reads one.
	ErrNoVault = errors.New("no vault")
	// ErrExists: there is a file already. Returned by [Create].
	ErrExists = errors.New("vault exists")
	// ErrClosed: the vault was closed. Returned by the methods of [Vault].
	ErrClosed = errors.New("vault is closed")
	// ErrNoKey: the vault has no entry of that name. Returned by [Vault.Value]
	// and the methods of [Edit].
	ErrNoKey = errors.New("no such key in the vault")
	// ErrBadName: a name that no entry, or no server, can have. Returned by
	// [CheckName] and the methods of [Edit].
	ErrBadName = errors.New("name is not valid")
	// ErrNoLockedMemory: the system doesn't let this process keep enough memory
	// out of swap. Returned by [LockMemory], [Seal] and [Secret.Use].
	ErrNoLockedMemory = errors.New("not enough lockable memory")
)

// An Error is a failure in words for the person at the keyboard. It holds names
// and paths, and never a value.
type Error struct {
	Kind    error  // one of the Err values of this package
	Path    string // the file that it is about, or ""
	Message string // what happened
	Fix     string // what to do next, or ""
	Cause   error  // may be nil
}

// Error implements error: which file, what happened, what to do.
func (e *Error) Error() string {
	var text strings.Builder
	if e.Path != "" {
		text.WriteString(e.Path + ": ")
	}
	text.WriteString(e.Message)
	if e.Cause != nil {
		text.WriteString(": " + e.Cause.Error())
	}
	if e.Fix != "" {
		text.WriteString("; " + e.Fix)
	}
	return text.String()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
