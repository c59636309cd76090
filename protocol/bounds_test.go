// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"strings"
	"testing"
)

// many joins n copies of a value with commas.
func many(value string, n int) string {
	return strings.TrimSuffix(strings.Repeat(value+",", n), ",")
}

// A text that would take many times its length once it is split is refused
// before it is.
func TestCrowdedTextsAreRefused(t *testing.T) {
	message := func(params string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":` + params + `}`)
	}
	for name, split := range map[string]func() error{
		"elements": func() error { _, err := Elements(Raw("[" + many("0", MaxElements+1) + "]")); return err },
		"members":  func() error { _, err := ParseObject(Raw("{" + many(`"":0`, maxMembers+1) + "}")); return err },
		"messages": func() error { _, _, err := ParseBatch([]byte("[" + many("0", maxMembers+1) + "]")); return err },
		"values": func() error {
			_, err := ParseStrict(message(`{"a":["` + strings.Repeat(`\"`, 100) + `",` + many("0", maxValues+1) + `]}`))
			return err
		},
	} {
		if _, ok := errors.AsType[*CrowdedError](split()); !ok {
			t.Errorf("%s: %v", name, split())
		}
	}
	if _, err := Elements(Raw("[" + many("0", MaxElements) + "]")); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	for _, part := range []string{`,`, `\",`, `\\`} {
		text := strings.Repeat(part, maxValues+1)
		if _, err := ParseStrict(message(`{"a":"` + text + `"}`)); err != nil {
			t.Errorf("what is in a string is no value: %.200v", err)
		}
	}
}

func TestPeek(t *testing.T) {
	for line, want := range map[string]uint64{
		`{"jsonrpc":"2.0","id":7,"result":{},"error":{}}`: 7,
		`{"id":8.0,"result":{}}`:                          8,
		`{"jsonrpc":"2.0","result":{"id":9}}`:             0,
		`nonsense`:                                        0,
	} {
		id, reply := Peek([]byte(line))
		if n, _ := id.Number(); n != want || !reply {
			t.Errorf("%s: %v, %v", line, id, reply)
		}
	}
	if _, reply := Peek([]byte(`{"id":1,"method":"m"}`)); reply {
		t.Error("a request is taken for an answer")
	}
}

func TestAnErrorThatIsNullIsNone(t *testing.T) {
	m, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`))
	if err != nil || m.Error != nil || string(m.Result) != "{}" {
		t.Errorf("%+v, %v", m, err)
	}
}
