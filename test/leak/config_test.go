// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/garraia/garra/internal/misbehave"
)

// An entry is a server in mcp.json.
type entry map[string]any

// texts are the fields of a map of texts.
type texts map[string]string

// misbehaving is an entry of the server that says what it is told to.
func misbehaving(env texts, flags ...string) entry {
	path, args := misbehave.Command(flags...)
	return entry{"command": path, "args": args, "env": env, "restartDelaySecs": 0.1}
}

// configure writes the configuration: servers that run, and such as can't.
func (h *home) configure(remote string) {
	h.t.Helper()
	servers := h.healthy(remote)
	for name, of := range h.broken() {
		servers[name] = of
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		h.t.Fatal(err)
	}
	h.give(h.configPath("mcp.json"), string(text))
	h.give(h.configPath("full.env"), "FILE_SECRET="+h.canaries.value("env file")+"\n")
	garbage := h.give(h.configPath("place-"+h.canaries.value("place")+"/program"), "\x7fno program")
	if err := os.Chmod(garbage, 0o700); err != nil {
		h.t.Fatal(err)
	}
	stored := h.give(h.path("stored"), h.canaries.value("store")+"\n")
	half := h.give(h.path("half"), h.canaries.value("stale"))
	h.give(h.configPath("config.yml"), fmt.Sprintf(`secrets:
  shelf: [sh, -c, "cat %s"]
  shut: [sh, -c, "cat %s; echo locked >&2; exit 1"]
`, stored, half))
}

// healthy are the servers that start.
func (h *home) healthy(remote string) map[string]entry {
	value := h.canaries.value
	full := misbehaving(texts{
		"TOKEN": "vault:mcp.full.TOKEN", "SHARED": "x-${vault:SHARED}", "KEY": "vault:mcp.full.KEY",
		"ODD": "vault:mcp.full.ODD", "KEY_FILE": "vaultfile:mcp.full.FILE", "SHELF_TOKEN": "shelf:any",
		"API_KEY": value("plain"), "DATABASE_URL": value("database"), "GOOGLE_CREDENTIALS": value("account"),
		"HOST_TOKEN": "${X_TOKEN}",
	}, "--instructions", "the key is ${ARG_SECRET}")
	full["envFile"] = "full.env"
	slow := misbehaving(texts{"TOKEN": "vault:mcp.slow.TOKEN"})
	slow["callTimeoutSecs"] = 1
	placed := misbehaving(texts{})
	placed["cwd"] = "place-${PLACE_TOKEN}"
	crashy := misbehaving(texts{"TOKEN": "vault:mcp.crashy.TOKEN"})
	crashy["maxRestarts"] = 1
	crashy["command"], crashy["args"] = "/bin/sh", []string{"-c", `echo "no use for $TOKEN" >&2; env >&2; exit 3`}
	return map[string]entry{
		"full": full, "slow": slow, "placed": placed, "crashy": crashy,
		"other":   misbehaving(texts{"SHARED": "vault:SHARED"}),
		"guarded": misbehaving(texts{"BLOCK": "vault:BLOCK"}),
		"web": {
			"url": "http://user:" + value("url password") + "@" + remote + "/mcp?key=${vault:mcp.web.QUERY}",
			"headers": texts{
				"Authorization": "Bearer ${vault:mcp.web.HEADER}", "X-Api-Key": value("plain header"),
			},
			"oauth": entry{"clientId": "leak", "clientSecret": "${vault:mcp.web.CLIENT}"},
		},
		"refused": {
			"url": "http://" + remote + "/refuse?key=${vault:mcp.denied.TOKEN}", "maxRestarts": 0,
			"headers": texts{"Authorization": "Bearer ${vault:mcp.denied.TOKEN}"}, "env": texts{},
		},
	}
}

// broken are the servers that can't start, and one that isn't to.
func (h *home) broken() map[string]entry {
	value := h.canaries.value
	disabled := misbehaving(texts{"API_TOKEN": value("disabled")})
	disabled["disabled"] = true
	away := misbehaving(texts{})
	away["cwd"] = "gone/${CWD_TOKEN}"
	renamed := misbehaving(texts{})
	renamed["command"] = "/gone/${CWD_TOKEN}"
	garbled := misbehaving(texts{})
	garbled["command"] = h.configPath("place-${PLACE_TOKEN}/program")
	fileless := misbehaving(texts{"API_TOKEN": value("no file")})
	fileless["envFile"] = "gone-${CWD_TOKEN}.env"
	return map[string]entry{
		"disabled": disabled, "away": away, "renamed": renamed, "fileless": fileless, "garbled": garbled,
		"unset": misbehaving(texts{
			"TOKEN": "vault:mcp.unset.TOKEN", "OTHER_TOKEN": "${LEAK_UNSET}", "API_KEY": value("unset plain"),
		}),
		"missing": misbehaving(texts{"TOKEN": "vault:mcp.missing.TOKEN", "GONE": "vault:mcp.missing.GONE"}),
		"thief":   misbehaving(texts{"TOKEN": "vault:mcp.full.TOKEN"}),
		"shut":    misbehaving(texts{"TOKEN": "shut:any"}),
		"lost": {
			"command": "no-such-command-anywhere",
			"args":    []string{"--token", value("no command plain"), "${ARG_SECRET}", "${vault:mcp.lost.TOKEN}"},
		},
		"unreachable": {
			"url": "http://u:" + value("broken url") + "@127.0.0.1:1/?token=" + value("broken url"), "maxRestarts": 0,
		},
		"invalid": {"comand": "x", "env": texts{"TOKEN": value("invalid")}, "headers": value("bad header")},
	}
}

// spoil breaks mcp.json in the middle of a secret.
func (h *home) spoil() {
	h.t.Helper()
	half := h.canaries.value("bad header")
	h.give(h.configPath("mcp.json"), `{"mcpServers":{"x":{"command":"x","env":{"TOKEN":"`+half+`" "`+
		strings.Repeat(half, 2)+"\n\x01 "+half)
}
