// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Challenge is what a server that refuses a request says of the token that it
// wants (RFC 6750, section 3; RFC 9728, section 5.1).
type Challenge struct {
	Metadata string   // where its metadata is; empty when it doesn't say
	Scopes   []string // that the request takes
	Error    string   // such as "insufficient_scope"
}

// ReadChallenge reads the challenge for a bearer token in the headers of an
// answer; ok is false when there is none.
func ReadChallenge(h http.Header) (c Challenge, ok bool) {
	challenges, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return Challenge{}, false
	}
	for _, each := range challenges {
		if each.Scheme != "bearer" {
			continue
		}
		return Challenge{
			Metadata: each.Params["resource_metadata"],
			Scopes:   strings.Fields(each.Params["scope"]),
			Error:    each.Params["error"],
		}, true
	}
	return Challenge{}, false
}
