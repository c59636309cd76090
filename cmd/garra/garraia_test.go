// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
)

// garraiaVault prints a vault file as GarraIA writes it, and returns an exit code. Its
// arguments are a passphrase and the secrets in JSON.
func garraiaVault(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: garraia PASSPHRASE JSON")
		return 2
	}
	file, err := garraiaFile(args[0], []byte(args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("%s\n", file)
	return 0
}

// garraiaFile encrypts secrets: AES-256-GCM, the key by PBKDF2 with HMAC-SHA-256.
func garraiaFile(passphrase string, secrets []byte) ([]byte, error) {
	salt, nonce := make([]byte, 32), make([]byte, 12)
	_, _ = rand.Read(salt) // it never fails
	_, _ = rand.Read(nonce)
	key, err := pbkdf2.Key(sha256.New, passphrase, salt, 600_000, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string][]byte{
		"salt": salt, "nonce": nonce, "ciphertext": gcm.Seal(nil, nonce, secrets, nil),
	})
}
