// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"fmt"
	"strconv"

	"filippo.io/age"
)

// Work factors of scrypt, as the logarithm of N: what files are written with,
// and the most that is accepted from a file. 20 takes 1 GiB of memory and some
// seconds; more than that a file could use to bring garra down.
const (
	defaultWork = 18
	maxWork     = 20
)

// A Key says how a vault is opened, and for whom it is written. It is made by
// [Passphrase] or [Identities]; the zero Key opens nothing. It is safe for
// concurrent use.
type Key struct{ kind keyKind }

// A keyKind is one kind of key in terms of age.
type keyKind interface {
	identities() ([]age.Identity, error)
	recipients(work int) ([]age.Recipient, error)
	// mismatch says why it doesn't open a file with stanzas of these types.
	mismatch(stanzas []string) (message, fix string)
}

// errNoKey is returned when a [Key] is the zero one.
var errNoKey = errors.New("no key to open the vault with")

// Passphrase returns the key of a passphrase. An empty one opens nothing.
func Passphrase(p *Secret) Key { return Key{passphrase{p}} }

// A passphrase is a key that is derived with scrypt: once for each opening, and
// once for each writing.
type passphrase struct{ text *Secret }

func (p passphrase) identities() ([]age.Identity, error) {
	return []age.Identity{p}, nil
}

func (p passphrase) recipients(work int) ([]age.Recipient, error) {
	r, err := revealed(p.text, age.NewScryptRecipient)
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(work)
	return []age.Recipient{r}, nil
}

func (p passphrase) mismatch(stanzas []string) (message, fix string) {
	if len(stanzas) > 0 && stanzas[0] != "scrypt" {
		return "the vault is encrypted for recipients, not by a passphrase",
			"name the file of your identity in the configuration"
	}
	return "the passphrase doesn't open the vault",
		"try again; a vault whose first lines were changed looks the same"
}

// Unwrap implements [age.Identity]. It refuses a work factor that is too large
// before it derives anything.
func (p passphrase) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, s := range stanzas {
		if err := checkWork(s); err != nil {
			return nil, err
		}
	}
	id, err := revealed(p.text, age.NewScryptIdentity)
	if err != nil {
		return nil, err
	}
	id.SetMaxWorkFactor(maxWork)
	return id.Unwrap(stanzas)
}

// checkWork returns [ErrWorkFactor] for a stanza that asks for too much. Other
// mistakes in it are left to age.
func checkWork(s *age.Stanza) error {
	if s.Type != "scrypt" || len(s.Args) != 2 {
		return nil
	}
	work, err := strconv.ParseUint(s.Args[1], 10, 32)
	if err == nil && work <= maxWork || errors.Is(err, strconv.ErrSyntax) {
		return nil
	}
	return &Error{
		Kind:    ErrWorkFactor,
		Message: fmt.Sprintf("the file asks for work factor %.20q, and at most %d is accepted", s.Args[1], maxWork),
		Fix:     "decrypt it with age -d, and encrypt it anew",
	}
}

// revealed gives age a passphrase as the string that it wants. The string and
// age's own copy stay in memory until the garbage collector has their place.
func revealed[T any](p *Secret, parse func(string) (T, error)) (T, error) {
	var zero T
	text, err := p.Reveal()
	switch {
	case err != nil:
		return zero, err
	case text == "":
		return zero, &Error{Kind: ErrWrongPassphrase, Message: "the passphrase is empty"}
	}
	return parse(text)
}
