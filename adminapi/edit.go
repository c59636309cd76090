// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/source"
)

// maxEntry bounds the entry of a server in a request, in bytes.
const maxEntry = 1 << 20

// An Editor changes the configuration, and has the gateway apply that before it
// returns. Errors that are no *[Error] are faults of garra's own.
type Editor interface {
	// Add makes a server of fields, an object in JSON.
	Add(ctx context.Context, name string, fields []byte, o EditOptions) (EditResult, error)
	// Change sets fields of a server; null removes one.
	Change(ctx context.Context, name string, fields map[string]json.RawMessage, o EditOptions) (EditResult, error)
	// MayRemove returns why Remove would fail, as far as that can be known.
	MayRemove(ctx context.Context, name string, o EditOptions) error
	// Remove takes a server out of the configuration.
	Remove(ctx context.Context, name string, o EditOptions) (EditResult, error)
	// Tag identifies the text of a server's entry; empty when there is none.
	Tag(name string) string
}

// EditOptions say how a change is made.
type EditOptions struct {
	// Tag is what [Editor.Tag] returned for the entry that is to be changed; empty
	// changes whatever is there.
	Tag string
	// AllowPlaintext lets secrets be written to the file where there is no vault.
	AllowPlaintext bool
	// Isolated keeps garra's environment from the server, whatever its entry says.
	Isolated bool
}

// An EditResult is what a change did besides.
type EditResult struct {
	Moved   []MovedSecret `json:"moved"`
	Removed []string      `json:"removed_secrets"`
	// Warnings are what a person should know about the entry as it is now.
	Warnings []string `json:"warnings"`
}

// A MovedSecret is one that the vault has now, with a reference in its place.
type MovedSecret struct {
	Field string `json:"field"`
	Key   string `json:"key"`
}

// A Created is the answer to a change: the server as it is now, and what was moved.
type Created struct {
	gateway.ServerInfo
	Moved    []MovedSecret `json:"moved"`
	Warnings []string      `json:"warnings"`
}

// A Deleted is the answer to the removal of a server.
type Deleted struct {
	Name    string   `json:"name"`
	Deleted bool     `json:"deleted"`
	Removed []string `json:"removed_secrets"`
}

// A member is one of an object, whose order is kept.
type member struct {
	name  string
	value json.RawMessage
}

// readEntry reads the body of a request as one object without a name twice.
func readEntry(w http.ResponseWriter, r *http.Request) ([]member, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEntry))
	if err != nil {
		return nil, errorf(http.StatusRequestEntityTooLarge, "http.body", "send less than 1 MiB",
			"the body is too large")
	}
	members, err := readObject(data)
	if err != nil {
		return nil, errorf(http.StatusBadRequest, "http.body",
			`send an object such as {"name": "files", "command": "…"}`, "the body is no JSON object: %v", err)
	}
	for _, m := range members {
		name := strings.ReplaceAll(m.name, "_", "")
		if strings.EqualFold(name, "inheritEnv") && string(m.value) == "true" {
			return nil, errorf(http.StatusUnprocessableEntity, "env.inherited",
				"name the variables that it needs in env, or write inheritEnv into the file by hand",
				"no server is let inherit garra's environment over the API")
		}
	}
	return members, nil
}

// readObject reads an object in JSON.
func readObject(data []byte) ([]member, error) {
	in := json.NewDecoder(bytes.NewReader(data))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("it doesn't begin with {")
	}
	var members []member
	seen := make(map[string]bool)
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return nil, errors.New("it is broken")
		}
		m := member{name: key.(string)} // in an object, More is before a name
		if err := in.Decode(&m.value); err != nil {
			return nil, errors.New("it is broken")
		}
		if seen[m.name] {
			return nil, errors.New("a name stands in it twice")
		}
		seen[m.name] = true
		members = append(members, m)
	}
	if _, err := in.Token(); err != nil {
		return nil, errors.New("it is broken")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return members, nil
}

// editOptions are how a request wants its change made.
func (a *API) editOptions(r *http.Request) EditOptions {
	return EditOptions{
		Tag: strings.Trim(r.Header.Get("If-Match"), `"*`), AllowPlaintext: r.URL.Query().Has("allow_plaintext"),
	}
}

