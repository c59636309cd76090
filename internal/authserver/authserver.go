// SPDX-License-Identifier: Apache-2.0

// Package authserver is an authorization server and the MCP server behind it,
// for tests. It lets in whoever asks, checks everything that a client has to do
// for that, and can be told to do what a bad one would.
package authserver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// MCP is the path of the MCP server.
const MCP = "/mcp"

// A Server is both servers, on one origin. The exported fields are set before it
// is used; methods are safe for concurrent use.
type Server struct {
	Inner    http.Handler      // what is behind the token
	Lifetime time.Duration     // of access tokens; 0 for an hour
	Clients  map[string]string // ids of registered clients with their secrets
	Document string            // the client ID metadata document that is known; empty for none
	NoDCR    bool              // registers no clients
	Scopes   string            // that the challenge names
	Need     string            // a scope that a token has to have
	// Metadata changes a document, by the last part of its well-known path.
	Metadata func(kind string, document map[string]any)
	// Answer changes what the browser brings back.
	Answer func(url.Values)

	mu       sync.Mutex // guards all below
	clients  map[string]client
	codes    map[string]code
	access   map[string]issued
	refresh  map[string]issued
	counts   map[string]int // requests by path, and by grant type
	spent    map[string]bool
	problems []string // what a client did wrong
	seen     []string // the Authorization headers that the MCP server got
}

type client struct {
	secret   string
	method   string
	redirect string // empty for any of this machine
}

type code struct{ client, challenge, redirect, scope string }

type issued struct {
	client, scope string
	until         time.Time
}

