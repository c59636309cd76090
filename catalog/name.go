// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	maxName   = 64 // characters of an exposed name, the least that model APIs take
	separator = "__"
	hexDigits = 8 // of the digest in a name that had to be changed
)

var (
	plainName  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	notPlain   = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	digestLike = regexp.MustCompile(`_[0-9a-f]{8}$`)
)

// Expose returns the name under which clients of all servers see a tool or
// prompt. It is stable, and names of different items differ unless somebody
// crafted a collision of 32 bits of SHA-256, which the Catalog then settles.
//
// A plain name that looks like a changed one is changed too, so that no tool can
// be named after the digest of another.
func Expose(server, item string) string {
	name := server + separator + item
	if isPlain(server, name) {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + item))
	head := notPlain.ReplaceAllString(name, "_")
	head = head[:min(len(head), maxName-1-hexDigits)]
	return head + "_" + hex.EncodeToString(sum[:hexDigits/2])
}

// isPlain reports whether name is used as it stands. The server's part must end
// at the first separator, or a_ and b would be read as a and _b.
func isPlain(server, name string) bool {
	return len(name) <= maxName && plainName.MatchString(name) && !digestLike.MatchString(name) &&
		!strings.Contains(server+"_", separator)
}

// MayBelong reports whether an exposed name could be an item of the server. It
// lets a call wait for a server whose items aren't known yet.
func MayBelong(server, exposed string) bool {
	head := notPlain.ReplaceAllString(server+separator, "_")
	if digestLike.MatchString(exposed) {
		head = head[:min(len(head), maxName-1-hexDigits)]
	}
	return strings.HasPrefix(exposed, head)
}
