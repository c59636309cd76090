// SPDX-License-Identifier: Apache-2.0

package sensitive

import (
	"slices"
	"strings"
)

// Pair tells whether the value of a variable, a setting or a parameter is a
// secret, by its name or by itself. Under the name of a secret anything is one
// but what can't be: nothing, "true", a small number, a path, a reference, a
// placeholder. Under a name such as COMMIT_SHA or CLIENT_ID a long random text is
// none.
func Pair(name, text string) (Reason, bool) {
	text = strings.TrimSpace(text[:min(len(text), maxText)])
	if reason, ok := known(text); ok {
		return reason, true
	}
	switch {
	case isHarmless(text):
		return "", false
	case Name(name):
		return byName, !isPlain(text) && !isAddress(text)
	case isIdentity(name) || !isRandom(text):
		return "", false
	}
	return chance, true
}

// isAddress tells whether text is a URL; one with a secret in it is known.
func isAddress(text string) bool {
	return strings.Contains(text, "://") && !strings.ContainsAny(text, " \n")
}

// isIdentity tells whether the values of a name are long and random without
// being secret.
func isIdentity(name string) bool {
	return slices.ContainsFunc(wordsOf(name), func(word string) bool {
		return slices.Contains([]string{
			"id", "uuid", "guid", "sha", "hash", "digest", "checksum", "commit", "revision", "rev", "etag", "integrity",
			"fingerprint", "thumbprint", "ref", "public", "pub", "publishable", "path", "dir", "file", "image", "tag",
			"version", "url", "uri", "endpoint", "host", "name", "channel", "address", "arn", "project", "region",
			"model", "package", "user", "username", "email", "container", "bucket", "database",
		}, word)
	}) || strings.HasSuffix(strings.ToLower(name), "id")
}

// Header tells whether the value of an HTTP header is a secret, which may follow
// the name of a scheme, such as Bearer.
func Header(name, text string) (Reason, bool) {
	return Pair(name, text)
}

// Argument tells whether the argument at place i of a command line is, or ends
// in, a secret: "--token=…", what follows "--api-key", a header after "-H", an
// assignment of a variable, or a value that is known as one.
func Argument(args []string, i int) (Reason, bool) {
	if i < 0 || i >= len(args) {
		return "", false
	}
	arg := args[i]
	if i > 0 && isFlag(args[i-1]) && !isFlag(arg) {
		if reason, ok := afterFlag(args[i-1], arg); ok {
			return reason, true
		}
	}
	if name, value, ok := strings.Cut(arg, "="); ok && isAssigned(name) {
		if reason, ok := headerLine(value); ok {
			return reason, true
		}
		return Pair(strings.TrimLeft(name, "-"), value)
	}
	if reason, ok := headerLine(arg); ok || isFlag(arg) {
		return reason, ok
	}
	return Value(arg)
}

// headerLine tells whether a text is the name of a header, a colon and a secret.
func headerLine(text string) (Reason, bool) {
	name, value, ok := strings.Cut(text, ":")
	if !ok || !isHeaderName(name) || strings.HasPrefix(value, "//") {
		return "", false
	}
	return Header(name, value)
}

// afterFlag tells whether an argument is a secret because of the flag before it.
func afterFlag(flag, arg string) (Reason, bool) {
	if strings.Contains(flag, "=") {
		return "", false
	}
	name := strings.TrimLeft(flag, "-")
	if flag == "-u" || name == "user" {
		_, password, ok := strings.Cut(arg, ":")
		address := strings.HasPrefix(password, "//")
		return credentials, ok && !address && !isHarmless(password) && !number.MatchString(password)
	}
	if inner, value, ok := strings.Cut(arg, "="); ok && isAssigned(inner) && !Name(name) {
		return Pair(inner, value)
	}
	if !Name(name) {
		return "", false
	}
	return Pair(name, arg)
}

// isFlag tells whether an argument is a flag.
func isFlag(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && !strings.HasPrefix(arg, "-----")
}

// isAssigned tells whether what stands before "=" is the name of a flag or of a
// variable.
func isAssigned(name string) bool {
	name = strings.TrimLeft(name, "-")
	return name != "" && len(name) < 100 && isIdentifier(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// isHeaderName tells whether what stands before ":" is the name of a header,
// which has more than one letter: C: is a disk.
func isHeaderName(name string) bool {
	return len(name) > 1 && len(name) < 100 && isIdentifier(strings.ReplaceAll(name, "-", "_"))
}
