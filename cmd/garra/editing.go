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
	defer e.isolating(name, o.Isolated)()
	result, err := e.editor(o).Add(name, fields)
	return e.done(ctx, name, result, err)
}

// Change implements adminapi.Editor.
func (e editing) Change(
	ctx context.Context, name string, fields map[string]json.RawMessage, o adminapi.EditOptions,
) (adminapi.EditResult, error) {
	defer e.isolating(name, o.Isolated)()
	result, err := e.editor(o).Change(name, o.Tag, fields)
	return e.done(ctx, name, result, err)
}

// Remove implements adminapi.Editor.
func (e editing) Remove(ctx context.Context, name string, o adminapi.EditOptions) (adminapi.EditResult, error) {
	result, err := e.editor(o).Remove(name, o.Tag)
	if err != nil {
		_ = e.reload(ctx) // whatever of it was written is in force; what is wrong was said
	}
	return e.done(ctx, name, result, err)
}

// MayRemove implements adminapi.Editor.
func (e editing) MayRemove(_ context.Context, name string, o adminapi.EditOptions) error {
	editor := e.editor(o)
	editor.Dry = true
	if _, err := editor.Remove(name, o.Tag); err != nil {
		return editError(name, err)
	}
	return nil
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
	ctx context.Context, name string, result *edits.Result, err error,
) (adminapi.EditResult, error) {
	if err != nil {
		return adminapi.EditResult{}, editError(name, err)
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
	for _, f := range result.Findings {
		of.Warnings = append(of.Warnings, findingText(f))
	}
	return of, nil
}

// isolating has each load isolate a server, if that is wanted, until the edit is done.
func (e *engine) isolating(name string, wanted bool) (done func()) {
	if !wanted {
		return func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isolate == nil {
		e.isolate = make(map[string]int)
	}
	e.isolate[name]++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.isolate[name]--; e.isolate[name] == 0 {
			delete(e.isolate, name)
		}
	}
}

// editError is why a change was not made, as an answer of the API.
func editError(name string, err error) error {
	answer := refusal(err)
	answer.Name, answer.Message = name, err.Error()
	return answer
}

// refusal says of what kind an error is, and what can be done about it.
func refusal(err error) *adminapi.Error {
	refused, isRefused := errors.AsType[*edits.Refused](err)
	_, isLocked := errors.AsType[*edits.Locked](err)
	_, isConflict := errors.AsType[*mcpconfig.ConflictError](err)
	_, isBroken := errors.AsType[*mcpconfig.FileError](err)
	switch {
	case isRefused:
		return &adminapi.Error{
			Status: http.StatusUnprocessableEntity, Code: string(refused.Findings[0].Code), Fix: refused.Advice(),
			Findings: refused.Findings,
		}
	case isLocked && errors.Is(err, vault.ErrNoVault):
		return &adminapi.Error{
			Status: http.StatusUnprocessableEntity, Code: "secret.plaintext",
			Fix: "make a vault with `garra vault init`, or allow the secret in the file with --allow-plaintext " +
				"(?allow_plaintext=1 over the API)",
		}
	case isLocked, errors.Is(err, vault.ErrWrongPassphrase):
		return &adminapi.Error{
			Status: http.StatusConflict, Code: adminapi.CodeVaultLocked, Fix: "open it with `garra vault unlock`",
		}
	case errors.Is(err, edits.ErrField):
		return &adminapi.Error{
			Status: http.StatusUnprocessableEntity, Code: "config.refused",
			Fix: "see `garra config schema` for what there is",
		}
	case errors.Is(err, edits.ErrExists):
		return &adminapi.Error{Status: http.StatusConflict, Code: "server.exists", Fix: "choose another name"}
	case errors.Is(err, edits.ErrUnknown):
		return &adminapi.Error{Status: http.StatusNotFound, Code: "server.unknown", Fix: "see `garra mcp list`"}
	case errors.Is(err, edits.ErrChanged), isConflict:
		return &adminapi.Error{
			Status: http.StatusPreconditionFailed, Code: "config.changed", Fix: "read it again, and change that",
		}
	case errors.Is(err, mcpconfig.ErrNotEditable):
		return &adminapi.Error{
			Status: http.StatusConflict, Code: "config.not_editable", Fix: "edit the file by hand",
		}
	case isBroken:
		return &adminapi.Error{
			Status: http.StatusConflict, Code: "config.refused", Fix: "mend it; see `garra config check`",
		}
	}
	return &adminapi.Error{Status: http.StatusInternalServerError, Code: "internal"}
}
