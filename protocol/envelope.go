// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"fmt"
)

// The members of _meta by which a request of the stateless era says who asks and
// how, and a result who answers (MCP 2026-07-28, "Stateless protocol").
const (
	metaPrefix         = "io.modelcontextprotocol/"
	MetaRevision       = metaPrefix + "protocolVersion"
	MetaCapabilities   = metaPrefix + "clientCapabilities"
	MetaClientInfo     = metaPrefix + "clientInfo"
	MetaLogLevel       = metaPrefix + "logLevel"
	MetaServerInfo     = metaPrefix + "serverInfo"
	MetaSubscriptionID = metaPrefix + "subscriptionId"
)

// An Envelope is what a request of the stateless era says of itself.
type Envelope struct {
	Revision     Revision
	Capabilities Raw    // of the client
	ClientInfo   Raw    // nil when absent
	LogLevel     string // empty: the client wants no log messages
}

// ReadEnvelope reads the envelope in the params of a request. There is none, and
// no error, when the params name no revision of that era.
func ReadEnvelope(params Raw) (*Envelope, error) {
	if !bytes.Contains(params, []byte("protocolVersion")) {
		return nil, nil
	}
	meta := Meta(params)
	if meta == nil {
		return nil, nil
	}
	revision, err := Text(meta.Get(MetaRevision))
	if err != nil || !Revision(revision).Stateless() {
		return nil, nil
	}
	e := &Envelope{
		Revision: Revision(revision), Capabilities: meta.Get(MetaCapabilities), ClientInfo: meta.Get(MetaClientInfo),
	}
	if e.Capabilities.Kind() != '{' {
		return e, fmt.Errorf("_meta has no object %q", MetaCapabilities)
	}
	if level := meta.Get(MetaLogLevel); level != nil {
		if e.LogLevel, err = Text(level); err != nil {
			return e, fmt.Errorf("%q in _meta: %w", MetaLogLevel, err)
		}
	}
	return e, nil
}

// Meta returns the _meta of params or a result, nil when there is none.
func Meta(of Raw) *Object {
	if of == nil {
		return nil
	}
	obj, err := ParseObject(of)
	if err != nil {
		return nil
	}
	meta, err := ParseObject(obj.Get("_meta"))
	if err != nil {
		return nil
	}
	return meta
}

// MetaValue returns a member of the _meta of params or a result, nil when there is
// none.
func MetaValue(of Raw, name string) Raw {
	if meta := Meta(of); meta != nil {
		return meta.Get(name)
	}
	return nil
}

// Put writes the envelope into the params of a request, instead of the one that
// may be there.
func (e *Envelope) Put(params Raw) Raw {
	return editMeta(params, func(meta *Object) {
		meta.Set(MetaRevision, Quote(string(e.Revision)))
		meta.Set(MetaCapabilities, e.Capabilities)
		if e.ClientInfo != nil {
			meta.Set(MetaClientInfo, e.ClientInfo)
		}
		if e.LogLevel != "" {
			meta.Set(MetaLogLevel, Quote(e.LogLevel))
		}
	})
}

// Open takes the envelope out of the params of a request.
func Open(params Raw) Raw {
	if Meta(params) == nil {
		return params
	}
	return editMeta(params, func(meta *Object) {
		for _, name := range []string{MetaRevision, MetaCapabilities, MetaClientInfo, MetaLogLevel} {
			meta.Delete(name)
		}
	})
}

// editMeta edits the _meta of an object; one that is empty then isn't there.
func editMeta(raw Raw, edit func(meta *Object)) Raw {
	obj, err := ParseObject(raw)
	if err != nil {
		obj = &Object{} // params are an object, or absent
	}
	meta, err := ParseObject(obj.Get("_meta"))
	if err != nil {
		meta = &Object{}
	}
	edit(meta)
	if len(meta.Members) == 0 {
		obj.Delete("_meta")
	} else {
		obj.Set("_meta", meta.Raw())
	}
	return obj.Raw()
}

// WithMeta sets one member of the _meta of an object.
func WithMeta(raw Raw, name string, value Raw) Raw {
	return editMeta(raw, func(meta *Object) { meta.Set(name, value) })
}

// WithoutMeta takes one member of the _meta of an object out.
func WithoutMeta(raw Raw, name string) Raw {
	return editMeta(raw, func(meta *Object) { meta.Delete(name) })
}

// Stamp makes a result that of the stateless era, where each has a type and says
// who answers. Members that are there stay.
func Stamp(result, serverInfo Raw) Raw {
	obj, err := ParseObject(result)
	if err != nil {
		return result
	}
	if obj.Get("resultType") == nil {
		obj.Set("resultType", Raw(`"complete"`))
	}
	meta, err := ParseObject(obj.Get("_meta"))
	if err != nil {
		meta = &Object{}
	}
	if serverInfo != nil && meta.Get(MetaServerInfo) == nil {
		meta.Set(MetaServerInfo, serverInfo)
		obj.Set("_meta", meta.Raw())
	}
	return obj.Raw()
}