// create makes a server.
func (a *API) create(w http.ResponseWriter, r *http.Request) error {
	members, err := readEntry(w, r)
	if err != nil {
		return err
	}
	name, fields := "", []byte{'{'}
	for _, m := range members {
		if m.name == "name" {
			_ = json.Unmarshal(m.value, &name) // what is no text is no name
			continue
		}
		if len(fields) > 1 {
			fields = append(fields, ',')
		}
		quoted, err := json.Marshal(m.name)
		if err != nil {
			return err
		}
		fields = append(append(append(fields, quoted...), ':'), m.value...)
	}
	if name == "" {
		return errorf(http.StatusUnprocessableEntity, "server.invalid_name", `add "name"`, "the server has no name")
	}
	result, err := a.Editor.Add(r.Context(), name, append(fields, '}'), a.editOptions(r))
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/admin/mcp/"+name)
	a.edited(w, http.StatusCreated, name, result)
	return nil
}

// edited answers with a server as it is after a change.
func (a *API) edited(w http.ResponseWriter, status int, name string, result EditResult) {
	detail, _ := a.Gateway.Detail(name)
	w.Header().Set("ETag", `"`+a.Editor.Tag(name)+`"`)
	writeJSON(w, status, Created{
		detail.ServerInfo, append([]MovedSecret{}, result.Moved...), append([]string{}, result.Warnings...),
	})
}

// patch changes fields of a server.
func (a *API) patch(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	members, err := readEntry(w, r)
	if err != nil {
		return err
	}
	fields := make(map[string]json.RawMessage)
	for _, m := range members {
		fields[m.name] = m.value
	}
	if len(fields) == 0 {
		return errorf(http.StatusUnprocessableEntity, "http.body", "name a field and its value",
			"nothing is to be changed")
	}
	o := a.editOptions(r)
	o.Isolated = true
	result, err := a.Editor.Change(r.Context(), name, fields, o)
	if err != nil {
		return err
	}
	a.edited(w, http.StatusOK, name, result)
	return nil
}

// remove stops a server and takes it out of the configuration.
func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	name, o := r.PathValue("name"), a.editOptions(r)
	if a.Editor.Tag(name) == "" {
		return unknown(name)
	}
	if err := a.Editor.MayRemove(r.Context(), name, o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actionTimeout)
	defer cancel()
	ran := a.halt(ctx, name)
	result, err := a.Editor.Remove(ctx, name, o)
	if err != nil {
		if control, ok := a.Gateway.Source(name).(source.Controller); ok && ran {
			_ = control.Start(ctx) // as it was; what comes of it shows in its state
		}
		return err
	}
	writeJSON(w, http.StatusOK, Deleted{name, true, append([]string{}, result.Removed...)})
	return nil
}

// enable lets a server run, without garra's environment, and waits until it does.
func (a *API) enable(w http.ResponseWriter, r *http.Request, name string) error {
	o := a.editOptions(r)
	o.Isolated = true
	fields := map[string]json.RawMessage{"disabled": json.RawMessage("null")}
	if _, err := a.Editor.Change(r.Context(), name, fields, o); err != nil {
		return err
	}
	return a.perform(w, r, name, "start")
}

// disable stops a server for good, and waits until it is stopped.
func (a *API) disable(w http.ResponseWriter, r *http.Request, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actionTimeout)
	defer cancel()
	fields := map[string]json.RawMessage{"disabled": json.RawMessage("true")}
	if _, err := a.Editor.Change(ctx, name, fields, a.editOptions(r)); err != nil {
		return err
	}
	a.settled(ctx, name)
	writeJSON(w, http.StatusOK, a.result(name))
	return nil
}

// settled waits until a server that is being stopped is.
func (a *API) settled(ctx context.Context, name string) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		src := a.Gateway.Source(name)
		if src == nil || src.Status().State != source.Stopping {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// halt stops a server, and reports whether it ran.
func (a *API) halt(ctx context.Context, name string) (ran bool) {
	src := a.Gateway.Source(name)
	control, ok := src.(source.Controller)
	if !ok {
		return false
	}
	state := src.Status().State
	_ = control.Stop(ctx) // one that is disabled or failed doesn't run
	return state != source.Stopped && state != source.Disabled
}
