// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// holderOf is the holder of clients that have no session: all with one token are
// one. It tells nobody who they are.
func holderOf(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return "token-" + hex.EncodeToString(sum[:4])
}

// forker returns the source of a server that has a process for each client
// (sharing: session), nil of one that clients share.
func (u *upstream) forker() source.Forker {
	if u.current.Load().entry.Sharing != mcpconfig.SharingSession {
		return nil
	}
	f, _ := u.src.(source.Forker) // a kind that has none is shared
	return f
}

// serving returns the source that serves a client, which may have to be made.
func (u *upstream) serving(holder string) (source.Source, error) {
	f := u.forker()
	if f == nil {
		return u.src, nil
	}
	src, failure := f.Fork(holder)
	if failure != nil {
		return nil, failure
	}
	return src, nil
}

// share names what serves a session, among all that the server has: empty where
// clients share one.
func (u *upstream) share(s *Session) string {
	if u.forker() == nil {
		return ""
	}
	return s.holder
}

// held returns the source behind a share, nil when there is none at the moment.
func (u *upstream) held(share string) source.Source {
	if f := u.forker(); f != nil {
		return f.Held(share)
	}
	return u.src
}

// tell sends a notification of a client to what serves it, if that is there.
func (u *upstream) tell(s *Session, method string, params Raw) {
	if src := u.held(u.share(s)); src != nil {
		src.Notify(method, params)
	}
}

// release ends what the server has for a client alone.
func (u *upstream) release(holder string) {
	if f := u.forker(); f != nil {
		f.Release(holder)
		u.sharer.forget(holder)
	}
}

// concerns reports whether what one of the server's processes says is for a
// session.
func (u *upstream) concerns(from source.Origin, s *Session) bool { return from.Holder == u.share(s) }
