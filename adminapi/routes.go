// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/sse"
	"github.com/garraia/garra/source"
)

// actionTimeout bounds a start, stop or restart that a request asks for.
const actionTimeout = 5 * time.Minute

// A Reloader reads the configuration again and says what was wrong with it.
type Reloader func(ctx context.Context) error

// API is what the routes need.
type API struct {
	Gateway *gateway.Gateway
	Reload  Reloader
	Events  *Events
	// Loaded reports whether a configuration has been loaded.
	Loaded func() bool
	Vault  Vault
	// Refused returns why the files are not in force as they are now, empty when they
	// are; nil is for always.
	Refused func() string
	Editor  Editor
	// Handover hands over what garra listens on, over a connection of the socket; nil
	// where that can't be done.
	Handover func(conn *net.UnixConn, in io.Reader)
}

// A Listing is all servers of the configuration.
type Listing struct {
	Servers []gateway.ServerInfo `json:"servers"`
	// Refused is why the files are not in force as they are; empty when they are.
	Refused string `json:"refused,omitempty"`
}

// A RestartResult is the answer to a start or restart.
type RestartResult struct {
	Name  string          `json:"name"`
	State source.State    `json:"state"`
	PID   *int            `json:"pid"`
	Tools *int            `json:"tools"`
	Env   gateway.EnvInfo `json:"env"`
}

// routes returns everything that garra serves over HTTP, behind the callers'
// checks but not behind a door.
func (a *API) routes(open *streams) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, role Role, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, needs(role, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				writeError(w, err)
			}
		}))
	}
	handle("GET /admin/mcp", RoleViewer, a.list)
	handle("POST /admin/mcp", RoleAdmin, a.create)
	handle("GET /admin/mcp/{name}", RoleViewer, a.inspect)
	handle("PATCH /admin/mcp/{name}", RoleAdmin, a.patch)
	handle("DELETE /admin/mcp/{name}", RoleAdmin, a.remove)
	handle("GET /admin/mcp/{name}/logs", RoleViewer, open.track(a.logs))
	handle("POST /admin/mcp/{name}/{action}", RoleOperator, a.act)
	handle("GET /admin/events", RoleViewer, open.track(a.events))
	handle("POST /admin/reload", RoleOperator, a.reload)
	handle("GET /admin/vault", RoleViewer, a.showVault)
	handle("POST /admin/vault/unlock", RoleAdmin, a.unlockVault)
	handle("POST /admin/vault/refresh", RoleOperator, a.refreshVault)
	mcp := needsClient(a.Gateway.HTTP(principal))
	mux.Handle("/mcp", mcp)
	mux.Handle("/mcp/{server}", mcp)
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { writeError(w, elsewhere(mux, w, r)) })
	return mux
}

// elsewhere tells a path that is served by another HTTP method from one that is
// not served.
func elsewhere(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" {
			w.Header().Set("Allow", method)
			return errorf(http.StatusMethodNotAllowed, "http.method", "use "+method,
				"%.100q takes no %.20s", r.URL.Path, r.Method)
		}
	}
	return errorf(http.StatusNotFound, "http.not_found", "look the routes up in docs/admin-api.md",
		"there is nothing at %.100q", r.URL.Path)
}

