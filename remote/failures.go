// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"strings"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/source"
)

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
}

// Error implements error.
func (m *mishap) Error() string { return m.failure.Error() }

// Unwrap returns the failure.
func (m *mishap) Unwrap() error { return m.failure }

// referenceFailure is the failure of references that can't be resolved. It
// names every one, with its file and field.
func referenceFailure(server string, problems envbuild.Errors) *source.Failure {
	f := &source.Failure{Code: source.ServerFailed, Server: server, Cause: problems}
	if errors.Is(problems, envbuild.ErrSecret) {
		f.Code = source.SecretMissing
	}
	texts := make([]string, len(problems))
	for i, problem := range problems {
		bare := *problem
		bare.Server = "" // the failure names it
		if len(problems) == 1 {
			f.Fix, bare.Fix = bare.Fix, ""
		}
		texts[i] = bare.Error()
	}
	f.Message = strings.Join(texts, "; and ")
	return f
}
