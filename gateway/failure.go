// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// metaError is the key under which a failure of garra's own is described.
const metaError = "garra/error"

// describe is a failure as JSON: code, server, fix.
func describe(f *source.Failure) Raw {
	o := protocol.Object{}
	o.Set("code", protocol.Quote(string(f.Code)))
	o.Set("server", protocol.Quote(f.Server))
	o.Set("fix", protocol.Quote(f.Fix))
	return o.Raw()
}

// failedResult is the result of a tool call that did not reach its end.
func failedResult(f *source.Failure) Raw {
	meta := protocol.Object{}
	meta.Set(metaError, describe(f))
	result := textResult(f.Error())
	result.Set("isError", Raw("true"))
	result.Set("_meta", meta.Raw())
	return result.Raw()
}

// textResult is a result of a tool that says one thing.
func textResult(text string) *protocol.Object {
	content := protocol.Object{}
	content.Set("type", protocol.Quote("text"))
	content.Set("text", protocol.Quote(text))
	result := &protocol.Object{}
	result.Set("content", protocol.Array([]Raw{content.Raw()}))
	return result
}

// asError makes a JSON-RPC error of what went wrong: the server's own as it
// was written, a failure with its description as data.
func asError(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	f, ok := errors.AsType[*source.Failure](err)
	if !ok {
		return protocol.Errorf(protocol.CodeInternal, "%v", err)
	}
	data := protocol.Object{}
	data.Set(metaError, describe(f))
	return protocol.Errorf(protocol.CodeInternal, "%s", f.Error()).WithData(data.Raw())
}