func (a *API) list(w http.ResponseWriter, _ *http.Request) error {
	list := Listing{Servers: a.Gateway.Servers()}
	if a.Refused != nil {
		list.Refused = a.Refused()
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// inspect answers with everything about a server; ?wait=1 waits until one that
// starts is ready or can't be.
func (a *API) inspect(w http.ResponseWriter, r *http.Request) error {
	src := a.Gateway.Source(r.PathValue("name"))
	if src != nil && r.URL.Query().Has("wait") && mayBecomeKnown(src.Status()) {
		ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
		defer cancel()
		// Whatever comes of it shows in the detail.
		_ = a.Gateway.Known(ctx, r.PathValue("name"))
	}
	detail, ok := a.Gateway.Detail(r.PathValue("name"))
	if !ok {
		return unknown(r.PathValue("name"))
	}
	if a.Editor != nil {
		w.Header().Set("ETag", `"`+a.Editor.Tag(detail.Name)+`"`)
	}
	writeJSON(w, http.StatusOK, detail)
	return nil
}

// mayBecomeKnown reports whether what a server offers is worth waiting for.
func mayBecomeKnown(now source.Status) bool {
	return now.State == source.Starting || now.State == source.Ready || now.Asleep
}

// unknown is the error for a name that no server has.
func unknown(name string) error {
	return errorf(http.StatusNotFound, string(source.ServerUnknown), "see `garra mcp list`",
		"there is no server %.64q", name)
}

// act starts, stops, restarts, enables or disables a server and answers when that is
// done. It goes on when the client doesn't wait.
func (a *API) act(w http.ResponseWriter, r *http.Request) error {
	name, action := r.PathValue("name"), r.PathValue("action")
	switch action {
	case "start", "stop", "restart":
		return a.perform(w, r, name, action)
	case "enable":
		return a.enable(w, r, name)
	case "disable":
		return a.disable(w, r, name)
	}
	return errorf(http.StatusNotFound, "http.not_found", "", "there is no action %.40q", action)
}

// perform starts, stops or restarts a server.
func (a *API) perform(w http.ResponseWriter, r *http.Request, name, action string) error {
	src := a.Gateway.Source(name)
	if src == nil {
		return unknown(name)
	}
	control, ok := src.(source.Controller)
	if !ok {
		return errorf(http.StatusConflict, "server.no_process", "", "server %q has no process of garra's", name)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actionTimeout)
	defer cancel()
	var err error
	switch action {
	case "start":
		err = control.Start(ctx)
	case "stop":
		err = control.Stop(ctx)
	default:
		err = control.Restart(ctx)
	}
	if err == nil && src.Status().State == source.Ready {
		err = a.Gateway.Known(ctx, name)
	}
	if err != nil {
		e := asAPIError(err)
		e.Name, e.State = name, string(src.Status().State)
		return e
	}
	writeJSON(w, http.StatusOK, a.result(name))
	return nil
}

func (a *API) result(name string) RestartResult {
	detail, _ := a.Gateway.Detail(name)
	info := detail.ServerInfo
	return RestartResult{Name: info.Name, State: info.State, PID: info.PID, Tools: info.Tools, Env: info.Env}
}

func (a *API) reload(w http.ResponseWriter, r *http.Request) error {
	if err := a.Reload(r.Context()); err != nil {
		return errorf(http.StatusUnprocessableEntity, "config.refused", "run `garra config check`", "%v", err)
	}
	return a.list(w, r)
}

func (a *API) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}

// readyz is 200 once the configuration is loaded and every server was tried. It
// names servers only to who may see them.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	waiting := a.Gateway.Waiting()
	ready := a.Loaded() && len(waiting) == 0
	body := map[string]any{"ready": ready}
	if callerOf(r).admin {
		states := make(map[string]source.State)
		for _, info := range a.Gateway.Servers() {
			states[info.Name] = info.State
		}
		body["servers"] = states
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, body)
}

// A LogLine is one line of a server's standard error.
type LogLine struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server"`
	Line   string    `json:"line"`
	Seq    uint64    `json:"seq"`
	Note   bool      `json:"note,omitempty"` // garra says this, of the server's end
}

// logs answers with the lines that are kept, and follows them as server-sent
// events for a client that asks for that.
func (a *API) logs(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	src := a.Gateway.Source(name)
	if src == nil {
		return unknown(r.PathValue("name"))
	}
	logger, ok := src.(source.Logger)
	if !ok {
		return errorf(http.StatusConflict, "server.no_process", "", "server %q has no standard error", name)
	}
	if !wantsEvents(r) {
		lines, _ := logger.Logs(0)
		writeJSON(w, http.StatusOK, map[string]any{"lines": logLines(name, lines)})
		return nil
	}
	out := beginEvents(w)
	seq, _ := strconv.ParseUint(r.Header.Get("Last-Event-Id"), 10, 64) // absent is from the start
	for {
		lines, more := logger.Logs(seq)
		for _, line := range logLines(name, lines) {
			if out.send("line", fmt.Sprint(line.Seq), line) != nil {
				return nil
			}
			seq = line.Seq
		}
		if out.await(r.Context(), more) != nil {
			return nil // the client is gone
		}
	}
}

func logLines(server string, lines []source.Line) []LogLine {
	list := make([]LogLine, len(lines))
	for i, l := range lines {
		list[i] = LogLine{Time: l.Time, Server: server, Line: l.Text, Seq: l.Seq, Note: l.Note}
	}
	return list
}

// events sends everything that happens from now on, until the client is gone
// or too slow, which then connects again.
func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	events, leave := a.Events.subscribe()
	defer leave()
	out := beginEvents(w)
	quiet := time.NewTicker(sse.KeepAlive)
	defer quiet.Stop()
	for {
		var err error
		select {
		case e, ok := <-events:
			if !ok {
				return nil
			}
			err = out.send(e.Kind, "", e)
		case <-quiet.C:
			err = out.Comment()
		case <-r.Context().Done():
			return nil
		}
		if err != nil {
			return nil // the client is gone
		}
	}
}
