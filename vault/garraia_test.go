// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// garraiaFile makes a vault file of GarraIA.
func garraiaFile(t testing.TB, passphrase, content string) []byte {
	t.Helper()
	salt, nonce := bytes.Repeat([]byte("s"), 32), bytes.Repeat([]byte("n"), 12)
	key, err := pbkdf2.Key(sha256.New, passphrase, salt, 600_000, 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string][]byte{
		"salt": salt, "nonce": nonce, "ciphertext": gcm.Seal(nil, nonce, []byte(content), nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFromGarraIA(t *testing.T) {
	file := garraiaFile(t, "pass", `{"mcp.gh.TOKEN": "one", "ANTHROPIC_API_KEY": "two\n", "odd name": ""}`)
	found, err := FromGarraIA(file, newSecret(t, "pass"))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for name, s := range found {
		got[name] = text(t, s)
	}
	want := map[string]string{"mcp.gh.TOKEN": "one", "ANTHROPIC_API_KEY": "two\n", "odd name": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err = FromGarraIA(file, newSecret(t, "other"))
	wantKind(t, err, ErrWrongPassphrase)
}

func TestFromGarraIADamaged(t *testing.T) {
	pass := newSecret(t, "pass")
	good := []byte(`{"salt":"c3Nzc3Nzc3Nzc3Nzc3Nzcw==","nonce":"bm5ubm5ubm5ubm5u","ciphertext":"eA=="}`)
	if _, err := parseGarraIA(good); err != nil {
		t.Fatal(err)
	}
	for _, file := range [][]byte{
		nil, []byte("{}"), []byte("[]"), good[:len(good)-1],
		bytes.Replace(good, []byte(`"salt":"`), []byte(`"salt":"!`), 1),
		bytes.Replace(good, []byte(`"nonce":"`), []byte(`"nonce":"bm5u`), 1),
		bytes.Replace(good, []byte(`"salt":"`), []byte(`"salt":"","was":"`), 1),
		bytes.Replace(good, []byte(`"ciphertext":"`), []byte(`"ciphertext":"","was":"`), 1),
		make([]byte, maxSize+1),
	} {
		_, err := FromGarraIA(file, pass)
		wantKind(t, err, ErrDamaged, "GarraIA")
	}
	for _, content := range []string{``, `["hunter2"]`, `{"a": 1}`, `{"a": null}`, `{"a": "hunter2", "a": ""}`} {
		_, err := garraiaValues([]byte(content))
		wantKind(t, err, ErrDamaged, "GarraIA")
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a value is quoted: %v", err)
		}
	}
}

// Neither form of GarraIA's file makes a decoder fail otherwise than by an error.
func FuzzGarraIA(f *testing.F) {
	f.Add([]byte(`{"salt": "c3Nzc3Nzc3Nzc3Nzc3Nzcw==", "nonce": "bm5ubm5ubm5ubm5u", "ciphertext": "eA=="}`))
	f.Add([]byte(`{"mcp.gh.TOKEN": "one", "a": ""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := parseGarraIA(data); err == nil && (len(file.Salt) < 16 || len(file.Nonce) != 12) {
			t.Errorf("accepted: %q", data)
		}
		values, err := garraiaValues(bytes.Clone(data))
		if err != nil {
			wantKind(t, err, ErrDamaged)
			return
		}
		for name, s := range values {
			if !bytes.Contains(data, []byte(name)) && bytes.IndexByte(data, '\\') < 0 {
				t.Errorf("%q from nowhere", name)
			}
			text(t, s)
		}
	})
}
