// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"
)

// ageIntro is how a file of age begins that isn't armoured.
const ageIntro = "age-encryption.org/"

// The causes when a text is no identity, or no recipient, that can be used. They
// never quote it: it may be a key in the wrong place.
var (
	errNoIdentity    = errors.New("no identity")
	errEncrypted     = errors.New("the identity itself is encrypted by a passphrase")
	errPlugin        = errors.New("age plugins are not supported, because they are programs")
	errNoRecipient   = errors.New("neither an age recipient nor an SSH public key")
	errNotARecipient = errors.New("none of the identities is among the recipients")
)

// Identities returns the key of identity files: what age-keygen writes, X25519
// and post-quantum, and SSH keys of the types ed25519 and rsa. Others must not be
// able to read or change these files, nor to change a file of recipients
// ([ErrExposed]).
//
// The vault is written for the recipients, in the forms that age takes ("age1…",
// "age1pq1…", "ssh-ed25519 …", "ssh-rsa …"; "@file" is a file with one a line),
// or for the identities' own when there are none. Post-quantum recipients can't
// be mixed with others. A vault is never written for recipients without one of
// the identities: nobody here could open it again.
func Identities(identityFiles, recipients []string) (Key, error) {
	k := identityKey{}
	for _, name := range identityFiles {
		ids, err := readIdentities(name)
		if err != nil {
			return Key{}, fmt.Errorf("reading the identity file %q: %w", name, err)
		}
		k.ids = append(k.ids, ids...)
	}
	if len(k.ids) == 0 {
		return Key{}, fmt.Errorf("reading identities: %w", errNoIdentity)
	}
	for _, text := range recipients {
		to, err := parseRecipients(text)
		if err != nil {
			return Key{}, fmt.Errorf("reading recipients: %w", err)
		}
		k.to = append(k.to, to...)
	}
	if len(recipients) == 0 {
		k.to = ownRecipients(k.ids)
	}
	return Key{k}, nil
}

// An identityKey is a key of identities and recipients.
type identityKey struct {
	ids []age.Identity
	to  []age.Recipient
}

func (k identityKey) identities() ([]age.Identity, error) { return k.ids, nil }

// recipients returns those that are written for, if that can be read again.
func (k identityKey) recipients(int) ([]age.Recipient, error) {
	var probe bytes.Buffer
	if _, err := age.Encrypt(&probe, k.to...); err != nil {
		return nil, err
	}
	header, err := age.ExtractHeader(&probe)
	if err != nil {
		return nil, err
	}
	if _, err := age.DecryptHeader(header, k.ids...); err != nil {
		return nil, errNotARecipient
	}
	return k.to, nil
}

func (k identityKey) mismatch(stanzas []string) (message, fix string) {
	if len(stanzas) > 0 && stanzas[0] == "scrypt" {
		return "the vault is encrypted by a passphrase, not for recipients", "use the passphrase"
	}
	return "none of the identities opens the vault", "ask somebody who can open it to add your recipient"
}

// readIdentities reads one identity file.
func readIdentities(path string) ([]age.Identity, error) {
	file, err := resolve(path)
	if err != nil {
		return nil, err
	}
	text, err := readGuarded(file, othersAny)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	switch {
	case bytes.HasPrefix(text, []byte(ageIntro)), bytes.HasPrefix(text, []byte(armor.Header)):
		return nil, &Error{
			Kind: errEncrypted, Path: path, Message: errEncrypted.Error(),
			Fix: "use one that isn't, and that only you can read: age -d -o FILE " + shellQuote(path),
		}
	case bytes.HasPrefix(text, []byte("-----BEGIN")):
		return sshIdentity(path, text)
	case bytes.Contains(text, []byte("AGE-PLUGIN-")):
		return nil, errPlugin
	}
	return age.ParseIdentities(bytes.NewReader(text))
}

// sshIdentity reads an SSH private key.
func sshIdentity(path string, pem []byte) ([]age.Identity, error) {
	id, err := agessh.ParseIdentity(pem)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		return nil, &Error{
			Kind: errEncrypted, Path: path, Message: errEncrypted.Error(),
			Fix: "use a key without one (age-keygen -o FILE makes one)",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: not an SSH key of type ed25519 or rsa", errNoIdentity)
	}
	return []age.Identity{id}, nil
}

// parseRecipients reads a recipient, or "@file" with one a line.
func parseRecipients(text string) ([]age.Recipient, error) {
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		r, err := parseRecipient(text)
		return []age.Recipient{r}, err
	}
	file, err := resolve(path)
	if err != nil {
		return nil, err
	}
	data, err := readGuarded(file, othersWrite)
	if err != nil {
		return nil, err
	}
	var all []age.Recipient
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parseRecipient(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", path, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// parseRecipient reads one recipient.
func parseRecipient(text string) (r age.Recipient, err error) {
	switch text = strings.TrimSpace(text); {
	case strings.HasPrefix(text, "age1pq1"):
		r, err = age.ParseHybridRecipient(text)
	case strings.HasPrefix(text, "age1"):
		r, err = age.ParseX25519Recipient(text)
	case strings.HasPrefix(text, "ssh-"):
		r, err = agessh.ParseRecipient(text)
	default:
		return nil, errNoRecipient
	}
	if err != nil {
		return nil, errNoRecipient
	}
	return r, nil
}

// ownRecipients returns the public halves of identities.
func ownRecipients(ids []age.Identity) []age.Recipient {
	var own []age.Recipient
	for _, id := range ids {
		switch id := id.(type) {
		case *age.X25519Identity:
			own = append(own, id.Recipient())
		case *age.HybridIdentity:
			own = append(own, id.Recipient())
		case *agessh.Ed25519Identity:
			own = append(own, id.Recipient())
		case *agessh.RSAIdentity:
			own = append(own, id.Recipient())
		}
	}
	return own
}
