// SPDX-License-Identifier: Apache-2.0

package sensitive

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A Reason says in a few words why something is taken for a secret. It can
// follow "looks like a secret: " and shows nothing of the secret.
type Reason string

const (
	byName      Reason = "its name says so"
	privateKey  Reason = "a private key"
	webToken    Reason = "a JSON web token"
	urlPassword Reason = "a password in a URL"
	urlUser     Reason = "a token in the place of a URL's user"
	urlQuery    Reason = "a token in the query of a URL"
	webhook     Reason = "a URL that is a secret itself"
	settings    Reason = "a password in the settings of a connection"
	chance      Reason = "long and random"
	credentials Reason = "credentials of an HTTP header"
)

const (
	maxToken = 4 << 10  // longer than any token
	maxText  = 16 << 10 // what is looked at of a longer text
)

// structured are tokens that are told by their inner structure: of Telegram's
// bots, Discord's bots, Azure's applications, Terraform, Facebook, MaxMind and
// Mailchimp.
var structured = regexp.MustCompile(`^(?:[0-9]{5,16}:A[\w-]{34}` +
	`|[MNO][\w-]{22,28}\.[\w-]{6}\.[\w-]{27,40}` +
	`|[\w~.]{3}[0-9]Q~[\w~.-]{31,34}` +
	`|[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}` +
	`|[0-9]{15,16}[|%][\w-]{27,40}` +
	`|[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk` +
	`|[0-9a-f]{32}-us[0-9]{1,2}` +
	`|(?:sc|ext|scauth|authress)_[\w-]+\.\w+\.acc[\w-]+\.[\w=+/-]+)$`)

// jwt is a JSON web token (RFC 7519), or one in base64.
var jwt = regexp.MustCompile(`^(?:ey[A-Za-z0-9_-]{15,}\.ey[A-Za-z0-9_/\\-]{15,}\.[A-Za-z0-9_/\\=-]*` +
	`|ZXlK[A-Za-z0-9+/_=-]{60,})$`)

// queryNames are the parameters of a URL that hold a secret, besides those that
// [Name] tells.
var queryNames = regexp.MustCompile(`(?i)^(?:sig|signature|code|api|appid|access|x-amz-signature)$`)

// webhooks are URLs whose path is the secret.
var webhooks = regexp.MustCompile(`^(?:https?://)?(?:` +
	`hooks\.slack\.com/(?:services|workflows|triggers)/[\w+/-]{20,}` +
	`|(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[\w-]{20,}` +
	`|[\w.-]+\.webhook\.office\.com/webhookb2/\S{36,}` +
	`|hooks\.zapier\.com/hooks/catch/\w+/\w+` +
	`|api\.telegram\.org/bot\d+:[\w-]{30,})`)

// connection finds a password in the settings of a connection, as libpq and
// ADO.NET write them. The second group is the password.
var connection = regexp.MustCompile(`(?i)(?:^|[\s;,])(password|pwd|accountkey|sharedaccesskey|sharedsecret)` +
	`\s*=\s*('[^']*'|"[^"]*"|[^\s;,]+)`)

// Value tells whether text is a secret by what it looks like: a private key, a
// token of a known issuer, a URL or settings with a password in them, or just
// long and random. References such as ${NAME} and placeholders such as
// <your-token> are none.
func Value(text string) (Reason, bool) {
	text = strings.TrimSpace(text[:min(len(text), maxText)])
	if reason, ok := known(text); ok {
		return reason, true
	}
	if isHarmless(text) || !hasRandom(text) {
		return "", false
	}
	return chance, true
}

// known is Value without guessing by randomness.
func known(text string) (Reason, bool) {
	switch {
	case isPrivateKey(text):
		return privateKey, true
	case strings.HasPrefix(text, `{"`) || strings.HasPrefix(text, "{\n") || strings.HasPrefix(text, "{ "):
		return inObject(text)
	case isHarmless(text):
		return "", false
	case webhooks.MatchString(text):
		return webhook, true
	case strings.Contains(text, "://"):
		return inURL(text)
	}
	if scheme, rest, ok := strings.Cut(text, " "); ok && isScheme(scheme) {
		rest = strings.TrimSpace(rest)
		return credentials, rest != "" && !strings.Contains(rest, " ") && !isHarmless(rest)
	}
	if strings.Count(text, "=") > 1 {
		if m := connection.FindStringSubmatch(text); m != nil {
			return settings, !isHarmless(strings.Trim(m[2], `'"`))
		}
	}
	return token(text)
}

// token tells whether all of text is a token whose look is known.
func token(text string) (Reason, bool) {
	if len(text) > maxToken || strings.ContainsAny(text, " \n\t") {
		return "", false
	}
	if jwt.MatchString(text) {
		return webToken, true
	}
	if structured.MatchString(text) {
		return "a token", true
	}
	for _, s := range shapes() {
		if s.fits(text) && !(s.set.joins() && isWords(text[len(s.prefix):])) {
			return Reason("a token of " + s.issuer), true
		}
	}
	return "", false
}

// inObject tells whether an object in JSON has a secret in it.
func inObject(text string) (Reason, bool) {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return "", false
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value, ok := object[name].(string)
		if !ok {
			continue
		}
		if reason, ok := Pair(name, value); ok {
			return reason, true
		}
	}
	return "", false
}

// isPrivateKey tells whether text has a private key in PEM (RFC 7468), also
// where its lines were joined or are inside of JSON.
func isPrivateKey(text string) bool {
	_, after, ok := strings.Cut(text, "-----BEGIN ")
	if !ok {
		return false
	}
	label, body, ok := strings.Cut(after, "-----")
	body, _, _ = strings.Cut(body, "-----END")
	return ok && strings.Contains(label, "PRIVATE KEY") && len(body) >= 32 && !isPlaceholder(body)
}

// isScheme tells whether a word begins the credentials of an HTTP header.
func isScheme(word string) bool {
	switch strings.ToLower(word) {
	case "bearer", "basic", "token", "apikey", "bot":
		return true
	}
	return false
}

// inURL tells whether a URL has a secret in it.
func inURL(text string) (Reason, bool) {
	scheme, rest, _ := strings.Cut(text, "://")
	if scheme == "" || strings.ContainsAny(scheme, " \t\n") && !strings.HasPrefix(scheme, "jdbc:") {
		return "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		switch {
		case password != "" && !isHarmless(password):
			return urlPassword, true
		case password == "" && (isRandom(user) || isToken(user)):
			return urlUser, true
		}
	}
	_, query, _ := strings.Cut(rest, "?")
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(value); err == nil {
			value = decoded
		}
		if (Name(name) || queryNames.MatchString(name)) && len(value) >= 6 && !isPlain(value) && !isHarmless(value) {
			return urlQuery, true
		}
	}
	return "", false
}

func isToken(text string) bool {
	_, ok := token(text)
	return ok
}
