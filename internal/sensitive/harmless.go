// SPDX-License-Identifier: Apache-2.0

package sensitive

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// references are texts that say where a value is: of shells, editors, templates,
// and of stores of secrets.
var references = regexp.MustCompile(`\$\{[^}]*\}|\{\{[^}]*\}\}|\$\([^)]*\)`)

// store is how a reference to a store of secrets begins.
var store = regexp.MustCompile(`^(?:vault|vaultfile|op|env|keychain|secret|aws-sm|pass):|^ref\+`)

// placeholder is what documentation writes in the place of a secret.
var placeholder = regexp.MustCompile(`(?i)^<.*>$|^\[.*\]$|^\{.*\}$|x{4,}|\.\.\.|…|\*{3,}|^x+$|^\.+$` +
	`|(?:^|[^a-z])(?:your|replace|change|insert|enter|paste)` +
	`[-_ ]?(?:own[-_ ]?|real[-_ ]?|actual[-_ ]?|[a-z0-9]+[-_ ]){0,4}` +
	`(?:key|token|secret|password|pass|pat|me|this|it|here|value|credentials?|id|string|cookie|jwt)` +
	`(?:[-_ ]here)?(?:$|[^a-z])` +
	`|^your[-_ ]|[-_ ]here$|^changeme` +
	`|^(?:todo|tbd|n/a|placeholder|dummy|fake|example|sample|redacted|hidden|foobar)(?:$|[-_ ])`)

