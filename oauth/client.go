// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// The kinds of clients that garra can be, the first of which that it can be is
// taken (MCP specification, "Client Registration Approaches").
const (
	clientPreset   = "preset"   // the entry has its id
	clientDocument = "document" // its id is the address of a client ID metadata document
	clientDynamic  = "dynamic"  // it was registered for this login (RFC 7591)
)

// The ways in which a client says at an endpoint who it is (RFC 7591, section 2).
const (
	authNone  = "none"
	authPost  = "client_secret_post"
	authBasic = "client_secret_basic"
)

// identify decides which client garra is at an authorization server, and notes
// that in the grant to be.
func (a *Account) identify(ctx Context, issuer *oauthex.AuthServerMeta, redirect string, g *grant) error {
	methods := issuer.TokenEndpointAuthMethodsSupported
	switch {
	case a.ClientID != "":
		g.Client, g.ClientID = clientPreset, a.ClientID
		g.AuthMethod = authNone
		if a.ClientSecret != "" {
			g.AuthMethod = confidential(methods)
		}
		return nil
	case a.MetadataURL != "" && issuer.ClientIDMetadataDocumentSupported:
		g.Client, g.ClientID, g.AuthMethod = clientDocument, a.MetadataURL, authNone
		return nil
	case issuer.RegistrationEndpoint == "":
		return errors.New("the authorization server registers no clients by itself; " +
			"register garra there, and write oauth.clientId in the entry")
	}
	g.Client = clientDynamic
	return a.register(ctx, issuer, redirect, g)
}

// confidential is how a client with a secret says who it is; where the
// authorization server names none it knows basic (RFC 8414, section 2).
func confidential(supported []string) string {
	if slices.Contains(supported, authPost) && !slices.Contains(supported, authBasic) {
		return authPost
	}
	return authBasic
}

// register has the authorization server make a client (RFC 7591). The redirect
// address is that of this login, since many compare its port.
func (a *Account) register(ctx Context, issuer *oauthex.AuthServerMeta, redirect string, g *grant) error {
	methods := issuer.TokenEndpointAuthMethodsSupported
	method := authNone
	if len(methods) > 0 && !slices.Contains(methods, authNone) {
		method = confidential(methods)
	}
	r, err := oauthex.RegisterClient(ctx, issuer.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs:            []string{redirect},
		TokenEndpointAuthMethod: method,
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		ClientName:              "garra",
		ApplicationType:         "native", // else a web client is meant, which has no loopback address
		Scope:                   strings.Join(g.Scopes, " "),
	}, a.HTTP)
	if err != nil {
		return registrationError(err)
	}
	g.ClientID, g.ClientSecret, g.AuthMethod = r.ClientID, r.ClientSecret, r.TokenEndpointAuthMethod
	switch {
	case g.ClientSecret == "":
		g.AuthMethod = authNone
	case g.AuthMethod == authNone:
		g.ClientSecret = ""
	case g.AuthMethod != authPost:
		g.AuthMethod = authBasic // what is meant where nothing is said
	}
	return nil
}

// registrationError says why no client was made. What the library says of an
// answer that it doesn't understand repeats that, and so perhaps a secret.
func registrationError(err error) error {
	const doing = "registering garra at the authorization server"
	if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return fmt.Errorf("%s: it refused: %s", doing, refusal(refused.ErrorCode, refused.ErrorDescription))
	}
	if broken, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", doing, broken.Err)
	}
	return fmt.Errorf("%s: its answer is no registration", doing)
}

// refusal is an error of an authorization server (RFC 6749, section 5.2) in a
// message.
func refusal(code, description string, secrets ...string) string {
	text := said(code, secrets...)
	if description != "" {
		text += ", " + said(description, secrets...)
	}
	return text
}
