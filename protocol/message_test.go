// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestParseAndAppend(t *testing.T) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"z":1,"a":9007199254740993,"f":1.0,"e":1E2,"t":""}}`,
		`{"jsonrpc":"2.0","id":"a\"b","method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"new","text":""}],"big":18446744073709551615}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"m","data":{"x":[1,2]},"extra":true}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
	} {
		m, err := Parse([]byte(line))
		if err != nil {
			t.Fatalf("Parse(%s): %v", line, err)
		}
		if got := string(m.Append(nil)); got != line {
			t.Errorf("got  %s\nwant %s", got, line)
		}
		if m.Size() < len(line) {
			t.Errorf("Size is %d for %d bytes", m.Size(), len(line))
		}
		if strict, err := ParseStrict([]byte(line)); err != nil || string(strict.Append(nil)) != line {
			t.Errorf("ParseStrict(%s): %v, %v", line, strict, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"text":              `Server started`,
		"number":            `42`,
		"array":             `[1]`,
		"log line":          `{"level":"info","method":"GET","msg":"x"}`,
		"no version":        `{"id":1,"result":{}}`,
		"version 1":         `{"jsonrpc":"1.0","id":1,"result":{}}`,
		"null id request":   `{"jsonrpc":"2.0","id":null,"method":"x"}`,
		"object id":         `{"jsonrpc":"2.0","id":{},"method":"x"}`,
		"empty method":      `{"jsonrpc":"2.0","id":1,"method":""}`,
		"result and error":  `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`,
		"neither":           `{"jsonrpc":"2.0","id":1}`,
		"trailing":          `{"jsonrpc":"2.0","id":1,"result":{}} done`,
		"truncated":         `{"jsonrpc":"2.0","id":1,"result":{"a":`,
		"two on one line":   `{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","id":2,"result":{}}`,
		"unfinished string": `{"jsonrpc":"2.0","id":1,"result":"`,
	} {
		if m, err := Parse([]byte(line)); !errors.Is(err, ErrNotMessage) {
			t.Errorf("%s: got %+v, %v, want ErrNotMessage", name, m, err)
		}
	}
}

func TestParseStrictRefusesWhatDecodersDisagreeOn(t *testing.T) {
	for name, line := range map[string]string{
		"method twice":          `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`,
		"escaped twice":         `{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","n\u0061me":"y"}}`,
		"name twice":            `{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","name":"y"}}`,
		"other case":            `{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","Name":"y"}}`,
		"unicode fold":          `{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{},"argument\u017f":{}}}`,
		"twice in arguments":    `{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"p":{"a":1,"a":2}}}}`,
		"other case of method":  `{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}`,
		"other case of params":  `{"jsonrpc":"2.0","id":1,"method":"a","params":{},"PARAMS":{}}`,
		"deep twice in a batch": `{"jsonrpc":"2.0","id":1,"method":"a","params":[{"a":1,"a":2}]}`,
	} {
		if m, err := ParseStrict([]byte(line)); !errors.Is(err, ErrNotMessage) {
			t.Errorf("%s: got %+v, %v, want ErrNotMessage", name, m, err)
		}
	}
	fine := `{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"a":1,"A":2}}}`
	if _, err := ParseStrict([]byte(fine)); err != nil {
		t.Errorf("arguments that differ in case are the tool's own business: %v", err)
	}
}

func TestParseStrictWritesParamsAgain(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"a","params": { "b" : 1.50, "a" : [ 1 , "\ud83d" ] } }`
	m, err := ParseStrict([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.Params), `{"b":1.50,"a":[1,"\ud83d"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for line, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,`: true,
		`nonsense`:                 false,
		`{"jsonrpc":"2.0","id":1}`: false,
		`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`:           false,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":1,"a":1}}`: false,
		`{"jsonrpc":"2.0",}`: true,
	} {
		_, err := ParseStrict([]byte(line))
		if got := IsSyntaxError(err); err == nil || got != want {
			t.Errorf("%s: got %v for %v, want %v", line, got, err, want)
		}
	}
}

func TestBatch(t *testing.T) {
	frames, ok, err := ParseBatch([]byte(`[{"a":1}, {"b":[2]} ]`))
	if err != nil || !ok || len(frames) != 2 || string(frames[1]) != `{"b":[2]}` {
		t.Errorf("got %s, %v, %v", frames, ok, err)
	}
	if _, ok, _ := ParseBatch([]byte(`{"a":1}`)); ok {
		t.Error("an object is no batch")
	}
	if _, ok, err := ParseBatch([]byte(`[1,`)); !ok || err == nil {
		t.Error("a batch that is cut off must be an error")
	}
}

func TestMultilineValuesStayOnOneLine(t *testing.T) {
	for _, raw := range []string{"{\n \"a\": 1.0\n}", "{\r\"a\":\r1.0}"} {
		m := NewResult(NumberID(1), Raw(raw))
		if got, want := string(m.Append(nil)), `{"jsonrpc":"2.0","id":1,"result":{"a":1.0}}`; got != want {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	a, _ := ParseID(Raw(`"\u0061"`))
	if a != StringID("a") {
		t.Errorf("%v is not %v", a, StringID("a"))
	}
	if n, ok := NumberID(18446744073709551615).Number(); !ok || n != 18446744073709551615 {
		t.Errorf("got %d, %v", n, ok)
	}
	if _, ok := StringID("5").Number(); ok {
		t.Error(`"5" is a string`)
	}
	for _, raw := range []string{`{}`, `[]`, `true`} {
		if _, err := ParseID(Raw(raw)); err == nil {
			t.Errorf("ParseID(%s) must fail", raw)
		}
	}
}

func TestObjectEdits(t *testing.T) {
	o, err := ParseObject(Raw(`{"z":1,"\u0061":{"big":9007199254740993},"name":"x","_meta":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	o.Set("name", Quote("a \"b\""))
	o.Set("new", Raw("true"))
	o.Delete("_meta")
	want := `{"z":1,"\u0061":{"big":9007199254740993},"name":"a \"b\"","new":true}`
	if got := string(o.Raw()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(o.Get("a")); got != `{"big":9007199254740993}` {
		t.Errorf("an escaped name is not found: %s", got)
	}
}

func TestErrorsKeepTheirText(t *testing.T) {
	raw := Raw(`{"code":-32042,"message":"m","data":{"k":1.0},"x":null}`)
	e := ParseError(raw)
	if e.Code != -32042 || e.Message != "m" || string(e.Raw()) != string(raw) {
		t.Errorf("got %+v, %s", e, e.Raw())
	}
	got := string(Errorf(-1, "a").WithData(Raw(`{"b":1}`)).Raw())
	if got != `{"code":-1,"message":"a","data":{"b":1}}` {
		t.Errorf("got %s", got)
	}
	if e := ParseError(Raw(`"boom"`)); string(e.Raw()) != `"boom"` {
		t.Errorf("an error that is no object is lost: %s", e.Raw())
	}
}

func TestNegotiation(t *testing.T) {
	for _, tt := range []struct{ wants, newest, want Revision }{
		{"2025-06-18", LatestHandshake, "2025-06-18"},
		{"2099-01-01", LatestHandshake, LatestHandshake},
		{"2026-07-28", LatestHandshake, LatestHandshake},
		{"nonsense", LatestHandshake, LatestHandshake},
		{"2025-11-25", Revision20241105, Revision20241105},
		{"2024-11-05", Revision20251125, Revision20241105},
	} {
		if got := tt.wants.Negotiate(tt.newest); got != tt.want {
			t.Errorf("%s with %s: got %s, want %s", tt.wants, tt.newest, got, tt.want)
		}
	}
}

// FuzzParse holds that what parses is written back to a message with the same
// meaning, and that writing is stable.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":[1.0,"\ud83d"]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","error":{"code":1}}`))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\n}}"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\r}}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, parse := range []func([]byte) (*Message, error){Parse, ParseStrict} {
			m, err := parse(in)
			if err != nil {
				continue
			}
			line := m.Append(nil)
			if strings.ContainsAny(string(line), "\r\n") || len(line) > m.Size() {
				t.Fatalf("%q is no line of at most %d bytes", line, m.Size())
			}
			if !json.Valid(line) {
				t.Fatalf("%q is no JSON", line)
			}
			again, err := parse(line)
			if err != nil {
				t.Fatalf("%q can't be parsed again: %v", line, err)
			}
			if got := again.Append(nil); string(got) != string(line) {
				t.Fatalf("unstable: %q then %q", line, got)
			}
		}
	})
}

// A large message from a client is not copied where it needs no change, and only
// where it does.
func TestParseStrictCopiesNothing(t *testing.T) {
	const size = 4 << 20
	text := strings.Repeat(`a \\\" b `, size/10)
	frame := []byte(`{"jsonrpc": "2.0", "id":1,"method":"m",` +
		`"params":{"name":"a b","arguments":{"text":"` + text + `"}}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := ParseStrict(frame)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > size/4 {
		t.Errorf("reading a message of %d bytes took %d", len(frame), took)
	}
	blank := []byte(strings.Replace(string(frame), `"arguments":{`, "\"arguments\" :\t{\r\n", 1))
	spaced, err := ParseStrict(blank)
	if err != nil || !bytes.Equal(spaced.Params, m.Params) {
		t.Errorf("the same with blanks is read as something else, or not at all: %v", err)
	}
}
