// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestMain lets the test binary play the roles, as the program does.
func TestMain(m *testing.M) {
	if played, err := playRole(os.Args[1:]); played {
		exit(err)
		return
	}
	os.Exit(m.Run())
}

func TestMembers(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{}`, ``},
		{` { "a" : 1 , "b":"x" } `, `a=1 b="x" `},
		{`{"a":{"a":[1,{"b":"}"}]},"b":[],"c":null}`, `a={"a":[1,{"b":"}"}]} b=[] c=null `},
		{`{"a":"\"}\\","b":-1.5e3}`, `a="\"}\\" b=-1.5e3 `},
		{`[1]`, ``},
		{``, ``},
		{`{"a"`, `a= `},
		{`{"a":"x`, `a="x `},
	} {
		var got strings.Builder
		members([]byte(c.text), func(key, value []byte) { fmt.Fprintf(&got, "%s=%s ", key, value) })
		if got.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.text, &got, c.want)
		}
	}
}

func TestAnswerID(t *testing.T) {
	long := strings.Repeat("x", 2*edge)
	for _, c := range []struct {
		message string
		id      int
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{}}`, 7},
		{`{"jsonrpc": "2.0", "id": 7, "result": {}}`, 7},
		{`{"result":{"text":"` + long + `"},"jsonrpc":"2.0","id":7}`, 7},
		{`{"result":{"id":"a"},"jsonrpc":"2.0","id":7}`, 7},
		{`{"jsonrpc":"2.0","method":"notifications/message"}`, -1},
		{``, -1},
	} {
		if id := answerID([]byte(c.message)); id != c.id {
			t.Errorf("%.80s: got %d, want %d", c.message, id, c.id)
		}
	}
}

