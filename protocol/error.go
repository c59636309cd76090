// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strconv"
)

// Error codes of JSON-RPC 2.0, section 5.1, and of MCP.
const (
	CodeParse            = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeResourceNotFound = -32002 // MCP up to 2025-11-25

	// Since 2026-07-28.
	CodeHeaderMismatch      = -32020
	CodeMissingCapability   = -32021
	CodeUnsupportedRevision = -32022
)

// An Error is the error of a JSON-RPC response. One that a server sent keeps
// its whole text, so that members garra doesn't know reach the client.
type Error struct {
	Code    int
	Message string
	text    Raw
}

// Errorf returns an Error of garra's own.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ParseError reads the error member of a response. It never fails: what is no
// proper error is kept as it is, under code 0.
func ParseError(raw Raw) *Error {
	e := &Error{text: raw}
	obj, err := ParseObject(raw)
	if err != nil {
		e.Message = fmt.Sprintf("%.200s", raw)
		return e
	}
	e.Code, _ = strconv.Atoi(string(obj.Get("code")))
	e.Message, _ = Text(obj.Get("message"))
	return e
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Raw returns the error as JSON text, the server's own where it came from one.
func (e *Error) Raw() Raw {
	if e.text != nil {
		return e.text
	}
	o := Object{}
	o.Set("code", Raw(strconv.Itoa(e.Code)))
	o.Set("message", Quote(e.Message))
	return o.Raw()
}

// WithCode returns the error under another code.
func (e *Error) WithCode(code int) *Error {
	o, err := ParseObject(e.Raw())
	if err != nil { // a server's error that is no object stays as it is
		return e
	}
	o.Set("code", Raw(strconv.Itoa(code)))
	return &Error{Code: code, Message: e.Message, text: o.Raw()}
}

// WithData returns the error with a data member (JSON-RPC 2.0, section 5.1).
func (e *Error) WithData(data Raw) *Error {
	o, err := ParseObject(e.Raw())
	if err != nil { // a server's error that is no object stays as it is
		return e
	}
	o.Set("data", data)
	return &Error{Code: e.Code, Message: e.Message, text: o.Raw()}
}
