// SPDX-License-Identifier: Apache-2.0

package protocol

// A Revision names a revision of the MCP specification by its date.
type Revision string

// The revisions, oldest first. Those of the handshake era begin with initialize;
// since 2026-07-28 each request says for itself who asks and how.
const (
	Revision20241105 Revision = "2024-11-05"
	Revision20250326 Revision = "2025-03-26"
	Revision20250618 Revision = "2025-06-18"
	Revision20251125 Revision = "2025-11-25"
	Revision20260728 Revision = "2026-07-28"
)

// LatestHandshake is the newest revision that begins with initialize, and what
// garra asks a server of that era for. LatestStateless is the newest one without.
const (
	LatestHandshake = Revision20251125
	LatestStateless = Revision20260728
)

// Revisions are all that garra speaks, newest first.
func Revisions() []Revision {
	return []Revision{
		Revision20260728, Revision20251125, Revision20250618, Revision20250326, Revision20241105,
	}
}

// Stateless reports whether r is of the era without a handshake, be it known or
// not.
func (r Revision) Stateless() bool { return r >= Revision20260728 }

// Known reports whether garra speaks the revision of the handshake era.
func (r Revision) Known() bool {
	switch r {
	case Revision20241105, Revision20250326, Revision20250618, Revision20251125:
		return true
	}
	return false
}

// Negotiate returns the revision that a session has when the client asks for r
// and the gateway speaks at most newest: r itself, or newest when r is unknown
// or newer (MCP specification, "Lifecycle", version negotiation). Revisions
// compare as text because they are dates.
func (r Revision) Negotiate(newest Revision) Revision {
	if !r.Known() || r > newest {
		return newest
	}
	return r
}

// HasBatches reports whether JSON-RPC batches exist in the revision.
func (r Revision) HasBatches() bool { return r == Revision20250326 }

// Methods that the gateway itself has to know. Every other one is carried.
const (
	MethodInitialize    = "initialize"
	MethodPing          = "ping"
	MethodToolsList     = "tools/list"
	MethodToolsCall     = "tools/call"
	MethodPromptsList   = "prompts/list"
	MethodPromptsGet    = "prompts/get"
	MethodResourcesList = "resources/list"
	MethodTemplatesList = "resources/templates/list"
	MethodResourcesRead = "resources/read"
	MethodSubscribe     = "resources/subscribe"
	MethodUnsubscribe   = "resources/unsubscribe"
	MethodComplete      = "completion/complete"
	MethodSetLevel      = "logging/setLevel"
	MethodRootsList     = "roots/list"
	MethodSampling      = "sampling/createMessage"
	MethodElicit        = "elicitation/create"
	MethodDiscover      = "server/discover"
	MethodListen        = "subscriptions/listen"

	NoteInitialized      = "notifications/initialized"
	NoteCancelled        = "notifications/cancelled"
	NoteProgress         = "notifications/progress"
	NoteMessage          = "notifications/message"
	NoteToolsChanged     = "notifications/tools/list_changed"
	NotePromptsChanged   = "notifications/prompts/list_changed"
	NoteResourcesChanged = "notifications/resources/list_changed"
	NoteResourceUpdated  = "notifications/resources/updated"
	NoteRootsChanged     = "notifications/roots/list_changed"
	NoteAcknowledged     = "notifications/subscriptions/acknowledged"
)
