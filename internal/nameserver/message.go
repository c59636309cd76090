// SPDX-License-Identifier: Apache-2.0

package nameserver

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
)

// The little of DNS messages (RFC 1035) that a resolver for one question at a time needs.

// Types and the class of resource records.
const (
	typeA     = 1
	typeAAAA  = 28
	typeOPT   = 41 // EDNS (RFC 6891)
	classINET = 1
)

// An rcode says what came of a question.
type rcode byte

const (
	success     rcode = 0
	formatError rcode = 1
	failure     rcode = 2
	noSuchName  rcode = 3
	unsupported rcode = 4
	refused     rcode = 5
)

const (
	headerSize   = 12
	plainSize    = 512 // of an answer by UDP without EDNS
	largestSize  = 4096
	flagResponse = 1 << 15
	flagTruncate = 1 << 9
	flagRecurse  = 1<<8 | 1<<7 // desired, and available
	maskOpcode   = 0xf << 11
)

// A question is what a message asks.
type question struct {
	id      uint16
	name    string // without the last dot
	kind    uint16
	class   uint16
	raw     []byte // name, type and class, as they came
	recurse uint16 // whether recursion is desired, as the flag that it is
	size    int    // of the longest answer that it takes by UDP
	query   bool   // a standard one
}

// errName is why a question can't be answered.
var errName = errors.New("this is no name of a host")

// isQuestion reports whether a message is one that is answered at all.
func isQuestion(message []byte) bool {
	return len(message) >= headerSize && binary.BigEndian.Uint16(message[2:])&flagResponse == 0
}

// parseQuestion reads a message with one question. What follows that but the size that
// EDNS names is nothing that matters here. On an error there is enough in the question to
// answer that.
func parseQuestion(message []byte) (question, error) {
	q := question{size: plainSize}
	q.id = binary.BigEndian.Uint16(message)
	flags := binary.BigEndian.Uint16(message[2:])
	q.query, q.recurse = flags&maskOpcode == 0, flags&(1<<8)
	name, end, err := parseName(message, headerSize)
	if err != nil || len(message) < end+4 || binary.BigEndian.Uint16(message[4:]) != 1 {
		return q, errName
	}
	q.name, q.kind = name, binary.BigEndian.Uint16(message[end:])
	q.class = binary.BigEndian.Uint16(message[end+2:])
	q.raw = message[headerSize : end+4]
	// The pseudo-record of EDNS: the root's name, the type, and the size as its class.
	if rest := message[end+4:]; len(rest) >= 11 && rest[0] == 0 && binary.BigEndian.Uint16(rest[1:]) == typeOPT {
		q.size = min(max(plainSize, int(binary.BigEndian.Uint16(rest[3:]))), largestSize)
	}
	return q, nil
}

// parseName reads a name that isn't compressed, which those of questions never are, and
// returns where it ends. A label with a dot or a byte that no host name has is none.
func parseName(message []byte, at int) (name string, end int, err error) {
	var labels []string
	for total := 0; at < len(message); {
		length := int(message[at])
		at++
		if length == 0 {
			return strings.Join(labels, "."), at, nil
		}
		if total += length + 1; length > 63 || total > 254 || at+length > len(message) {
			return "", 0, errName
		}
		label := string(message[at : at+length])
		if strings.ContainsFunc(label, notInNames) {
			return "", 0, errName
		}
		labels = append(labels, label)
		at += length
	}
	return "", 0, errName
}

func notInNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// answer writes the answer to a question, in at most size bytes: with fewer addresses
// and a flag that says so if need be.
func (q *question) answer(code rcode, addrs []netip.Addr, size int) []byte {
	flags := flagResponse | flagRecurse&^(1<<8) | q.recurse | uint16(code)
	out := make([]byte, headerSize, size)
	binary.BigEndian.PutUint16(out, q.id)
	if q.raw != nil {
		binary.BigEndian.PutUint16(out[4:], 1)
		out = append(out, q.raw...)
	}
	count := 0
	for _, addr := range addrs {
		record := q.record(addr)
		if len(out)+len(record) > size {
			flags |= flagTruncate
			break
		}
		out = append(out, record...)
		count++
	}
	binary.BigEndian.PutUint16(out[2:], flags)
	binary.BigEndian.PutUint16(out[6:], uint16(count))
	return out
}

// record writes one address of the question's name.
func (q *question) record(addr netip.Addr) []byte {
	data := addr.AsSlice()
	record := []byte{0xc0, headerSize} // the name is where the question's is
	record = binary.BigEndian.AppendUint16(record, q.kind)
	record = binary.BigEndian.AppendUint16(record, q.class)
	record = binary.BigEndian.AppendUint32(record, uint32(keptFor.Seconds()))
	record = binary.BigEndian.AppendUint16(record, uint16(len(data)))
	return append(record, data...)
}
