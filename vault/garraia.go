// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// What GarraIA's vault is encrypted with. The file holds none of these.
const (
	garraiaRounds  = 600_000
	garraiaKeyLen  = 32
	garraiaNonce   = 12
	garraiaMinSalt = 16
	garraiaMaxSalt = 64
)

var errGarraIA = errors.New(`not the JSON of GarraIA's vault: "salt", "nonce" and "ciphertext" in base64`)

// garraiaJSON is GarraIA's file.
type garraiaJSON struct {
	Salt       []byte `json:"salt"`
	Nonce      []byte `json:"nonce"`
	Ciphertext []byte `json:"ciphertext"`
}

// FromGarraIA returns the values of a vault file of GarraIA (AES-256-GCM, the key
// by PBKDF2 with HMAC-SHA-256 and 600,000 rounds). Names come as they are, and
// not all of them need pass [CheckName]. It returns [ErrWrongPassphrase], also
// when the ciphertext was changed, which can't be told apart, and [ErrDamaged].
func FromGarraIA(file []byte, passphrase *Secret) (map[string]*Secret, error) {
	f, err := parseGarraIA(file)
	if err != nil {
		return nil, &Error{Kind: ErrDamaged, Message: "reading GarraIA's vault", Cause: err}
	}
	text, err := f.open(passphrase)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	return garraiaValues(text)
}

// parseGarraIA reads the outer form of a file. Its errors quote nothing.
func parseGarraIA(file []byte) (garraiaJSON, error) {
	var f garraiaJSON
	if len(file) > maxSize {
		return f, errTooLarge
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return f, fmt.Errorf("%w%s", errGarraIA, place(err))
	}
	saltFits := len(f.Salt) >= garraiaMinSalt && len(f.Salt) <= garraiaMaxSalt
	if !saltFits || len(f.Nonce) != garraiaNonce || len(f.Ciphertext) == 0 {
		return f, errGarraIA
	}
	return f, nil
}

// open derives the key and decrypts.
func (f garraiaJSON) open(passphrase *Secret) ([]byte, error) {
	text, err := passphrase.Reveal()
	if err != nil {
		return nil, err
	}
	key, err := pbkdf2.Key(sha256.New, text, f.Salt, garraiaRounds, garraiaKeyLen)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	opened, err := gcm.Open(nil, f.Nonce, f.Ciphertext, nil)
	if err != nil {
		return nil, &Error{
			Kind: ErrWrongPassphrase, Message: "the passphrase doesn't open GarraIA's vault",
			Fix: "try again; a file that was changed looks the same",
		}
	}
	return opened, nil
}

// garraiaValues reads what is encrypted: an object of texts.
func garraiaValues(text []byte) (map[string]*Secret, error) {
	var raw map[string]valueJSON
	defer func() {
		for _, value := range raw {
			clear(value)
		}
	}()
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, &Error{Kind: ErrDamaged, Message: "GarraIA's vault holds something else than texts" + place(err)}
	}
	values := make(map[string]*Secret, len(raw))
	for name, value := range raw {
		if value == nil {
			return nil, &Error{Kind: ErrDamaged, Message: fmt.Sprintf("GarraIA's vault has no text for %.150q", name)}
		}
		secret, err := Seal(value)
		if err != nil {
			return nil, err
		}
		values[name] = secret
	}
	return values, nil
}
