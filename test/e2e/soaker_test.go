// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

// A soaker is one client of TestSoak.
type soaker struct {
	*soak
	number int
	chance *rand.Rand
	calls  int
	line   soakLine
}

// A soakLine carries the calls of a soaker.
type soakLine interface {
	// call calls a tool, takes the call back at its first progress if it is to, and
	// returns all answers that came, and all progress.
	call(params *protocol.Object, cancel bool) (answers, progress []*protocol.Message, err error)
	// HangUp ends it, and fails if something came that nobody asked for.
	HangUp() error
}

// The kinds of client, by number.
func (c *soaker) kind() string {
	return []string{"handshake over HTTP", "stateless over HTTP", "garra stdio"}[c.number%3]
}

func (c *soaker) connect() error {
	w := rig.NewWeb(c.gateway.URL(""), c.token)
	switch c.number % 3 {
	case 1:
		c.line = &statelessLine{w}
		return nil
	case 2:
		cmd := c.home.Command("stdio")
		p, err := rig.NewPipe(cmd)
		if err != nil {
			return err
		}
		c.line = &pipeLine{p, fmt.Sprintf("%d-", c.number)}
		return shake(p)
	}
	c.line = &webLine{w}
	return shake(w)
}

// shake makes the handshake.
func shake(c rig.Conversation) error {
	m, err := c.Ask(protocol.MethodInitialize, rig.Greeting(`{}`), nil)
	if err == nil && m.Error != nil {
		err = fmt.Errorf("initialize: %s", m.Error)
	}
	if err != nil {
		return err
	}
	return c.Tell(protocol.NoteInitialized, `{}`)
}

// callUntil calls until a time, and connects anew now and then.
func (c *soaker) callUntil(end time.Time) error {
	for time.Now().Before(end) {
		if err := c.connect(); err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		c.tally.count("connected:", c.kind())
		for range 20 + c.chance.IntN(200) {
			if time.Now().After(end) {
				break
			}
			c.call()
		}
		if err := c.line.HangUp(); err != nil {
			return fmt.Errorf("hanging up: %w", err)
		}
	}
	return nil
}

// call makes one call and judges what came of it.
func (c *soaker) call() {
	servers := []string{steady, steady, crashy, edited, slow, fleeing}
	server := servers[c.chance.IntN(len(servers))]
	c.calls++
	value := fmt.Sprintf("%d-%d", c.number, c.calls)
	tool, arguments := "echo", fmt.Sprintf(`{"text":%q}`, value)
	cancel := false
	switch n := c.chance.IntN(100); {
	case n < 15:
		tool, arguments = "sleep", fmt.Sprintf(`{"text":%q,"ms":%d}`, value, c.chance.IntN(300))
	case n < 25:
		tool, arguments = "progress", fmt.Sprintf(`{"text":%q,"n":3,"ms":20}`, value)
	case n < 30:
		tool, arguments, cancel = "progress", fmt.Sprintf(`{"text":%q,"n":1000,"ms":50}`, value), true
	case n == 30 && server == crashy:
		tool = []string{"crash", "kill_self", "close_stdout"}[c.chance.IntN(3)]
	}
	params := &protocol.Object{}
	params.Set("name", protocol.Quote(server+"__"+tool))
	params.Set("arguments", protocol.Raw(arguments))
	params.Set("_meta", protocol.Raw(fmt.Sprintf(`{"progressToken":%q}`, value)))
	answers, progress, err := c.line.call(params, cancel)
	c.tally.called()
	what := server + " " + tool
	if cancel {
		what += ", cancelled"
	}
	outcome, err := judge(value, answers, progress, cancel, err)
	if err == nil && server == steady && outcome != "answered" && (!cancel || outcome != "not answered") {
		err = fmt.Errorf("the steady server: %s", outcome)
	}
	if err != nil {
		c.tally.fail("%s, %s, %s: %v", c.kind(), what, value, err)
	}
	c.tally.count(what+":", outcome)
}

// judge tells what came of a call: it is an error when it isn't what must come.
func judge(value string, answers, progress []*protocol.Message, cancel bool, err error) (string, error) {
	for _, m := range progress {
		if token := tokenOf(m); token != value {
			return "progress of others", fmt.Errorf("progress of %q", token)
		}
	}
	if err != nil {
		return "broken", err
	}
	if len(answers) == 0 && cancel {
		return "not answered", nil
	}
	if len(answers) != 1 {
		return "broken", fmt.Errorf("%d answers", len(answers))
	}
	m := answers[0]
	if text, ok := rig.TextOf(m); ok {
		if text != value {
			return "broken", fmt.Errorf("the answer is %q", text)
		}
		return "answered", nil
	}
	if code := rig.FailureOf(m); code != "" {
		return code, nil
	}
	if e := protocol.ParseError(m.Error); m.Error != nil && e.Code == protocol.CodeInvalidParams &&
		strings.HasPrefix(e.Message, "unknown tool") {
		return "unknown tool", nil
	}
	return "broken", fmt.Errorf("the answer says nothing of why: %s", outcomeOf(m))
}

func tokenOf(m *protocol.Message) string {
	var p struct{ ProgressToken string }
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err.Error()
	}
	return p.ProgressToken
}

// A webLine is a client of the handshake era over HTTP.
type webLine struct{ *rig.Web }

