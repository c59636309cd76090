// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"slices"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A parting is how a gateway goes.
type parting int32

const (
	stays parting = iota
	stops         // what is new is refused
	moves         // another gateway takes what is new
)

// Drain refuses what is asked from now on, and ends each session once what it had
// asked is answered. It returns when all have ended, or with ctx; how many had not by
// then is what it returns.
func (g *Gateway) Drain(ctx context.Context) (busy int) { return g.part(ctx, stops) }

// HandOver is Drain for a gateway whose place another has taken: over HTTP its sessions
// are gone for what is new, so that their clients initialize again and get the other. A
// client on a pipe has no way there while its session lives, and is served until then.
func (g *Gateway) HandOver(ctx context.Context) (busy int) { return g.part(ctx, moves) }

func (g *Gateway) part(ctx context.Context, how parting) int {
	g.parting.Store(int32(how))
	for {
		idle := g.idle.wait()
		busy := 0
		for _, s := range g.allSessions() {
			if s.isBusy() {
				busy++
			} else {
				s.close()
			}
		}
		if busy == 0 {
			return 0
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return busy
		}
	}
}

// isBusy reports whether an answer to the client is due.
func (s *Session) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active > 0
}

func (g *Gateway) is(how parting) bool { return g.parting.Load() == int32(how) }

// refusal is why a gateway that stops takes no request.
func refusal() *source.Failure {
	return &source.Failure{
		Code: source.GatewayAway, Message: "the gateway is stopping and takes nothing new; nothing was done",
		Fix: "call again once it is back",
	}
}

// moved answers what a client asks in a session whose gateway has handed over, and
// reports whether it had to: as for any session that is over (MCP specification,
// "Transports", session management), since it is where the client will find it.
func (h *httpHandler) moved(w http.ResponseWriter, messages ...*protocol.Message) bool {
	if !h.gateway.is(moves) || !slices.ContainsFunc(messages, (*protocol.Message).IsRequest) {
		return false
	}
	refuse(w, http.StatusNotFound, protocol.CodeInvalidRequest,
		"another gateway has taken the place of this session's; initialize again")
	return true
}