var (
	path = regexp.MustCompile(`^(?:~|\.{1,2})?[/\\]|^~$|^[A-Za-z]:[\\/]|^file:` +
		`|^\w[\w.-]*/[\w.-]+(?:/[\w.-]+)*\.\w{1,5}$`)
	filename = regexp.MustCompile(`(?i)^[\w.-]+\.` +
		`(?:json|pem|key|crt|cer|txt|ya?ml|p12|pfx|env|ini|toml|conf|db|sqlite|log|js|ts|py)$`)
	uuid    = regexp.MustCompile(`(?i)^\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?$`)
	digest  = regexp.MustCompile(`^(?i:sha\d+|md5|blake\w+)[:=-]`)
	version = regexp.MustCompile(`^[v^~=]?\d+(?:\.[\w*]+)+(?:[-+][\w.+-]+)?$`)
	date    = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?$`)
	number  = regexp.MustCompile(`^[+-]?\d+(?:[.,]\d+)*$`)
	host    = regexp.MustCompile(`^(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::\d+)?(?:/.*)?$`)
	email   = regexp.MustCompile(`^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$`)
	public  = regexp.MustCompile(`^(?:acct|cus|price|prod|sub|evt|pi|org|proj|team|user|usr` +
		`|pk_live|pk_test|pk-lf|sb_publishable)[-_]`)
	arn = regexp.MustCompile(`^(?:arn|urn|projects|organizations|subscriptions|resource)[:/]`)
)

// isHarmless tells whether text only says where a secret is, or stands for one.
func isHarmless(text string) bool {
	if scheme, rest, ok := strings.Cut(text, " "); ok && isScheme(scheme) {
		text = strings.TrimSpace(rest)
	}
	return text == "" || isReference(text) || isPlaceholder(text)
}

// isReference tells whether nothing but references is in a text, and a scheme of
// credentials.
func isReference(text string) bool {
	if store.MatchString(text) {
		return true
	}
	if len(text) > maxToken {
		return false
	}
	rest := strings.TrimSpace(references.ReplaceAllString(text, ""))
	if rest != text && (rest == "" || isScheme(rest) || rest == ":") {
		return true
	}
	name, dollar := strings.CutPrefix(text, "$")
	inner, percent := strings.CutPrefix(text, "%")
	return dollar && isIdentifier(name) || percent && isIdentifier(strings.TrimSuffix(inner, "%"))
}

func isIdentifier(text string) bool {
	return text != "" && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// isPlaceholder tells whether text stands for a secret that a reader is to put
// in its place.
func isPlaceholder(text string) bool {
	if len(text) > maxToken {
		return false
	}
	return placeholder.MatchString(text)
}

// isPlain tells whether text can't be a secret even under the name of one: a
// word of a setting, a small number, a path.
func isPlain(text string) bool {
	if len(text) <= 3 && number.MatchString(text) {
		return true
	}
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "undefined", "auto", "default", "enabled",
		"disabled", "required", "optional", "always", "never", "basic", "bearer", "oauth", "oauth2", "jwt", "iam",
		"saml", "ldap", "kerberos", "anonymous", "token", "apikey", "api_key", "api-key", "pat", "header",
		"query", "env", "file", "keyring", "keychain", "prompt", "stdin", "strict", "lax", "memory":
		return true
	}
	return isPath(text) || filename.MatchString(text) || email.MatchString(text) || date.MatchString(text)
}

// isPath tells whether text is a path. Base64 may begin with a slash too, but
// has no part that is like a word.
func isPath(text string) bool {
	if len(text) > maxToken || !path.MatchString(text) {
		return false
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '\\' })
	return !slices.ContainsFunc(parts, isRandom) && !strings.HasSuffix(text, "=")
}

// isRandom tells whether text is one long word that nobody would write: mixed
// of letters and digits, or of small and capital letters without an order.
func isRandom(text string) bool {
	if len(text) < 20 || len(text) > maxToken || isOrdinary(text) || isWords(text) {
		return false
	}
	for i := range len(text) {
		if !dotted.has(text[i]) {
			return false
		}
	}
	least := 3.5
	if isHex(text) {
		least = 2.9
	}
	return entropy(text) >= least && changes(text) >= 0.22
}

// hasRandom tells whether a text, or of a URL a part of its path, is long and random.
func hasRandom(text string) bool {
	_, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		return isRandom(text)
	}
	_, path, _ := strings.Cut(rest, "/")
	parts := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/?&#", r) })
	return slices.ContainsFunc(parts, isRandom)
}

// isOrdinary tells whether text is long by nature without being secret.
func isOrdinary(text string) bool {
	for _, ordinary := range []*regexp.Regexp{uuid, digest, version, date, number, host, email, arn, public, filename} {
		if ordinary.MatchString(text) {
			return true
		}
	}
	return path.MatchString(text) && !strings.HasSuffix(text, "=") && strings.ContainsAny(text[1:], `/\.`)
}

// isWords tells whether the parts of a text are words and short numbers.
func isWords(text string) bool {
	const longest = 14
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("-_./:=+@,", r) })
	return !slices.ContainsFunc(parts, func(part string) bool {
		letters := strings.TrimRight(part, "0123456789")
		short := len(letters) <= longest && len(part)-len(letters) <= 4
		return !short || changes(letters) > 0.15 || strings.ContainsAny(letters, "0123456789")
	})
}

func isHex(text string) bool {
	for i := range len(text) {
		if !hexa.has(text[i]) {
			return false
		}
	}
	return true
}

// entropy returns how many bits a byte of text says, by Shannon's measure.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// changes returns how often the kind of byte changes in a text, as a part of its
// length: from small letters to capitals, and between letters and digits. A
// capital that begins a word is no change.
func changes(text string) float64 {
	if len(text) < 2 {
		return 0
	}
	n := 0
	for i := 1; i < len(text); i++ {
		before, after := kind(text[i-1]), kind(text[i])
		if before != after && !(before == 'A' && after == 'a') {
			n++
		}
	}
	return float64(n) / float64(len(text)-1)
}

func kind(b byte) byte {
	switch {
	case b >= '0' && b <= '9':
		return '0'
	case b >= 'a' && b <= 'z':
		return 'a'
	case b >= 'A' && b <= 'Z':
		return 'A'
	}
	return '-'
}
