// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/garraia/garra/source"
)

// An Error is the answer to an admin request that can't be served, and what
// [Client] returns for it.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
	Name    string `json:"-"` // of the server that it is about, where there is one
	State   string `json:"-"` // of that server
	// Findings are all that is wrong with an entry; what the message says is the first.
	Findings any `json:"-"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.Message
	}
	return e.Message + "; " + e.Fix
}

// errorBody is the JSON form of an error.
type errorBody struct {
	Error *Error `json:"error"`
	Name  string `json:"name,omitempty"`
	State string `json:"state,omitempty"`

	Findings any `json:"findings,omitempty"`
}

// errorf makes an Error.
func errorf(status int, code, fix, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...), Fix: fix}
}

// asAPIError gives whatever a handler returned its status.
func asAPIError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	f, ok := errors.AsType[*source.Failure](err)
	if !ok {
		return errorf(http.StatusInternalServerError, "internal", "", "%v", err)
	}
	status := http.StatusBadGateway
	switch f.Code {
	case source.ServerUnknown:
		status = http.StatusNotFound
	case source.ServerDisabled:
		status = http.StatusConflict
	case source.CallTimeout:
		status = http.StatusGatewayTimeout
	case source.ServerStopped:
		status = http.StatusServiceUnavailable
	case source.PolicyDenied, source.ConfirmDenied, source.SecretMissing, source.ServerParked, source.ServerFailed,
		source.ServerCrashed, source.FrameTooLarge, source.SecretBlocked, source.CallCancelled:
	}
	message := f.Message
	if f.Server != "" {
		message = fmt.Sprintf("server %q: %s", f.Server, f.Message)
	}
	return &Error{Status: status, Code: string(f.Code), Message: message, Fix: f.Fix}
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, err error) {
	e := asAPIError(err)
	writeJSON(w, e.Status, errorBody{e, e.Name, e.State, e.Findings})
}

// writeJSON answers with a value. An error here means that the client is gone.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "encoding the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
