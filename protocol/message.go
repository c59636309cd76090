// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Raw is a JSON value as text. A nil Raw means that the member is absent.
type Raw = jsontext.Value

// A Message is one JSON-RPC 2.0 message. Its Raw members may alias the frame
// that it was parsed from; nobody writes to them.
type Message struct {
	ID     ID     // zero for a notification
	Method string // empty for a response
	Params Raw    // of a request or notification; nil when absent
	Result Raw    // of a response; nil when it is an error
	Error  Raw    // of a response; nil when it is a result

	params []Member // of Params, where they were split already
}

// ParamsObject returns the params as an object of the caller's own. It fails when
// they are none, as ParseObject does.
func (m *Message) ParamsObject() (*Object, error) {
	if m.params != nil {
		return &Object{slices.Clone(m.params)}, nil
	}
	return ParseObject(m.Params)
}

// IsRequest reports whether m asks for an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

// IsNotification reports whether m wants no answer.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID.IsZero() }

// IsResponse reports whether m answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" }

// ErrNotMessage is wrapped by what [Parse] and [ParseStrict] return for JSON
// that is no JSON-RPC message, and for text that is no JSON.
var ErrNotMessage = errors.New("not a JSON-RPC message")

// Parse reads a message from a server. Unknown members are left out, the last
// of two equal ones counts, and so does a result beside an error that is null,
// as JSON-RPC 1.0 has it. The message aliases frame.
func Parse(frame []byte) (*Message, error) {
	members, err := readMembers(frame, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotMessage, err)
	}
	return assemble(members)
}

// ParseStrict reads a message from a client, whose content decides what it may
// do. It refuses members that are there twice at any depth, and members of the
// message or of its params whose names differ only in case, since another
// decoder could read the other one. Params have no blanks: where frame has some
// they are written again from their tokens; their order and the text of numbers
// and strings stay. All else aliases frame.
func ParseStrict(frame []byte) (*Message, error) {
	if err := uncrowded(frame); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotMessage, err)
	}
	members, err := readMembers(frame, jsontext.AllowInvalidUTF8(true))
	if err == nil {
		err = distinct(members)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotMessage, err)
	}
	m, err := assemble(members)
	if err != nil || m.Params == nil {
		return m, err
	}
	if m.Params, err = onLine(m.Params); err != nil {
		return nil, fmt.Errorf("%w: params: %w", ErrNotMessage, err)
	}
	obj, err := parseLine(m.Params)
	if errors.Is(err, errNotObject) {
		return m, nil // whose content was read above
	}
	if err != nil {
		return nil, fmt.Errorf("%w: params: %w", ErrNotMessage, err)
	}
	m.params = obj.Members
	return m, nil
}

// ParseBatch splits a JSON-RPC batch, which only revision 2025-03-26 has, into
// the frames of its messages. ok is false when frame is no JSON array.
func ParseBatch(frame []byte) (frames []Raw, ok bool, err error) {
	if len(frame) == 0 || frame[0] != '[' {
		return nil, false, nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(frame),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return nil, true, err
	}
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, true, fmt.Errorf("%w: %w", ErrNotMessage, err)
		}
		if len(frames) == maxMembers {
			return nil, true, &CrowdedError{"messages in a batch", maxMembers}
		}
		frames = append(frames, v.Clone())
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, true, fmt.Errorf("%w: %w", ErrNotMessage, err)
	}
	if rest := bytes.TrimSpace(dec.UnreadBuffer()); len(rest) > 0 {
		return nil, true, fmt.Errorf("%w: %d bytes follow the batch", ErrNotMessage, len(rest))
	}
	return frames, true, nil
}

// assemble makes a message of the members of its top level.
func assemble(members []Member) (*Message, error) {
	m, version := new(Message), Raw(nil)
	hasID, err := false, error(nil)
	for i := range members {
		v := members[i].Value
		switch members[i].Name {
		case "jsonrpc":
			version = v
		case "id":
			if m.ID, err = ParseID(v); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrNotMessage, err)
			}
			hasID = true
		case "method":
			if m.Method, err = Text(v); err != nil || m.Method == "" {
				return nil, fmt.Errorf("%w: the method is no name", ErrNotMessage)
			}
		case "params":
			m.Params = v
		case "result":
			m.Result = v
		case "error":
			m.Error = v
		}
	}
	if m.Result != nil && m.Error.Kind() == 'n' {
		m.Error = nil
	}
	return m, m.check(version, hasID)
}

