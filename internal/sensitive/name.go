// SPDX-License-Identifier: Apache-2.0

package sensitive

import (
	"slices"
	"strings"
	"unicode"
)

// Name tells whether a name says that its value is secret: API_KEY, dbPassword,
// x-auth-token. Whole words count, so MONKEY and AUTHOR do not, and neither does
// what says something about a secret instead of being one: MAX_TOKENS,
// AUTH_TYPE, AWS_ACCESS_KEY_ID, PUBLIC_KEY, TOKEN_FILE.
func Name(name string) bool {
	words := wordsOf(name)
	if len(words) == 0 || isAttribute(words[len(words)-1]) || slices.ContainsFunc(words, isNegation) {
		return false
	}
	for i, word := range words {
		if saysSecret(words, i, word) {
			return true
		}
	}
	return false
}

// saysSecret tells whether the word at place i makes a name that of a secret.
func saysSecret(words []string, i int, word string) bool {
	last := i == len(words)-1
	before := ""
	if i > 0 {
		before = words[i-1]
	}
	switch word {
	case "secret", "password", "passwd", "passphrase", "passcode", "credential", "cred", "apikey", "bearer",
		"cookie", "jwt", "pat", "dsn", "mnemonic", "authorization":
		return true
	case "token":
		return !isAmount(before)
	case "key":
		return isKeyKind(before) || last && !isOtherKey(before)
	case "pass", "auth", "session":
		return last
	case "pwd":
		return last && i > 0 // PWD itself is the working folder
	case "string", "str":
		return before == "connection" || before == "conn"
	case "phrase":
		return before == "seed" || before == "pass" || before == "recovery"
	}
	return endsInSecret(word)
}

// endsInSecret tells whether a word is made of others without a mark between
// them, the last of which is that of a secret.
func endsInSecret(word string) bool {
	return slices.ContainsFunc([]string{
		"password", "passwd", "passphrase", "apikey", "token", "secret", "secretkey", "accesskey", "privatekey",
		"authkey", "sshkey", "credential", "connectionstring", "sessionid",
	}, func(end string) bool { return strings.HasSuffix(word, end) })
}

// isKeyKind tells whether a key of this kind is secret wherever the two words
// stand in a name.
func isKeyKind(word string) bool {
	return slices.Contains([]string{
		"api", "access", "secret", "private", "signing", "encryption", "auth", "service", "master", "license", "ssh",
		"account", "app", "application", "admin", "storage", "subscription", "webhook", "host",
	}, word)
}

// isOtherKey tells whether a key of this kind opens nothing: it is published, or
// finds something in a table, or names a project.
func isOtherKey(word string) bool {
	return slices.Contains([]string{
		"public", "pub", "publishable", "primary", "foreign", "partition", "sort", "sorting", "cache", "object",
		"project", "issue", "space", "board", "registry", "hot", "group", "routing", "idempotency", "row", "lookup",
		"index", "json", "field", "column", "unique", "map", "config", "order", "translation", "s3", "bucket",
		"shortcut", "message", "dedup", "metadata",
	}, word)
}

// isAmount tells whether tokens after this word are counted, as those of a
// language model are.
func isAmount(word string) bool {
	return slices.Contains([]string{
		"input", "output", "prompt", "completion", "context", "thinking", "reasoning", "reserved", "chunk", "response",
		"stop", "pad", "eos", "bos", "special", "csrf",
	}, word)
}

// isNegation tells whether a word makes a name that of a switch or of a number.
func isNegation(word string) bool {
	return slices.Contains([]string{
		"max", "maximum", "min", "minimum", "num", "number", "count", "total", "use", "enable", "disable", "require",
		"allow", "skip", "no", "show", "hide", "is", "has", "per", "avg", "public", "publishable", "without", "ignore",
		"validate", "verify",
	}, word)
}

// isAttribute tells whether a name that ends in this word is about a secret, or
// says where one is.
func isAttribute(word string) bool {
	return slices.Contains([]string{
		"id", "file", "filename", "path", "dir", "directory", "folder", "name", "type", "url", "uri", "endpoint",
		"host", "hostname", "port", "limit", "count", "max", "min", "length", "len", "size", "ttl", "expiry",
		"expire", "expiration", "lifetime", "timeout", "age", "enabled", "disabled", "required", "optional", "method",
		"mode", "provider", "scheme", "algorithm", "algo", "alg", "format", "prefix", "suffix", "version", "policy",
		"rotation", "field", "column", "index", "usage", "budget", "arn", "region", "location", "server", "domain",
		"realm", "audience", "scope", "issuer", "callback", "redirect", "bit", "round", "cost", "strategy", "backend",
		"storage", "store", "label", "status", "env", "variable", "manager", "vault", "helper", "window", "rate",
		"counter", "hash", "fingerprint", "digest", "thumbprint", "hint", "level", "flow", "username", "user", "email",
		"interval", "refresh", "source", "profile", "command", "cmd", "samesite", "secure", "regex", "pattern",
	}, word)
}

// wordsOf returns the words of a name in lower case and in the singular, and
// without numbers at their end: "githubAPIKeys2" is github, api and key.
func wordsOf(name string) []string {
	const most = 64 // no name has more words
	var words []string
	letters := []rune(name[:min(len(name), 1024)])
	start := 0
	add := func(end int) {
		word := strings.ToLower(strings.TrimRight(string(letters[start:end]), "0123456789"))
		if len(word) > 3 && !strings.HasSuffix(word, "ss") {
			word = strings.TrimSuffix(word, "s")
		}
		if word != "" && len(words) < most {
			words = append(words, word)
		}
	}
	for i, r := range letters {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			add(i)
			start = i + 1
		case i > start && beginsWord(letters, i):
			add(i)
			start = i
		}
	}
	add(len(letters))
	return words
}

// beginsWord tells whether a word begins at a capital letter inside of a name:
// after a small one, or before one at the end of an acronym.
func beginsWord(letters []rune, i int) bool {
	if !unicode.IsUpper(letters[i]) {
		return false
	}
	nextIsSmall := i+1 < len(letters) && unicode.IsLower(letters[i+1])
	return !unicode.IsUpper(letters[i-1]) || nextIsSmall
}
