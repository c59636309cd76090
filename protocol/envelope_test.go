// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"
)

func TestReadEnvelope(t *testing.T) {
	for params, want := range map[string]string{
		``:                  "none",
		`{}`:                "none",
		`{"_meta":{"a":1}}`: "none",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}`: "none",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`:            "none",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`: "incomplete",
		`{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}`: "2026-07-28",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01",` +
			`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":3}}`: "incomplete",
	} {
		e, err := ReadEnvelope(Raw(params))
		got := "none"
		if e != nil {
			got = string(e.Revision)
		}
		if err != nil {
			got = "incomplete"
		}
		if got != want {
			t.Errorf("%s: %s, want %s (%v)", params, got, want, err)
		}
	}
}

// What is no part of the envelope stays as it was written, and where it was.
func TestEnvelopesComeAndGo(t *testing.T) {
	bare := `{"name":"x","_meta":{"traceparent":"00-1","n":1.0},"arguments":{"z":1e2}}`
	e := &Envelope{Revision: LatestStateless, Capabilities: Raw(`{"roots":{}}`), LogLevel: "info"}
	full := e.Put(Raw(bare))
	read, err := ReadEnvelope(full)
	same := err == nil && read.Revision == e.Revision && string(read.Capabilities) == `{"roots":{}}`
	if !same || read.LogLevel != "info" {
		t.Errorf("%+v, %v", read, err)
	}
	if got := string(Open(full)); got != bare {
		t.Errorf("got %s, want %s", got, bare)
	}
	if got := string(Open(e.Put(nil))); got != "{}" {
		t.Errorf("got %s", got)
	}
	if got := string(Open(Raw(bare))); got != bare {
		t.Errorf("got %s", got)
	}
}

func TestStamp(t *testing.T) {
	info := Raw(`{"name":"s"}`)
	for in, want := range map[string]string{
		`{}`: `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}`,
		`{"resultType":"task","_meta":{"io.modelcontextprotocol/serverInfo":1,"b":2}}`: "",
		`[]`: "",
	} {
		if want == "" {
			want = in
		}
		if got := string(Stamp(Raw(in), info)); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	if got := string(WithoutMeta(WithMeta(Raw(`{"a":1}`), "m", Raw("2")), "m")); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(string(WithMeta(nil, "m", Raw("2"))), `"_meta":{"m":2}`) {
		t.Error("absent params take no _meta")
	}
}
