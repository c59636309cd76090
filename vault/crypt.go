// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// encrypt returns an age file of a text.
func encrypt(text []byte, k Key, work int) ([]byte, error) {
	if k.kind == nil {
		return nil, errNoKey
	}
	recipients, err := k.kind.recipients(work)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	w, err := age.Encrypt(&file, recipients...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil { // which writes the end
		return nil, err
	}
	return file.Bytes(), nil
}

// decrypt returns the text of an age file, which stood at path, binary or
// armoured. The caller wipes it.
func decrypt(path string, file []byte, k Key) ([]byte, error) {
	if k.kind == nil {
		return nil, errNoKey
	}
	ids, err := k.kind.identities()
	if err != nil {
		return nil, err
	}
	var source io.Reader = bytes.NewReader(file)
	if start := bytes.TrimSpace(file); bytes.HasPrefix(start, []byte(armor.Header)) {
		source = armor.NewReader(bytes.NewReader(start))
	}
	opened, err := age.Decrypt(source, ids...)
	if err != nil {
		return nil, openingError(path, err, k)
	}
	// The text is shorter than the file, so the buffer never grows, which would
	// leave copies behind.
	text := bytes.NewBuffer(make([]byte, 0, len(file)+bytes.MinRead))
	if _, err := text.ReadFrom(opened); err != nil {
		clear(text.Bytes())
		return nil, damaged(path, err)
	}
	return text.Bytes(), nil
}

// openingError tells the reasons apart why the header of a file doesn't open.
func openingError(path string, err error, k Key) error {
	if problem, ok := errors.AsType[*Error](err); ok && problem.Kind != ErrNoLockedMemory {
		located := *problem
		located.Path = path
		return &located
	}
	if errors.Is(err, ErrNoLockedMemory) {
		return err
	}
	mismatch, ok := errors.AsType[*age.NoIdentityMatchError](err)
	if !ok {
		return damaged(path, err)
	}
	message, fix := k.kind.mismatch(mismatch.StanzaTypes)
	return &Error{Kind: ErrWrongPassphrase, Path: path, Message: message, Fix: fix}
}

// damaged is the error for a file that was cut or changed.
func damaged(path string, cause error) error {
	return &Error{
		Kind: ErrDamaged, Path: path, Message: "the file was cut or changed", Fix: "put a backup in its place",
		Cause: fmt.Errorf("reading it as an age file: %w", cause),
	}
}
