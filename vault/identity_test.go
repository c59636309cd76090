// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

// An identity is a key pair of a test.
type identity struct {
	path      string // the private half
	recipient string
	key       Key // with both
}

// newIdentity makes an X25519 key pair.
func newIdentity(t testing.TB) identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return keep(t, "# a comment\n"+id.String()+"\n", id.Recipient().String())
}

// newHybrid makes a post-quantum key pair.
func newHybrid(t testing.TB) identity {
	t.Helper()
	id, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return keep(t, id.String(), id.Recipient().String())
}

// newSSH makes an SSH key pair.
func newSSH(t testing.TB) identity {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return keep(t, string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(key)))
}

// keep writes a private key to a file.
func keep(t testing.TB, private, recipient string) identity {
	t.Helper()
	path := filepath.Join(privateDir(t), "identity")
	if err := os.WriteFile(path, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Identities([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return identity{path, recipient, k}
}

func TestIdentities(t *testing.T) {
	for name, make := range map[string]func(testing.TB) identity{
		"x25519": newIdentity, "hybrid": newHybrid, "ssh": newSSH,
	} {
		t.Run(name, func(t *testing.T) {
			o, mine, other := options(t), make(t), make(t)
			want := map[string]string{"a": "1"}
			create(t, o, mine.key, want)
			_, err := Open(o, other.key)
			wantKind(t, err, ErrWrongPassphrase, "none of the identities")
			_, err = Open(o, phrase(t))
			wantKind(t, err, ErrWrongPassphrase, "encrypted for recipients")

			team, err := Identities([]string{mine.path}, []string{mine.recipient, other.recipient})
			if err != nil {
				t.Fatal(err)
			}
			v := open(t, o, mine.key)
			if err := v.Rekey(team); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, values(t, open(t, o, other.key))); diff != "" {
				t.Error(diff)
			}
			set(t, v, map[string]string{"a": "2"})
			open(t, o, other.key)
		})
	}
}

func TestRecipientsOfAFile(t *testing.T) {
	o, mine, other := options(t), newIdentity(t), newSSH(t)
	list := filepath.Join(privateDir(t), "recipients")
	if err := os.WriteFile(list, []byte("# us\n\n"+mine.recipient+"\n"+other.recipient), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Identities([]string{mine.path}, []string{"@" + list})
	if err != nil {
		t.Fatal(err)
	}
	create(t, o, k, map[string]string{"a": "1"})
	open(t, o, mine.key)
	open(t, o, other.key)
}

// A vault that nobody here could open again isn't written.
func TestRecipientsWithoutOneself(t *testing.T) {
	mine, other := newIdentity(t), newIdentity(t)
	k, err := Identities([]string{mine.path}, []string{other.recipient})
	if err != nil {
		t.Fatal(err)
	}
	o := options(t)
	if _, err := Create(o, k); !errors.Is(err, errNotARecipient) {
		t.Errorf("got %v", err)
	}
	v := create(t, o, mine.key, map[string]string{"a": "1"})
	if err := v.Rekey(k); !errors.Is(err, errNotARecipient) {
		t.Errorf("got %v", err)
	}
	open(t, o, mine.key)
	set(t, v, map[string]string{"a": "2"})
}

func TestIdentitiesThatAreNone(t *testing.T) {
	const sshEncrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" +
		"AAAA\n-----END RSA PRIVATE KEY-----\n"
	mine := newIdentity(t)
	file := func(content string) string {
		path := filepath.Join(privateDir(t), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		files, recipients []string
		want              error
		words             string
	}{
		{nil, nil, errNoIdentity, ""},
		{nil, []string{mine.recipient}, errNoIdentity, ""},
		{[]string{"/no/such"}, nil, os.ErrNotExist, `"/no/such"`},
		{[]string{file("age-encryption.org/v1\n-> scrypt")}, nil, errEncrypted, "age -d"},
		{[]string{file("-----BEGIN AGE ENCRYPTED FILE-----\n")}, nil, errEncrypted, "age -d"},
		{[]string{file("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2")}, nil, errNoIdentity, ""},
		{[]string{file(sshEncrypted)}, nil, errEncrypted, "age-keygen"},
		{[]string{file("AGE-PLUGIN-YUBIKEY-1XYZ")}, nil, errPlugin, ""},
		{[]string{file("hunter2")}, nil, nil, "unknown identity type"},
		{[]string{file("")}, nil, nil, "no identities"},
		{[]string{mine.path}, []string{"hunter2"}, errNoRecipient, ""},
		{[]string{mine.path}, []string{"age1hunter2"}, errNoRecipient, ""},
		{[]string{mine.path}, []string{"ssh-ed25519 hunter2"}, errNoRecipient, ""},
		{[]string{mine.path}, []string{"@/no/such"}, os.ErrNotExist, ""},
		{[]string{mine.path}, []string{"@" + file("hunter2")}, errNoRecipient, ""},
	} {
		_, err := Identities(c.files, c.recipients)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%q %q: %v", c.files, c.recipients, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("what may be a secret is quoted: %v", err)
		}
	}
}