func TestCheck(t *testing.T) {
	for message, good := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`:                false,
		`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`:                true,
		`{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"x"}}`:       false,
		`{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}`: false,
	} {
		if err := check([]byte(message), 2); (err == nil) != good {
			t.Errorf("%s: got %v", message, err)
		}
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	text := "a\n\n" + long + "\nb\nrest"
	for _, in := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text))} {
		lines := newLineReader(in)
		for _, want := range []string{"a", "", long, "b"} {
			if line, err := lines.next(); string(line) != want || err != nil {
				t.Fatalf("got %.20q of %d bytes and %v", line, len(line), err)
			}
		}
		if _, err := lines.next(); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
	}
}

// TestChild speaks with the child as an SDK would: answers are JSON.
func TestChild(t *testing.T) {
	var in, out bytes.Buffer
	for i, r := range []request{
		{"initialize", initialize},
		{"tools/list", "{}"},
		echoCall("echo"),
		bigCall("big", 3<<20),
		sleepCall("sleep", 0),
		{"tools/call", `{"name":"none"}`},
		{"none", "{}"},
	} {
		in.Write(append(appendRequest(nil, i+1, r.method, r.params), '\n'))
		in.WriteString(initialized + "\n")
	}
	if err := serveChild(newResponder(5), &in, &out); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for line := range bytes.Lines(out.Bytes()) {
		var m struct {
			ID     int
			Result struct {
				ProtocolVersion string
				Tools           []struct{ Name string }
				Content         []struct{ Text string }
			}
			Error struct{ Code int }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%.200s: %v", line, err)
		}
		text := fmt.Sprintf("%d: %q, %d tools, %d", m.ID, m.Result.ProtocolVersion, len(m.Result.Tools), m.Error.Code)
		for _, c := range m.Result.Content {
			text += fmt.Sprintf(" %.16s of %d", c.Text, len(c.Text))
		}
		texts = append(texts, text)
	}
	want := []string{
		`1: "2025-11-25", 0 tools, 0`, `2: "", 5 tools, 0`, `3: "", 0 tools, 0 sixteen letters. of 16`,
		`4: "", 0 tools, 0 xxxxxxxxxxxxxxxx of 3145728`, `5: "", 0 tools, 0 slept of 5`,
		`6: "", 0 tools, -32602`, `7: "", 0 tools, -32601`,
	}
	if !slices.Equal(texts, want) {
		t.Errorf("answers: %q, want %q", texts, want)
	}
}

// TestHTTPCaller answers in each of the forms that servers choose.
func TestHTTPCaller(t *testing.T) {
	r := newResponder(3)
	for name, write := range map[string]func(http.ResponseWriter, []byte){
		"json": writeAnswer,
		"chunked": func(w http.ResponseWriter, answer []byte) {
			w.Header().Set("Content-Type", "application/json")
			for half := range bytes.Lines(bytes.ReplaceAll(answer, []byte(","), []byte(",\n"))) {
				w.Write(half)
				w.(http.Flusher).Flush()
			}
		},
		"events": func(w http.ResponseWriter, answer []byte) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: 1\ndata:\n\ndata: %s\n\nevent: message\ndata: %s\n\n", initialized, answer)
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil || req.Header.Get("X-Own") != "yes" {
				t.Errorf("%s: %v, headers %v", name, err, req.Header)
			}
			answer, session := r.respond(nil, body), req.Header.Get("Mcp-Session-Id")
			if first := bytes.Contains(body, []byte("initialize\"")); first == (session == "s") {
				t.Errorf("%s: a session header %q with %s", name, session, body)
			}
			w.Header().Set("Mcp-Session-Id", "s")
			if len(answer) == 0 {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			write(w, answer)
		}))
		e, err := newEndpoint(server.URL+"/mcp", []string{"X-Own: yes"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.openHTTP(2)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range s.callers {
			for _, ask := range []request{echoCall("echo"), bigCall("big", 100_000), echoCall("echo")} {
				if answer, err := ask.ask(c); err != nil || !json.Valid(answer) {
					t.Errorf("%s: %v, %.100s", name, err, answer)
				}
			}
		}
		s.close()
		server.Close()
	}
}

// TestSharedPipe has many callers on the pipe of a real child.
func TestSharedPipe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := program{path: self, args: []string{roleRelay}}.openPipe(t.Context(), 8)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	rate, err := throughput(s.callers, []request{echoCall("echo"), bigCall("big", 1000)}, 20*time.Millisecond)()
	if err != nil || rate <= 0 {
		t.Errorf("%v calls/s, %v", rate, err)
	}
}

func TestComparison(t *testing.T) {
	values := map[string][]float64{"a": {1, 2, 3}, "b": {2, 8, 4}}
	var order strings.Builder
	variantOf := func(name string) variant {
		return variant{name, func() (float64, error) {
			order.WriteString(name)
			v := values[name][0]
			values[name] = values[name][1:]
			return v, nil
		}}
	}
	r, err := comparison{
		name: "n", unit: "u", rounds: 3, variants: []variant{variantOf("a"), variantOf("b")},
		targets: []target{{"b", "a", atMost(1.9)}, {"b", "a", atLeast(2)}, {"b", "a", shown()}, {"b", "none", shown()}},
	}.run()
	if err != nil || order.String() != "abbaab" {
		t.Fatalf("%v, in the order %s", err, &order)
	}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `
## n, u (median of 3 rounds, quartiles)
  a  2.00  (1.50 – 2.50)
  b  4.00  (3.00 – 6.00)
  b / a  2.00 ×  (1.67 – 3.00)  target ≤ 1.9: NOT reached
  b / a  2.00 ×  (1.67 – 3.00)  target ≥ 2: reached
  b / a  2.00 ×  (1.67 – 3.00)  
`
	if out.String() != want {
		t.Errorf("got %s", &out)
	}
}

// TestComparisonGoesOn drops what fails in the second round.
func TestComparisonGoesOn(t *testing.T) {
	calls, dropped := 0, ""
	r, err := comparison{
		rounds: 3,
		variants: []variant{
			{"good", func() (float64, error) { return 1, nil }},
			{"bad", func() (float64, error) {
				if calls++; calls == 2 {
					return 0, io.ErrUnexpectedEOF
				}
				return 1, nil
			}},
		},
		targets: []target{{"bad", "good", shown()}},
		drop:    func(name string, err error) { dropped = fmt.Sprint(name, ": ", err) },
	}.run()
	if err != nil || len(r.Series) != 1 || len(r.Ratios) != 0 || calls != 2 || dropped != "bad: unexpected EOF" {
		t.Errorf("%+v, %v after %d calls, dropped %q", r, err, calls, dropped)
	}
}

func TestOptions(t *testing.T) {
	for args, good := range map[string]bool{
		"": true, "-quick -json": true, "-only large,many": true, "-only none": false, "more": false, "-none": false,
	} {
		if _, err := parseOptions(strings.Fields(args)); (err == nil) != good {
			t.Errorf("%q: %v", args, err)
		}
	}
}
