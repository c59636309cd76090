// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/source"
)

func TestListAndInspect(t *testing.T) {
	r := newRig(t, map[string]entry{
		"one": misbehaving("--instructions", "be good").with("env", map[string]string{"KEY": "secret-value"}),
		"off": misbehaving().with("disabled", true),
	})
	r.state("one", source.Ready)
	detail := r.ok("GET", "/admin/mcp/one?wait=1")
	for key, want := range map[string]any{
		"name": "one", "transport": "stdio", "enabled": true, "state": "ready", "instructions": "be good",
		"restarts": 0.0, "last_error": nil,
	} {
		if detail[key] != want {
			t.Errorf("%s is %v, want %v", key, detail[key], want)
		}
	}
	for _, key := range []string{
		"source", "pid", "tools", "env", "memory", "sandbox", "resources", "prompts", "protocol_version", "stderr_tail",
	} {
		if detail[key] == nil {
			t.Errorf("there is no %s", key)
		}
	}
	list, err := r.client.List(t.Context())
	servers := list.Servers
	if err != nil || len(servers) != 2 || servers[0].Name != "off" || servers[1].State != source.Ready {
		t.Fatalf("%+v %v", servers, err)
	}
	if servers[0].State != source.Disabled || servers[0].PID != nil || servers[0].Tools != nil {
		t.Errorf("a disabled server is %+v", servers[0])
	}
	if env := servers[1].Env; !slices.Contains(env.Names, "KEY") || env.From["KEY"] == "secret-value" {
		t.Errorf("its environment is %+v", env)
	}
	r.failing("GET", "/admin/mcp/nobody", http.StatusNotFound, "server.unknown", "")
}

func TestStartStopRestart(t *testing.T) {
	r := newRig(t, map[string]entry{"one": misbehaving()})
	r.state("one", source.Ready)
	before := r.ok("GET", "/admin/mcp/one")["pid"]
	body := r.ok("POST", "/admin/mcp/one/restart")
	env, _ := body["env"].(map[string]any)
	tools, _ := body["tools"].(float64)
	if body["name"] != "one" || body["state"] != "ready" || body["pid"] == before || body["pid"] == nil || tools < 1 ||
		env["mode"] != "isolated" || env["was"] != nil {
		t.Errorf("restart answers %v", body)
	}
	r.ok("POST", "/admin/mcp/one/stop")
	r.state("one", source.Stopped)
	result, err := r.client.Act(t.Context(), "one", "start")
	if err != nil || result.State != source.Ready || result.PID == nil || result.Tools == nil {
		t.Errorf("start answers %+v, %v", result, err)
	}
	r.failing("POST", "/admin/mcp/nobody/restart", http.StatusNotFound, "server.unknown", "")
	r.failing("POST", "/admin/mcp/one/explode", http.StatusNotFound, "http.not_found", "")
}

func TestRestartIsolates(t *testing.T) {
	t.Setenv("GARRA_CANARY", "secret-value")
	r := newRig(t, map[string]entry{"one": misbehaving().with("inheritEnv", true)})
	r.state("one", source.Ready)
	if env, _ := r.ok("GET", "/admin/mcp/one")["env"].(map[string]any); env["mode"] != "inherited" {
		t.Fatalf("the test needs a server that inherits: %v", env)
	}
	result, err := r.client.Act(t.Context(), "one", "restart")
	if err != nil || result.Env.Mode != source.EnvIsolated || result.Env.Was != source.EnvInherited ||
		!slices.Contains(result.Env.Dropped, "GARRA_CANARY") || slices.Contains(result.Env.Names, "GARRA_CANARY") {
		t.Errorf("restart answers %+v, %v", result, err)
	}
}

func TestStartsThatFail(t *testing.T) {
	r := newRig(t, map[string]entry{
		"exits":  misbehaving("--exit-at-start", "--exit-code", "3").with("maxRestarts", 0),
		"absent": {"command": "no-such-program"},
		"hangs":  misbehaving("--never-init").with("timeoutSecs", 0.5).with("maxRestarts", 0),
		"off":    misbehaving().with("disabled", true),
		"vault":  misbehaving().with("env", map[string]string{"KEY": "vault:key"}),
	})
	r.failing("POST", "/admin/mcp/exits/restart", http.StatusBadGateway, "server.crashed", "parked")
	r.failing("POST", "/admin/mcp/absent/restart", http.StatusBadGateway, "server.failed", "failed")
	r.failing("POST", "/admin/mcp/hangs/start", http.StatusGatewayTimeout, "call.timeout", "parked")
	r.failing("POST", "/admin/mcp/off/start", http.StatusConflict, "server.disabled", "disabled")
	r.failing("POST", "/admin/mcp/vault/restart", http.StatusBadGateway, "secret.missing", "failed")
	_, err := r.client.Act(t.Context(), "absent", "restart")
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Status != http.StatusBadGateway || e.Name != "absent" || e.State != "failed" || e.Fix == "" ||
		!strings.Contains(e.Error(), `"no-such-program" not found`) {
		t.Errorf("the client returns %+v", err)
	}
}

func TestReload(t *testing.T) {
	r := newRig(t, nil)
	r.ok("POST", "/admin/reload")
	r.refuse = true
	r.failing("POST", "/admin/reload", http.StatusUnprocessableEntity, "config.refused", "")
}

func TestReadyWhenEveryServerWasTried(t *testing.T) {
	r := newRig(t, map[string]entry{
		"slow": misbehaving("--slow-init", "1s"), "broken": {"command": "no-such-program"},
		"lazy": misbehaving().with("start", "lazy"),
	})
	status, body := r.ask("GET", "/readyz")
	if status != http.StatusServiceUnavailable || body["ready"] != false {
		t.Errorf("while a server starts: %d %v", status, body)
	}
	if body := r.ok("GET", "/healthz"); body["ok"] != true {
		t.Errorf("healthz: %v", body)
	}
	r.state("slow", source.Ready)
	r.state("broken", source.Failed)
	// A server that is ready counts once its tools were listed.
	r.eventually("readyz says that all were tried", func() bool {
		status, _ := r.ask("GET", "/readyz")
		return status == http.StatusOK
	})
	body = r.ok("GET", "/readyz")
	servers, _ := body["servers"].(map[string]any)
	if body["ready"] != true || servers["slow"] != "ready" || servers["broken"] != "failed" {
		t.Errorf("once all were tried: %v", body)
	}
}

func TestUnknownRoutes(t *testing.T) {
	r := newRig(t, nil)
	r.failing("GET", "/nothing", http.StatusNotFound, "http.not_found", "")
	r.failing("DELETE", "/admin/reload", http.StatusMethodNotAllowed, "http.method", "")
	r.failing("POST", "/admin/events", http.StatusMethodNotAllowed, "http.method", "")
	r.failing("POST", attachPath, http.StatusUpgradeRequired, "http.upgrade", "")
	r.failing("POST", attachPath+"?server=nobody", http.StatusNotFound, "server.unknown", "")
}
