// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// secret is what the client of a grant proves itself with.
func (a *Account) secret(g *grant) string {
	if g.Client == clientPreset {
		return a.ClientSecret
	}
	return g.ClientSecret
}

// request makes a token request of any kind, and puts what comes of it into the
// grant. The kind is among params: the library has a method for each kind, but
// of these only this one lets the resource be named when a token is refreshed.
func (a *Account) request(ctx Context, g *grant, params url.Values) error {
	params.Set("resource", g.Resource) // RFC 8707, section 2.2
	style := oauth2.AuthStyleInParams
	if g.AuthMethod == authBasic {
		style = oauth2.AuthStyleInHeader
	}
	config := clientcredentials.Config{
		ClientID: g.ClientID, ClientSecret: a.secret(g), TokenURL: g.TokenEndpoint,
		EndpointParams: params, AuthStyle: style,
	}
	before := time.Now()
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, a.HTTP))
	if err != nil {
		return a.tokenError(g, params, err)
	}
	if !strings.EqualFold(token.Type(), "bearer") || !isToken(token.AccessToken) {
		return errors.New("the authorization server gave a token that is no bearer token")
	}
	g.AccessToken, g.ExpiresAt, g.ObtainedAt = token.AccessToken, token.Expiry.Round(0), before.Round(0)
	if token.RefreshToken != "" {
		g.RefreshToken = token.RefreshToken
	}
	if scope, ok := token.Extra("scope").(string); ok {
		g.Scopes = strings.Fields(scope)
	}
	return nil
}

// isToken reports whether a text can stand in a header as a token.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

// A refusedError is a token request that the authorization server refused for
// good.
type refusedError struct {
	code string
	text string
}

// Error implements error.
func (e *refusedError) Error() string { return e.text }

// tokenError says why there is no token, without what was sent for it.
func (a *Account) tokenError(g *grant, params url.Values, err error) error {
	secrets := []string{a.secret(g), params.Get("code"), params.Get("code_verifier"), params.Get("refresh_token")}
	failed, answered := errors.AsType[*oauth2.RetrieveError](err)
	broken, unanswered := errors.AsType[*url.Error](err)
	switch {
	case answered && failed.ErrorCode != "":
		return &refusedError{
			code: failed.ErrorCode,
			text: "the authorization server refused: " + refusal(failed.ErrorCode, failed.ErrorDescription, secrets...),
		}
	case answered && failed.Response != nil:
		status := failed.Response.StatusCode
		return fmt.Errorf("the authorization server answered %d %s", status, http.StatusText(status))
	case unanswered:
		return fmt.Errorf("asking the authorization server: %w", broken.Err)
	}
	return errors.New("the authorization server's answer has no token in it")
}

// refresh renews a grant.
func (a *Account) refresh(ctx Context, g *grant) error {
	if _, err := secure("the token endpoint", g.TokenEndpoint); err != nil {
		return err
	}
	return a.request(ctx, g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}})
}

// isOver reports whether a refresh failed because a person has to log in again:
// the refresh token is spent, or the authorization server has forgotten garra.
func isOver(err error) (over, spent bool) {
	e, ok := errors.AsType[*refusedError](err)
	if !ok {
		return false, false
	}
	codes := []string{"invalid_grant", "invalid_client", "unauthorized_client"}
	return slices.Contains(codes, e.code), e.code == "invalid_grant"
}

// revoke tells the authorization server that a grant is not used any more (RFC
// 7009).
func (a *Account) revoke(ctx Context, g *grant) error {
	u, err := secure("the revocation endpoint", g.RevocationEndpoint)
	if err != nil {
		return err
	}
	form := url.Values{"token": {g.RefreshToken}, "token_type_hint": {"refresh_token"}}
	if g.RefreshToken == "" {
		form = url.Values{"token": {g.AccessToken}, "token_type_hint": {"access_token"}}
	}
	if g.AuthMethod != authBasic {
		form.Set("client_id", g.ClientID)
	}
	if g.AuthMethod == authPost {
		form.Set("client_secret", a.secret(g))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", userAgent())
	if g.AuthMethod == authBasic {
		req.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(a.secret(g)))
	}
	res, err := a.HTTP.Do(req)
	if err != nil {
		return bare(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &statusError{res.StatusCode, origin(u)}
	}
	return nil
}