// check holds a message against section 4 and 5 of the JSON-RPC specification.
func (m *Message) check(version Raw, hasID bool) error {
	switch {
	case string(version) != `"2.0"`:
		return fmt.Errorf(`%w: no "jsonrpc":"2.0"`, ErrNotMessage)
	case m.Method != "" && hasID && m.ID.IsZero():
		return fmt.Errorf("%w: the id of a request is null", ErrNotMessage)
	case m.Method == "" && !hasID:
		return fmt.Errorf("%w: neither a method nor an id", ErrNotMessage)
	case m.Method == "" && (m.Result == nil) == (m.Error == nil):
		return fmt.Errorf("%w: a response has either a result or an error", ErrNotMessage)
	}
	return nil
}

// Append appends the message as one line of JSON without a newline.
func (m *Message) Append(dst []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if !m.ID.IsZero() || m.Method == "" {
		dst = append(append(dst, `,"id":`...), m.ID.Raw()...)
	}
	if m.Method != "" {
		dst = append(dst, `,"method":`...)
		dst, _ = jsontext.AppendQuote(dst, m.Method) // only replaces invalid UTF-8
	}
	dst = appendMember(dst, `,"params":`, m.Params)
	dst = appendMember(dst, `,"result":`, m.Result)
	dst = appendMember(dst, `,"error":`, m.Error)
	return append(dst, '}')
}

// Size is an upper bound, in bytes, of what Append appends.
func (m *Message) Size() int {
	return 64 + len(m.ID.text) + 2*len(m.Method) + len(m.Params) + len(m.Result) + len(m.Error)
}

func appendMember(dst []byte, name string, value Raw) []byte {
	if value == nil {
		return dst
	}
	dst = append(dst, name...)
	if isLine(value) {
		return append(dst, value...)
	}
	line, err := jsontext.AppendFormat(dst, value, jsontext.PreserveRawStrings(true),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil { // unreachable: every Raw here was parsed or made by garra
		return append(dst, "null"...)
	}
	return line
}

// Peek looks for the id of a text that is no message, and whether that was to be
// an answer. It is lenient: of text that is no JSON it finds nothing or something.
func Peek(frame []byte) (id ID, reply bool) {
	s := newTopScanner()
	s.write(frame)
	return s.id, !s.method
}

// isLine reports whether a value is on one line, wherever it is written: in a pipe
// \n ends one, in an event stream \r does too.
func isLine(value Raw) bool {
	return bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0
}

// smallMessage is up to how many bytes copying a message is cheaper than writing it
// in pieces.
const smallMessage = 32 << 10

// Pieces returns what Append appends, cut so that a long value is not copied.
// Nobody writes to them.
func (m *Message) Pieces() [][]byte {
	value := m.Result
	if m.Method != "" || len(value) < smallMessage || !isLine(value) {
		return [][]byte{m.Append(make([]byte, 0, m.Size()))}
	}
	head := make([]byte, 0, 64+len(m.ID.text))
	head = append(append(head, `{"jsonrpc":"2.0","id":`...), m.ID.Raw()...)
	return [][]byte{append(head, `,"result":`...), value, []byte("}")}
}

// NewRequest returns a request. Params may be nil.
func NewRequest(id ID, method string, params Raw) *Message {
	return &Message{ID: id, Method: method, Params: params}
}

// NewNotification returns a notification. Params may be nil.
func NewNotification(method string, params Raw) *Message {
	return &Message{Method: method, Params: params}
}

// NewResult returns the response with a result to the request id.
func NewResult(id ID, result Raw) *Message { return &Message{ID: id, Result: result} }

// NewError returns the response with an error to the request id; the zero ID
// becomes null, as JSON-RPC has it where the request's id can't be told.
func NewError(id ID, err *Error) *Message { return &Message{ID: id, Error: err.Raw()} }

// IsSyntaxError reports whether err, from parsing a message, is about text that
// is no JSON at all, which JSON-RPC answers with -32700.
func IsSyntaxError(err error) bool {
	e, ok := errors.AsType[*jsontext.SyntacticError](err)
	return ok && !errors.Is(e, jsontext.ErrDuplicateName) || errors.Is(err, io.ErrUnexpectedEOF)
}
