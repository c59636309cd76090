// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/edits"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/internal/secrets"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

// editorIn changes the configuration of a place.
func editorIn(places place.Places, v edits.Vault, allowPlaintext bool) *edits.Editor {
	return &edits.Editor{
		Dir: places.ConfigDir, Lock: filepath.Join(places.RunDir, "edit.lock"), Vault: v,
		AllowPlaintext: allowPlaintext,
	}
}

// keptVault is the vault of a running gateway, whose servers follow.
type keptVault struct{ *secrets.Keeper }

// Update implements edits.Vault.
func (k keptVault) Update(change func(*vault.Edit) error) error {
	_, err := k.Keeper.Update(change)
	return err
}

// editing implements adminapi.Editor for a running gateway.
type editing struct{ *engine }

func (e editing) editor(o adminapi.EditOptions) *edits.Editor {
	return editorIn(e.places, keptVault{e.keeper}, o.AllowPlaintext)
}

// Add implements adminapi.Editor.
func (e editing) Add(
	ctx context.Context, name string, fields []byte, o adminapi.EditOptions,
) (adminapi.EditResult, error) {
	result, err := e.editor(o).Add(name, fields)
	return e.done(ctx, name, result, err, o)
}

// Change implements adminapi.Editor.
func (e editing) Change(
	ctx context.Context, name string, fields map[string]json.RawMessage, o adminapi.EditOptions,
) (adminapi.EditResult, error) {
	result, err := e.editor(o).Change(name, o.Tag, fields)
	return e.done(ctx, name, result, err, o)
}

// Remove implements adminapi.Editor.
func (e editing) Remove(ctx context.Context, name string, o adminapi.EditOptions) (adminapi.EditResult, error) {
	result, err := e.editor(o).Remove(name, o.Tag)
	return e.done(ctx, name, result, err, o)
}

// Tag implements adminapi.Editor.
func (e editing) Tag(name string) string {
	if server, ok := e.current().Entry(name); ok {
		return edits.Tag(server)
	}
	return ""
}

// done has the gateway apply what was written.
func (e editing) done(
	ctx context.Context, name string, result *edits.Result, err error, o adminapi.EditOptions,
) (adminapi.EditResult, error) {
	if err != nil {
		return adminapi.EditResult{}, editError(name, err)
	}
	if o.Isolated {
		e.isolateNext(name)
		defer e.isolateNext("")
	}
	if err := e.reload(ctx); err != nil {
		return adminapi.EditResult{}, &adminapi.Error{
			Status: http.StatusUnprocessableEntity, Code: "config.refused", Name: name,
			Message: "the change is written, but the configuration is refused: " + err.Error(),
			Fix:     "run `garra config check`",
		}
	}
	of := adminapi.EditResult{Removed: result.Removed}
	for _, m := range result.Moved {
		of.Moved = append(of.Moved, adminapi.MovedSecret{Field: m.Field, Key: m.Key})
	}
	return of, nil
}

// isolateNext names the server that the next load isolates.
func (e *engine) isolateNext(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isolate = name
}

// editError is why a change was not made, as an answer of the API.
func editError(name string, err error) error {
	answer := &adminapi.Error{Status: http.StatusInternalServerError, Code: "internal", Name: name, Message: err.Error()}
	refused, isRefused := errors.AsType[*edits.Refused](err)
	_, isConflict := errors.AsType[*mcpconfig.ConflictError](err)
	_, isBroken := errors.AsType[*mcpconfig.FileError](err)
	_, isLocked := errors.AsType[*edits.Locked](err)
	switch {
	case errors.Is(err, edits.ErrExists):
		answer.Status, answer.Code, answer.Fix = http.StatusConflict, "server.exists", "choose another name, or change that one"
	case errors.Is(err, edits.ErrUnknown):
		answer.Status, answer.Code, answer.Fix = http.StatusNotFound, "server.unknown", "see `garra mcp list`"
	case errors.Is(err, edits.ErrChanged), isConflict:
		answer.Status, answer.Code, answer.Fix = http.StatusPreconditionFailed, "config.changed", "read it again, and change that"
	case errors.Is(err, mcpconfig.ErrNotEditable):
		answer.Status, answer.Code, answer.Fix = http.StatusConflict, "config.not_editable", "edit the file by hand"
	case isRefused:
		answer.Status, answer.Code, answer.Fix = http.StatusUnprocessableEntity, string(refused.Findings[0].Code), refused.Advice()
		answer.Findings = refused.Findings
	case isLocked && errors.Is(err, vault.ErrNoVault):
		answer.Status, answer.Code = http.StatusUnprocessableEntity, string(mcpconfig.CodeSecretPlaintext)
		answer.Fix = "make a vault with `garra vault init`, or allow the secret in the file: --allow-plaintext, " +
			"and ?allow_plaintext over the API"
	case isLocked:
		answer.Status, answer.Code, answer.Fix = http.StatusConflict, adminapi.CodeVaultLocked, "open it with `garra vault unlock`"
	case isBroken:
		answer.Status, answer.Code, answer.Fix = http.StatusConflict, "file.unparsable", "mend it; see `garra config check`"
	default:
		answer.Status, answer.Code = http.StatusUnprocessableEntity, "config.refused"
	}
	return answer
}
