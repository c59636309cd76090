// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"strings"
)

const (
	minWord   = hotDepth + 1 // of a text that is looked for at all
	minLength = 8            // of one that is found inside of words too
	minLine   = 16           // of a line of a secret that is looked for alone
	minKinds  = 3            // of different bytes in a text
)

// Short tells whether text is too short to be found inside of other words, so
// that only the whole word is taken out, or nothing at all.
func Short(text string) bool { return len(strings.TrimSpace(text)) < minLength }

// Weak says why a value is not taken out, or only as a whole word: text that is
// too short or too common would be taken out of what has nothing to do with it.
// It is "" for a value that is taken out wherever it stands. What it says can
// follow the name of the value and does not show the value.
func Weak(text string) string {
	switch text := strings.TrimSpace(text); {
	case text == "":
		return "is empty"
	case len(text) < minWord:
		return fmt.Sprintf("is shorter than %d bytes and is not taken out of what servers say", minWord)
	case isCommon(text):
		return "is a common word and is not taken out of what servers say"
	case Short(text):
		return fmt.Sprintf("is shorter than %d bytes and is taken out only where it is a whole word", minLength)
	}
	return ""
}

// isCommon tells whether text appears in what has nothing to do with secrets.
func isCommon(text string) bool {
	kinds := 0
	for i := range min(len(text), 64) {
		if !strings.Contains(text[:i], text[i:i+1]) {
			kinds++
		}
	}
	if kinds < minKinds {
		return true
	}
	switch strings.ToLower(text) {
	case "true", "false", "null", "none", "undefined", "enabled", "disabled", "default", "auto", "always", "never",
		"admin", "administrator", "root", "user", "username", "guest", "public", "private", "anonymous", "nobody",
		"password", "passwd", "passphrase", "secret", "token", "bearer", "basic", "apikey", "api_key", "changeme",
		"test", "testing", "example", "sample", "demo", "dummy", "placeholder", "hello", "string", "value", "name",
		"localhost", "127.0.0.1", "0.0.0.0", "http", "https", "http://", "https://",
		"postgres", "postgresql", "mysql", "redis", "mongodb", "sqlite", "database", "server", "service", "client",
		"production", "development", "staging", "local", "main", "master", "info", "debug", "error", "warning",
		"1234", "12345", "123456", "1234567", "12345678", "123456789", "1234567890",
		"readonly", "read-only", "read", "write", "text", "json", "application/json", "content", "content-type":
		return true
	}
	return false
}
