// SPDX-License-Identifier: Apache-2.0

package remote

import "github.com/garraia/garra/source"

// A mishap is why a message, or a whole run, came to nothing.
type mishap struct {
	failure   *source.Failure
	status    int  // of the HTTP answer; 0 when there was none
	answer    Raw  // to the request, that came with this status; nil when there was none
	refused   bool // the server answered the request with an error
	again     bool // with refused: and named a revision that garra had named
	unsent    bool // the message had certainly no effect
	ends      bool // the link is of no more use
	lasting   bool // with ends: trying again can't mend it
	forgotten bool // with ends: the server doesn't know the session
	doubtful  bool // the server may be gone: look

	// login is the token, or "", for which only a person can get a better one; nil
	// when that isn't what it takes.
	login *string
}

// Error implements error.
func (m *mishap) Error() string { return m.failure.Error() }

// Unwrap returns the failure.
func (m *mishap) Unwrap() error { return m.failure }