// Count returns how many requests there were, by path ("/register") or by grant
// type ("refresh_token").
func (s *Server) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// Problems returns what clients did wrong.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// Seen returns the Authorization headers that the MCP server got.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Expire ends all access tokens, and with all refresh tokens too.
func (s *Server) Expire(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	if all {
		clear(s.refresh)
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.count(r.URL.Path)
	const protected, issuer = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
	self := "http://" + r.Host
	switch path := r.URL.Path; {
	case path == protected+MCP:
		s.document(w, "oauth-protected-resource", map[string]any{
			"resource": self + MCP, "authorization_servers": []string{self},
		})
	case path == issuer:
		s.document(w, "oauth-authorization-server", s.issuer(self))
	case path == "/register" && !s.NoDCR:
		s.register(w, r)
	case path == "/authorize":
		s.authorize(w, r)
	case path == "/token":
		s.token(w, r)
	case path == "/revoke":
		s.revoke(r)
	case path == MCP:
		s.mcp(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts, s.spent = make(map[string]int), make(map[string]bool)
		s.codes, s.access, s.refresh = make(map[string]code), make(map[string]issued), make(map[string]issued)
		s.clients = make(map[string]client)
		for id, secret := range s.Clients {
			s.clients[id] = client{secret: secret, method: "client_secret_basic"}
		}
		if s.Document != "" {
			s.clients[s.Document] = client{method: "none"}
		}
	}
	s.counts[what]++
}

func (s *Server) issuer(self string) map[string]any {
	m := map[string]any{
		"issuer": self, "authorization_endpoint": self + "/authorize", "token_endpoint": self + "/token",
		"revocation_endpoint": self + "/revoke", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          s.Document != "",
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic"},
	}
	if !s.NoDCR {
		m["registration_endpoint"] = self + "/register"
	}
	return m
}

func (s *Server) document(w http.ResponseWriter, kind string, m map[string]any) {
	if s.Metadata != nil {
		s.Metadata(kind, m)
	}
	answer(w, http.StatusOK, m)
}

func answer(w http.ResponseWriter, status int, m map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(m) // who has gone needs no answer
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		RedirectURIs []string `json:"redirect_uris"`
		Method       string   `json:"token_endpoint_auth_method"`
		Type         string   `json:"application_type"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.RedirectURIs) != 1 {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	id := "client-" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked.Type != "native" {
		s.problems = append(s.problems, "application_type is "+asked.Type)
	}
	s.clients[id] = client{method: asked.Method, redirect: asked.RedirectURIs[0]}
	answer(w, http.StatusCreated, map[string]any{
		"client_id": id, "redirect_uris": asked.RedirectURIs, "token_endpoint_auth_method": asked.Method,
	})
}

// authorize lets a browser in at once.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	c, known := s.clients[q.Get("client_id")]
	redirect, err := url.Parse(q.Get("redirect_uri"))
	wrong := ""
	switch {
	case !known:
		wrong = "unknown client"
	case err != nil || redirect.Hostname() != "127.0.0.1" || c.redirect != "" && c.redirect != q.Get("redirect_uri"):
		wrong = "wrong redirect_uri"
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		wrong = "no PKCE"
	case q.Get("resource") != "http://"+r.Host+MCP:
		wrong = "wrong resource " + q.Get("resource")
	case q.Get("state") == "" || q.Get("response_type") != "code":
		wrong = "no state or response_type"
	}
	if wrong != "" {
		s.problems = append(s.problems, wrong)
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	key := rand.Text()
	s.codes[key] = code{q.Get("client_id"), q.Get("code_challenge"), q.Get("redirect_uri"), q.Get("scope")}
	back := url.Values{"code": {key}, "state": {q.Get("state")}, "iss": {"http://" + r.Host}}
	if s.Answer != nil {
		s.Answer(back)
	}
	redirect.RawQuery = back.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what is missing is refused
	kind := r.PostForm.Get("grant_type")
	s.count(kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	id, wrong := s.client(r)
	scope := ""
	switch {
	case wrong != "":
	case r.PostForm.Get("resource") != "http://"+r.Host+MCP:
		wrong = "invalid_target"
	case kind == "authorization_code":
		c, ok := s.codes[r.PostForm.Get("code")]
		delete(s.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if !ok || c.client != id || c.redirect != r.PostForm.Get("redirect_uri") ||
			c.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			wrong = "invalid_grant"
		}
		scope = c.scope
	case kind == "refresh_token":
		token := r.PostForm.Get("refresh_token")
		g, ok := s.refresh[token]
		if s.spent[token] {
			s.problems = append(s.problems, "a refresh token was used twice")
		}
		if !ok || g.client != id {
			wrong = "invalid_grant"
		}
		delete(s.refresh, token)
		s.spent[token] = true
		scope = g.scope
	default:
		wrong = "unsupported_grant_type"
	}
	if wrong != "" {
		answer(w, http.StatusBadRequest, map[string]any{
			"error": wrong, "error_description": fmt.Sprintf("no: %s", r.PostForm.Encode()),
		})
		return
	}
	answer(w, http.StatusOK, s.issue(id, scope))
}

// issue makes new tokens.
func (s *Server) issue(id, scope string) map[string]any {
	life := s.Lifetime
	if life == 0 {
		life = time.Hour
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	s.access[access] = issued{id, scope, time.Now().Add(life)}
	s.refresh[refresh] = issued{client: id, scope: scope}
	return map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(life.Seconds()),
		"refresh_token": refresh, "scope": scope,
	}
}

// client returns who makes a token request, or what is wrong with that.
func (s *Server) client(r *http.Request) (id, wrong string) {
	id, secret, basic := r.BasicAuth()
	if basic { // RFC 6749, section 2.3.1
		id, _ = url.QueryUnescape(id)         // what is wrong is unknown
		secret, _ = url.QueryUnescape(secret) // likewise
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	c, known := s.clients[id]
	if !known || c.secret != secret || basic != (c.method == "client_secret_basic") {
		return id, "invalid_client"
	}
	return id, ""
}

func (s *Server) revoke(r *http.Request) {
	_ = r.ParseForm() // a token that isn't there is revoked
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refresh, r.PostForm.Get("token"))
}

// mcp lets in who has a token with the scope that it takes.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request) {
	header := r.Header.Get("Authorization")
	s.mu.Lock()
	s.seen = append(s.seen, header)
	g, ok := s.access[strings.TrimPrefix(header, "Bearer ")]
	need := s.Need
	s.mu.Unlock()
	challenge := fmt.Sprintf(`Bearer resource_metadata="http://%s/.well-known/oauth-protected-resource%s"`, r.Host, MCP)
	if s.Scopes != "" {
		challenge += fmt.Sprintf(`, scope="%s"`, s.Scopes)
	}
	switch {
	case !ok || time.Now().After(g.until):
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "who are you, "+header+"?", http.StatusUnauthorized)
	case need != "" && !slices.Contains(strings.Fields(g.scope), need):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+need+`"`)
		http.Error(w, "that takes "+need, http.StatusForbidden)
	default:
		s.Inner.ServeHTTP(w, r)
	}
}

// Require makes a scope one that a token has to have.
func (s *Server) Require(scope string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Need = scope
}
