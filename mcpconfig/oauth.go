// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxPort is the largest TCP port.
const maxPort = 65535

// oauthKey is one key of the map oauth.
type oauthKey struct{ name, snake string }

// oauthKeys returns the keys of the map oauth.
func oauthKeys() []oauthKey {
	return []oauthKey{
		{"clientId", "client_id"},
		{"clientSecret", "client_secret"},
		{"clientMetadataUrl", "client_metadata_url"},
		{"issuer", "issuer"},
		{"scopes", "scopes"},
		{"callbackPort", "callback_port"},
	}
}

// oauthName returns the documented name of a key in either spelling, or "".
func oauthName(key string) string {
	for _, k := range oauthKeys() {
		if key == k.name || key == k.snake {
			return k.name
		}
	}
	return ""
}

// foreignOAuth reports whether a key of the map is one that other clients know.
func foreignOAuth(key string) bool {
	return slices.Contains([]string{
		"enabled", "authServerMetadataUrl", "authorizationUrl", "tokenUrl", "registrationUrl",
		"redirectUri", "tokenParamName", "audiences",
	}, key)
}

// oauth decodes who garra is to an authorization server.
func (d *decoder) oauth(p *OAuth, m member) bool {
	if m.value.kind != mapNode {
		return d.wrongType(m.key, "a map", `write {"clientId": "…"}, for example, or remove it`, m.value)
	}
	d.checkKeys(m.value, m.key+".")
	ok, given := true, make(map[string]string)
	for _, item := range m.value.members {
		if item.invalid || item.value.kind == nullNode || isNote(item.key) {
			continue
		}
		name, key := oauthName(item.key), m.key+"."+item.key
		first, again := given[name]
		switch {
		case name == "" && foreignOAuth(item.key):
			d.report(item.keyStart, CodeKeyForeign, "it can stay, or be removed",
				"garra does not use %s: it tells another client how to sign in to a remote server", key)
			continue
		case name == "":
			d.report(item.keyStart, CodeKeyUnknown, didYouMean(item.key, d.oauthSpellings()),
				"unknown key %q in %s", shorten(item.key), m.key)
			continue
		case again:
			if first != item.key { // else it is reported as a duplicate
				d.report(item.keyStart, CodeFieldConflict, "keep the one that is meant",
					"%s and %s.%s are the same field", key, m.key, first)
				ok = false
			}
			continue
		}
		given[name] = item.key
		d.place("oauth."+name, item.value)
		ok = d.oauthValue(p, name, key, item.value) && ok
	}
	return d.checkOAuth(p, m) && ok
}

// oauthSpellings returns the keys as the file writes them.
func (d *decoder) oauthSpellings() []string {
	var list []string
	for _, k := range oauthKeys() {
		if isYAML(d.entry.src.name) {
			list = append(list, k.snake)
		} else {
			list = append(list, k.name)
		}
	}
	return list
}

// oauthValue decodes one value of the map oauth.
func (d *decoder) oauthValue(p *OAuth, name, key string, n *node) bool {
	switch name {
	case "clientId":
		return d.scalar(&p.ClientID, key, n)
	case "clientSecret":
		return d.scalar(&p.ClientSecret, key, n)
	case "clientMetadataUrl":
		return d.text(&p.ClientMetadataURL, key, n) && d.checkMetadataURL(p.ClientMetadataURL, key, n)
	case "issuer":
		return d.text(&p.Issuer, key, n)
	case "scopes":
		return d.scopes(&p.Scopes, key, n)
	}
	port := 0.0
	at := member{key: key, value: n}
	if !d.number(&port, &field{name: "oauth." + name, min: 1, max: maxPort}, at) {
		return false
	}
	if port != math.Trunc(port) {
		d.report(n.start, CodeFieldType, "write it without a fraction", "%s must be a whole number", key)
		return false
	}
	p.CallbackPort = int(port)
	return true
}

// checkMetadataURL reports an address that can't be a client's id: it has https
// and a path (OAuth Client ID Metadata Document, section 3).
func (d *decoder) checkMetadataURL(text, key string, n *node) bool {
	if strings.Contains(text, "${") {
		return true // it isn't known yet
	}
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "https" && u.Host != "" && strings.Trim(u.Path, "/") != "" &&
		u.User == nil && u.Fragment == "" {
		return true
	}
	d.report(n.start, CodeFieldInvalid, "write an address such as https://example.com/garra.json",
		"%s is not an https address with a path", key)
	return false
}

// scopeToken is one scope (RFC 6749, section 3.3).
var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`)

// scopes decodes a list of scopes, or a text with blanks between them.
func (d *decoder) scopes(p *[]string, key string, n *node) bool {
	if n.kind == stringNode {
		*p = strings.Fields(n.text)
	} else if !d.list(p, nil, key, "oauth.scopes", n) {
		return false
	}
	for _, scope := range *p {
		if !scopeToken.MatchString(scope) {
			d.report(n.start, CodeFieldInvalid, "write scopes as the server's documentation has them",
				"%s has a text in it that is no scope", key)
			return false
		}
	}
	return true
}

// holdsSecret reports whether a map oauth has a secret that is more than references.
func (n *node) holdsSecret(stores []string) bool {
	for _, m := range n.children() {
		isSecret := oauthName(m.key) == "clientSecret"
		if isSecret && m.value.text != "" && len(references(m.value.text, true, stores)) == 0 {
			return true
		}
	}
	return false
}

// checkOAuth checks what the values say together.
func (d *decoder) checkOAuth(p *OAuth, m member) bool {
	if p.ClientSecret != "" && p.ClientID == "" {
		d.report(m.keyStart, CodeFieldInvalid, "add the client's id",
			"%s has the secret of a client without its id", m.key)
		return false
	}
	return true
}

func oauthSchema() *jsonschema.Schema {
	scalar := &jsonschema.Schema{Ref: "#/$defs/scalar"}
	lowest, highest := 1.0, float64(maxPort)
	schema := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, k := range oauthKeys() {
		value := scalar
		switch k.name {
		case "clientMetadataUrl", "issuer":
			value = &jsonschema.Schema{Type: "string"}
		case "scopes":
			value = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Ref: "#/$defs/texts"}}}
		case "callbackPort":
			value = &jsonschema.Schema{Type: "integer", Minimum: &lowest, Maximum: &highest}
		}
		for _, key := range slices.Compact([]string{k.name, k.snake}) {
			schema.Properties[key] = orNull(value)
			schema.PropertyOrder = append(schema.PropertyOrder, key)
		}
	}
	return schema
}
