// SPDX-License-Identifier: Apache-2.0

// Package hide takes out of what is shown what may be a secret: in arguments and
// addresses, which people read, and in which some write one.
package hide

import (
	"slices"
	"strings"
)

// hidden stands for a value that may be a secret.
const hidden = "***"

// Args returns arguments without the values whose names say that they are
// secret, such as what follows --token, and without those in URLs.
func Args(args []string) []string {
	shown := slices.Clone(args)
	for i, arg := range args {
		end := strings.IndexAny(arg, "=:")
		switch {
		case strings.Contains(arg, "://"):
			shown[i] = URL(arg)
		case end >= 0 && saysSecret(arg[:end]):
			shown[i] = arg[:end+1] + hide(arg[end+1:])
		case i > 0 && strings.HasPrefix(args[i-1], "-") && saysSecret(args[i-1]) &&
			!strings.ContainsAny(args[i-1], "=:") && !strings.HasPrefix(arg, "-"):
			shown[i] = hide(arg)
		}
	}
	return shown
}

// URL returns a URL without user, password and the values in its query.
func URL(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, path := rest[:end], rest[end:]
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = hide(host[:at]) + host[at:]
	}
	path, query, ok := strings.Cut(path, "?")
	if !ok {
		return scheme + "://" + host + path
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			pairs[i] = name + "=" + hide(value)
		}
	}
	return scheme + "://" + host + path + "?" + strings.Join(pairs, "&")
}

// hide hides a value, unless it is nothing but a reference, which says only where
// the value is.
func hide(value string) string {
	reference := strings.HasPrefix(value, "${") && strings.Index(value, "}") == len(value)-1 &&
		!strings.Contains(value, ":-")
	if value == "" || reference || strings.HasPrefix(value, "vault:") {
		return value
	}
	return hidden
}

// saysSecret reports whether a name says that its value is secret.
func saysSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{
		"token", "secret", "passw", "passphrase", "key", "credential", "auth", "cookie",
	}, func(word string) bool { return strings.Contains(name, word) })
}
