// SPDX-License-Identifier: Apache-2.0

package eras

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

func TestReadHello(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, result string
		want         *source.Hello
		fails        string // part of the failure
	}{
		{
			name: "everything",
			result: `{"x":1,"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},` +
				`"instructions":"be kind"}`,
			want: &source.Hello{
				Revision: protocol.Revision20250618, Capabilities: Raw(`{"tools":{"listChanged":true}}`),
				Instructions: "be kind",
			},
		},
		{
			name: "only what must be", result: `{"protocolVersion":"2024-11-05"}`,
			want: &source.Hello{Revision: protocol.Revision20241105},
		},
		{
			name:   "instructions of another type",
			result: `{"protocolVersion":"2024-11-05","instructions":["be","kind"]}`,
			want:   &source.Hello{Revision: protocol.Revision20241105},
		},
		{name: "no object", result: `[]`, fails: "its answer to initialize is"},
		{name: "null", result: `null`, fails: "its answer to initialize is"},
		{name: "no revision", result: `{"capabilities":{}}`, fails: "names no protocolVersion"},
		{name: "a number", result: `{"protocolVersion":20250618}`, fails: "names no protocolVersion"},
		{name: "an unknown one", result: `{"protocolVersion":"1.0"}`, fails: `revision "1.0"`},
		{
			name: "a long one", result: `{"protocolVersion":"` + strings.Repeat("9", 5000) + `"}`,
			fails: "which garra doesn't know",
		},
	} {
		got, err := ReadHello("s", Raw(test.result))
		if test.fails != "" {
			f, ok := errors.AsType[*source.Failure](err)
			if !ok || f.Code != source.ServerFailed || !strings.Contains(f.Error(), test.fails) ||
				len(f.Error()) > 200 {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		test.want.Result = Raw(test.result)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestInitializeParams(t *testing.T) {
	t.Parallel()
	for _, roots := range []bool{false, true} {
		var params struct {
			ProtocolVersion string
			Capabilities    map[string]any
			ClientInfo      map[string]string
		}
		if err := json.Unmarshal(InitializeParams(roots), &params); err != nil {
			t.Fatal(err)
		}
		info := params.ClientInfo
		if params.ProtocolVersion != "2025-11-25" || info["name"] != "garra" || info["version"] == "" {
			t.Errorf("%+v", params)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(ClientCapabilities), &want); err != nil {
			t.Fatal(err)
		}
		if roots {
			want["roots"] = map[string]any{"listChanged": true}
		}
		if diff := cmp.Diff(want, params.Capabilities); diff != "" {
			t.Error(diff)
		}
	}
}
