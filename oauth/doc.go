// SPDX-License-Identifier: Apache-2.0

// Package oauth logs garra in to remote MCP servers, and keeps their tokens.
//
// It is the client of OAuth 2.1 that the MCP specification asks for
// ("Authorization"): the server says who its authorization server is (RFC 9728),
// that one says where its endpoints are (RFC 8414, OpenID Connect Discovery), a
// person allows garra in with a browser (authorization code, PKCE with S256),
// and the token that comes of it is for that server alone (RFC 8707).
//
// # Words
//
//	account    one server, and who garra is there
//	grant      what a login brought: an access token, most often a refresh token
//	store      the folder of grants
//	challenge  what a server says when it wants a token (WWW-Authenticate)
//
// # What is not trusted
//
// A server names any address it likes, and an authorization server does too. All
// requests are made with the HTTP client of the account, which decides which
// addresses are connected to and where redirects lead; addresses without https
// are asked only on this machine. Metadata is believed only where it names what
// it was asked about: the server (RFC 9728, section 3.3), the issuer (RFC 8414,
// section 3.3). An answer in the browser counts only with the state that garra
// sent and the issuer that it asked (RFC 9207). Bodies have at most 1 MiB.
//
// # One refresh at a time
//
// Refresh tokens are mostly good once. Whoever refreshes has the lock of the
// grant, in this process and among all, and looks first whether somebody has
// done it before. A refresh that has begun is carried to its end, whoever stops
// waiting for it, because its answer may be the only token that is still good.
package oauth
