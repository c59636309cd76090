// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"time"

	"github.com/garraia/garra/protocol"
)

// An exchange is one request of a client while it runs. What the server says or
// asks meanwhile goes out with the request.
type exchange struct {
	ctx     context.Context // of the request; here since source.Client is called from outside of it
	session *Session
	method  string
	id      protocol.ID
	params  Raw
	message *protocol.Message // that has them
	out     outlet
	began   time.Time

	envelope *protocol.Envelope // of a request of the stateless era
	parley   *parley            // that it is a part of; nil when its client is asked directly
}

func newExchange(ctx context.Context, s *Session, m *protocol.Message, out outlet) *exchange {
	return &exchange{
		ctx: ctx, session: s, method: m.Method, id: m.ID, params: m.Params, message: m, out: out, began: time.Now(),
	}
}

// mayHold tells most texts that don't hold a word of ASCII from those that must be
// looked at: it can be written with escapes.
func mayHold(raw Raw, word string) bool {
	return bytes.Contains(raw, []byte(word)) || bytes.Contains(raw, []byte(`\u00`))
}

// progressToken is the token under _meta; zero when there is none.
func progressToken(params Raw) protocol.ID {
	if !mayHold(params, "progressToken") {
		return protocol.ID{}
	}
	token, err := protocol.ParseID(protocol.MetaValue(params, "progressToken"))
	if err != nil {
		return protocol.ID{}
	}
	return token
}