func (l *webLine) call(params *protocol.Object, cancel bool) (answers, progress []*protocol.Message, err error) {
	id := protocol.NumberID(l.Last.Add(1))
	response, err := l.Post(protocol.NewRequest(id, protocol.MethodToolsCall, params.Raw()))
	if err != nil {
		return nil, nil, err
	}
	return hear(response, id, func() error {
		if !cancel {
			return nil
		}
		return l.Tell(protocol.NoteCancelled, fmt.Sprintf(`{"requestId":%s}`, id))
	})
}

// A statelessLine is a client of the stateless era over HTTP.
type statelessLine struct{ *rig.Web }

func (l *statelessLine) call(params *protocol.Object, cancel bool) (answers, progress []*protocol.Message, err error) {
	meta, err := protocol.ParseObject(params.Get("_meta"))
	if err != nil {
		return nil, nil, err
	}
	const revision = protocol.LatestStateless
	meta.Set(protocol.MetaRevision, protocol.Quote(string(revision)))
	meta.Set(protocol.MetaCapabilities, protocol.Raw(`{}`))
	params.Set("_meta", meta.Raw())
	name, err := protocol.Text(params.Get("name"))
	if err != nil {
		return nil, nil, err
	}
	id := protocol.NumberID(l.Last.Add(1))
	request := protocol.NewRequest(id, protocol.MethodToolsCall, params.Raw())
	response, err := l.Send(http.MethodPost, request.Append(nil), "Mcp-Protocol-Version", string(revision),
		"Mcp-Method", protocol.MethodToolsCall, "Mcp-Name", name)
	if err != nil {
		return nil, nil, err
	}
	return hear(response, id, func() error {
		if !cancel {
			return nil
		}
		return errLeft // hanging up is how this era takes a request back
	})
}

func (l *statelessLine) HangUp() error {
	l.Client.CloseIdleConnections()
	return nil
}

// errLeft is the error of a request that its client has left.
var errLeft = errors.New("the client has left")

// hear reads a response to its end. begun is called once, when there is progress.
func hear(response *http.Response, id protocol.ID, begun func() error) (
	answers, progress []*protocol.Message, err error,
) {
	defer response.Body.Close()
	stream := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return answers, progress, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return answers, progress, err
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if stream && !ok {
			continue
		}
		m, err := protocol.Parse(bytes.TrimSpace(data))
		switch {
		case err != nil && !stream:
			return answers, progress, fmt.Errorf("%s: %w in %q", response.Status, err, line)
		case err != nil: // the event at the start of a stream holds no message
		case m.IsResponse() && m.ID != id:
			return answers, progress, fmt.Errorf("an answer to %s came to %s", m.ID, id)
		case m.IsResponse():
			answers = append(answers, m)
		case m.Method == protocol.NoteProgress:
			if progress = append(progress, m); len(progress) > 1 {
				continue
			}
			if err := begun(); errors.Is(err, errLeft) {
				return answers, progress, nil
			} else if err != nil {
				return answers, progress, err
			}
		}
	}
}

// A pipeLine is a client of `garra stdio`.
type pipeLine struct {
	*rig.Pipe
	mine string // what all its tokens begin with
}

func (l *pipeLine) call(params *protocol.Object, cancel bool) (answers, progress []*protocol.Message, err error) {
	token, err := protocol.ParseObject(params.Get("_meta"))
	if err != nil {
		return nil, nil, err
	}
	own, err := protocol.Text(token.Get("progressToken"))
	if err != nil {
		return nil, nil, err
	}
	heard := make(chan *protocol.Message, 1000)
	id, answer, err := l.Begin(protocol.MethodToolsCall, string(params.Raw()), func(m *protocol.Message) {
		if m.Method == protocol.NoteProgress {
			heard <- m
		}
	})
	if err != nil {
		return nil, nil, err
	}
	late := time.After(rig.Patience)
	for {
		select {
		case m := <-heard:
			if t := tokenOf(m); t != own && strings.HasPrefix(t, l.mine) {
				continue // of a call that was taken back
			}
			progress = append(progress, m)
			if !cancel {
				continue
			}
			answers, err := l.takeBack(id, answer)
			return answers, progress, err
		case m := <-answer:
			return []*protocol.Message{m}, progress, nil
		case <-l.Ended:
			return nil, progress, rig.ErrEnded
		case <-late:
			return nil, progress, fmt.Errorf("no answer within %s", rig.Patience)
		}
	}
}

// takeBack cancels a call. It may have been answered before garra knew, but not
// after what garra answers next.
func (l *pipeLine) takeBack(id protocol.ID, answer <-chan *protocol.Message) ([]*protocol.Message, error) {
	if err := l.Tell(protocol.NoteCancelled, fmt.Sprintf(`{"requestId":%s}`, id)); err != nil {
		return nil, err
	}
	if _, err := l.Ask(protocol.MethodPing, `{}`, nil); err != nil {
		return nil, err
	}
	defer l.Forget(id)
	select {
	case m := <-answer:
		return []*protocol.Message{m}, nil
	default:
		return nil, nil
	}
}

func (l *pipeLine) HangUp() error {
	err := l.Pipe.HangUp()
	if _, noise := l.Heard(); len(noise) > 0 {
		return fmt.Errorf("%d messages that nobody asked for: %.300q", len(noise), noise)
	}
	return err
}
