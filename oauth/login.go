// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"golang.org/x/oauth2"
)

// An Ask is how a person is asked to log in.
type Ask struct {
	// Scopes are wanted besides those that the entry or the server names, and those
	// of the last login.
	Scopes []string
	// Show gets the address that a browser has to open. It is called once.
	Show func(address string)
	// Pasted gives the address that the browser was sent back to, for when it is on
	// another machine; nil when nobody can paste it.
	Pasted <-chan string
}

// Login has a person log in with a browser, within ctx, and keeps the grant.
// What went wrong at the authorization server is in the error, quoted.
func (a *Account) Login(ctx Context, ask *Ask) (*Login, error) {
	if _, err := secure("the server", origin(a.URL)); err != nil {
		return nil, err
	}
	challenge, answered, err := a.probe(ctx)
	if err != nil {
		return nil, err
	}
	realm, err := a.discover(ctx, challenge)
	switch {
	case errors.Is(err, ErrNoOAuth) && answered:
		return nil, errors.New("the server answers without a token, and has no login: it can be used as it is")
	case err != nil:
		return nil, err
	}
	if err := a.trusts(realm.issuer.Issuer); err != nil {
		return nil, err
	}
	w, err := listen(a.CallbackPort)
	if err != nil {
		return nil, err
	}
	defer w.close()
	g := &grant{
		Server: a.Name, URL: a.resource(), Issuer: realm.issuer.Issuer, Resource: realm.resource,
		TokenEndpoint: realm.issuer.TokenEndpoint, RevocationEndpoint: realm.issuer.RevocationEndpoint,
		Scopes: a.wanted(challenge, realm, ask.Scopes),
	}
	if err := a.identify(ctx, realm.issuer, w.redirect, g); err != nil {
		return nil, err
	}
	err = a.authorize(ctx, realm, g, w, ask)
	w.conclude(err)
	if err != nil {
		return nil, err
	}
	return g.login(), nil
}

// authorize sends the person to the authorization server, waits for what they
// bring back, and makes a kept grant of it.
func (a *Account) authorize(ctx Context, realm *realm, g *grant, w *waiter, ask *Ask) error {
	verifier := oauth2.GenerateVerifier()
	w.state = rand.Text()
	w.serve()
	config := oauth2.Config{
		ClientID: g.ClientID, RedirectURL: w.redirect, Scopes: g.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: realm.issuer.AuthorizationEndpoint},
	}
	ask.Show(config.AuthCodeURL(w.state,
		oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", g.Resource)))
	answer, err := w.wait(ctx, ask.Pasted)
	if err != nil {
		return err
	}
	if err := checkAnswer(answer, realm); err != nil {
		return err
	}
	err = a.request(ctx, g, url.Values{
		"grant_type": {"authorization_code"}, "code": {answer.Get("code")},
		"redirect_uri": {w.redirect}, "code_verifier": {verifier},
	})
	if err != nil {
		return fmt.Errorf("exchanging the code for a token: %w", err)
	}
	unlock, err := a.Store.lock(ctx, a.Name)
	if err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	defer unlock()
	return a.Store.write(g)
}

// checkAnswer looks whether an answer that has the state is from the issuer that
// was asked, first of all (RFC 9207, section 2.4), and whether it is good.
func checkAnswer(answer url.Values, realm *realm) error {
	issuer, from := realm.issuer, answer.Get("iss")
	switch {
	case answer.Has("iss") && from != issuer.Issuer:
		return fmt.Errorf("the answer is from %.200q, and not from %.200q, which was asked", from, issuer.Issuer)
	case !answer.Has("iss") && issuer.AuthorizationResponseIssParameterSupported:
		return fmt.Errorf("the answer does not say that it is from %.200q, which promises to say so", issuer.Issuer)
	case answer.Has("error"):
		return fmt.Errorf("the authorization server answered %s",
			refusal(answer.Get("error"), answer.Get("error_description")))
	case answer.Get("code") == "":
		return errors.New("the authorization server's answer has no code in it")
	}
	return nil
}

// offline is the scope with which an authorization server that knows it gives
// refresh tokens (OpenID Connect Core 1.0, section 11).
const offline = "offline_access"

// wanted are the scopes to ask for: as few as will do (MCP specification, "Scope
// Selection Strategy").
func (a *Account) wanted(c Challenge, realm *realm, more []string) []string {
	scopes := slices.Clone(a.Scopes)
	if len(scopes) == 0 {
		scopes = slices.Clone(c.Scopes)
	}
	if len(scopes) == 0 {
		scopes = slices.Clone(realm.scopes)
	}
	if len(more) > 0 {
		scopes = append(scopes, more...)
		if last, err := a.Store.read(a.Name); err == nil && a.owns(last) && last.Issuer == realm.issuer.Issuer {
			scopes = append(scopes, last.Scopes...) // a step up must not lose what was there
		}
	}
	if len(scopes) > 0 && slices.Contains(realm.issuer.ScopesSupported, offline) {
		scopes = append(scopes, offline)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// Logout forgets the last login, and tells its authorization server where that
// can be told. It returns false when there was none. With true, an error is that
// the authorization server could not be told.
func (a *Account) Logout(ctx Context) (bool, error) {
	unlock, err := a.Store.lock(ctx, a.Name)
	if err != nil {
		return false, err
	}
	defer unlock()
	g, err := a.Store.read(a.Name)
	if err != nil && !errors.Is(err, ErrLogin) {
		return false, err
	}
	if g == nil && err == nil {
		return false, nil
	}
	if err := a.Store.remove(a.Name); err != nil {
		return false, err
	}
	if g == nil || g.RevocationEndpoint == "" {
		return true, nil
	}
	if err := a.revoke(context.WithoutCancel(ctx), g); err != nil {
		return true, fmt.Errorf("telling the authorization server: %w", err)
	}
	return true, nil
}
