// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// An output is where the server writes, and where most flags take effect. Its
// methods may be called from any goroutine.
type output struct {
	opts   *options
	stderr io.Writer

	mu     sync.Mutex // guards stdout: whole answers, with what belongs to them
	stdout io.Writer
}

// begin writes what comes before the first message.
func (o *output) begin() {
	if o.opts.bom {
		o.write("\xef\xbb\xbf")
	}
	if o.opts.banner != "" {
		o.write(o.opts.banner + "\n")
	}
	if o.opts.stderrEndless {
		go func() { // ends with the process, which nobody is to wait for
			for {
				_, _ = io.WriteString(o.stderr, strings.Repeat("z", 64<<10))
			}
		}()
	}
	switch n := o.opts.stderrFlood; {
	case n > 0:
		o.stderr.Write(flood(n))
	case n < 0:
		go func() { // ends with the process, which nobody is to wait for
			for {
				o.stderr.Write(flood(4096))
			}
		}()
	}
}

// reply answers a request with a result.
func (o *output) reply(id json.RawMessage, result string) {
	o.answer(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

// fail answers a request with an error.
func (o *output) fail(id json.RawMessage, code int, text string) {
	o.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, encode(text)))
}

// send writes a request or a notification of the server's own.
func (o *output) send(line string) { o.write(line + "\n") }

// answer writes an answer, which is one line without its end.
func (o *output) answer(line string) {
	o.stderr.Write(flood(o.opts.stderrReply))
	var text strings.Builder
	if o.opts.noise {
		text.WriteString("INFO: about to answer {not json}\n")
	}
	if o.opts.scalarLine {
		text.WriteString("42\n")
	}
	text.WriteString(line)
	if o.opts.crlf {
		text.WriteString(" \t\r\n\r")
	}
	text.WriteString("\n")
	o.write(text.String())
}

// write writes some text as a whole. Nobody is there to hear of an error.
func (o *output) write(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opts.drip == 0 {
		_, _ = io.WriteString(o.stdout, text)
		return
	}
	for i := range len(text) {
		time.Sleep(o.opts.drip)
		_, _ = io.WriteString(o.stdout, text[i:i+1])
	}
}

// half writes the first half of an answer.
func (o *output) half(id json.RawMessage, result string) {
	line := `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`
	o.write(line[:len(line)/2])
}

// storm sends messages without end: a notification, and a request, each unless it is
// empty.
func (o *output) storm(notification, params, request string) {
	for n := 0; notification != "" || request != ""; n++ {
		if notification != "" {
			o.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%s,"params":%s}`, encode(notification), params))
		}
		if request != "" {
			o.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"storm-%d","method":%s,"params":{}}`, n, encode(request)))
		}
	}
}

// flood writes n bytes without a newline, or forever when n is negative.
func (o *output) flood(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fill(n)
}

// huge answers with a text of n bytes.
func (o *output) huge(id json.RawMessage, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	begin, end, _ := strings.Cut(textResult("|"), "|")
	_, _ = io.WriteString(o.stdout, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+begin)
	o.fill(n)
	_, _ = io.WriteString(o.stdout, end+"}\n")
}

// fill writes n bytes, or forever when n is negative. The caller has locked mu.
func (o *output) fill(n int) {
	chunk := strings.Repeat("x", 64<<10)
	for written := 0; n < 0 || written < n; written += len(chunk) {
		if n >= 0 {
			chunk = chunk[:min(len(chunk), n-written)]
		}
		if _, err := io.WriteString(o.stdout, chunk); err != nil {
			return
		}
	}
}

// note writes a line on stderr.
func (o *output) note(text string) { fmt.Fprintln(o.stderr, "misbehave:", text) }

// encode returns v as JSON without the escapes that are for HTML.
func encode(v any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("misbehave: " + err.Error()) // of a value that the package made
	}
	return strings.TrimSuffix(text.String(), "\n")
}
