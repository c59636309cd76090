// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	refreshTime  = time.Minute      // for a refresh, with the wait for that of another process
	refreshPause = 10 * time.Second // after a refresh ahead of time that failed
)

// errClosed is of a refresh that would begin while garra ends.
var errClosed = errors.New("garra is stopping")

// A flight is a refresh that is under way.
type flight struct {
	done  chan struct{} // closed at its end
	token string
	err   error
}

// Token returns the access token of the last login, "" when there was none for
// this account. One that ends soon is renewed meanwhile; one that has ended is
// renewed first. An error that wraps ErrLogin means that only a person can help;
// any other may be gone the next time.
func (a *Account) Token(ctx Context) (string, error) {
	g, err := a.Store.read(a.Name)
	if err != nil {
		return "", err
	}
	switch {
	case !a.owns(g):
		return "", nil
	case g.expired():
		return a.Renew(ctx, g.AccessToken)
	case g.aging() && g.RefreshToken != "":
		a.renewAhead(g.AccessToken)
	}
	return g.AccessToken, nil
}

// Renew returns another token than the one that the server refused, or that has
// ended: one that somebody else got meanwhile, or a new one. Errors are those of
// Token.
func (a *Account) Renew(ctx Context, stale string) (string, error) {
	f, err := a.fly(stale)
	if err != nil {
		return "", err
	}
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// renewAhead renews a token that is still good, unless that failed just before.
func (a *Account) renewAhead(stale string) {
	s, key := a.Store, a.key()
	s.mu.Lock()
	tooSoon := time.Since(s.failed[key]) < refreshPause
	s.mu.Unlock()
	if !tooSoon {
		_, _ = a.fly(stale) // when it fails the token is still good for a while
	}
}

// key tells the flights of a store apart.
func (a *Account) key() string { return a.Store.path(a.Name) + " " + a.resource() }

// fly joins the refresh that is under way, or begins one. It doesn't end with
// whoever wanted it.
func (a *Account) fly(stale string) (*flight, error) {
	s, key := a.Store, a.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[key]; f != nil {
		return f, nil
	}
	if s.closed {
		return nil, errClosed
	}
	f := &flight{done: make(chan struct{})}
	s.flights[key] = f
	s.work.Go(func() { // ends within refreshTime; Close waits for it
		ctx, cancel := context.WithTimeout(context.Background(), refreshTime)
		defer cancel()
		f.token, f.err = a.renewed(ctx, stale)
		s.mu.Lock()
		delete(s.flights, key)
		delete(s.failed, key)
		if f.err != nil {
			s.failed[key] = time.Now()
		}
		s.mu.Unlock()
		close(f.done)
	})
	return f, nil
}

// renewed renews a token under the lock, unless another process did so.
func (a *Account) renewed(ctx Context, stale string) (string, error) {
	unlock, err := a.Store.lock(ctx, a.Name)
	if err != nil {
		return "", fmt.Errorf("renewing the token: %w", err)
	}
	defer unlock()
	g, err := a.Store.read(a.Name)
	switch {
	case err != nil:
		return "", err
	case !a.owns(g):
		return "", fmt.Errorf("%w any more", ErrLogin)
	case g.AccessToken != stale && !g.expired():
		return g.AccessToken, nil
	case g.RefreshToken == "":
		return "", fmt.Errorf("%w any more: the last login's token is not good, and can't be renewed", ErrLogin)
	}
	next := *g
	err = a.refresh(ctx, &next)
	over, spent := isOver(err)
	if spent {
		next.RefreshToken = ""
		err = errors.Join(err, a.Store.write(&next)) // so that it is not tried again and again
	}
	switch {
	case over:
		return "", fmt.Errorf("%w any more: renewing the token: %w", ErrLogin, err)
	case err != nil:
		return "", fmt.Errorf("renewing the token: %w", err)
	}
	return next.AccessToken, a.Store.write(&next)
}

// Stored returns the access token of the last login, however old, and asks
// nobody: "" when there is none. It tells whether there was a login meanwhile.
func (a *Account) Stored() string {
	g, err := a.Store.read(a.Name)
	if err != nil || !a.owns(g) {
		return ""
	}
	return g.AccessToken
}

// A Login is what is known of the last login.
type Login struct {
	Name      string     `json:"name"`
	Issuer    string     `json:"issuer"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"` // when the token has to be renewed; nil when that isn't known
}

func (g *grant) login() *Login {
	l := &Login{Name: g.Server, Issuer: g.Issuer, Scopes: g.Scopes}
	if l.Scopes == nil {
		l.Scopes = []string{}
	}
	if !g.ExpiresAt.IsZero() {
		l.ExpiresAt = &g.ExpiresAt
	}
	return l
}

// Current returns the login that is in force, nil when there is none.
func (a *Account) Current() (*Login, error) {
	g, err := a.Store.read(a.Name)
	if err != nil || !a.owns(g) || g.expired() && g.RefreshToken == "" {
		return nil, err
	}
	return g.login(), nil
}
