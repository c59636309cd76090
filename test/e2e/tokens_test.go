// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/protocol"
)

// A variable is a value that differs between two processes of one server,
// whoever asks them.
type variable struct {
	name    string
	pattern *regexp.Regexp
	why     string
}

// variables returns all of them. Everything else must be equal.
func variables() []variable {
	return []variable{
		{
			"collection time", regexp.MustCompile(`Collection Time:\*\* [-0-9T:]+Z`),
			"kubernetes writes into a prompt when it made it",
		},
	}
}

// normalise replaces the variables in a text by their names.
func normalise(text string) string {
	for _, v := range variables() {
		text = v.pattern.ReplaceAllString(text, "<"+v.name+">")
	}
	return text
}

// tokens splits JSON into its tokens, each as it was written: the order of keys,
// the digits of numbers and the escapes of strings count, blanks don't.
func tokens(t testing.TB, raw protocol.Raw) []string {
	t.Helper()
	text := slices.Clone(raw)
	if err := text.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	decoder := jsontext.NewDecoder(strings.NewReader(normalise(string(text))), jsontext.AllowDuplicateNames(true))
	var list []string
	for {
		switch kind := decoder.PeekKind(); kind {
		case '{', '}', '[', ']':
			token, err := decoder.ReadToken()
			if err != nil {
				t.Fatalf("%v in %s", err, raw)
			}
			list = append(list, token.String())
		case 0:
			return list
		default:
			value, err := decoder.ReadValue()
			if err != nil {
				t.Fatalf("%v in %s", err, raw)
			}
			list = append(list, string(value))
		}
	}
}

// differences compares two JSON texts token by token; empty when they are equal.
func differences(t testing.TB, direct, through protocol.Raw) string {
	t.Helper()
	return cmp.Diff(tokens(t, direct), tokens(t, through))
}

// outcomeOf is a message without its id, which is the client's own.
func outcomeOf(m *protocol.Message) protocol.Raw {
	if m.Error != nil {
		return protocol.Raw(fmt.Sprintf(`{"error":%s}`, m.Error))
	}
	return protocol.Raw(fmt.Sprintf(`{"result":%s}`, m.Result))
}

// TestTokens makes sure that the comparison sees what decoders hide.
func TestTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{`{"a":1,"b":[true]}`, `{ "a": 1, "b": [ true ] }`, true},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, false},
		{`1.0`, `1`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`1e2`, `100`, false},
		{`"\u00e4"`, `"ä"`, false},
		{`{"a":""}`, `{}`, false},
		{`{"a":null}`, `{}`, false},
		{`[[1],[2]]`, `[[1,2]]`, false},
		{`"**Collection Time:** 2026-11-30T08:00:00Z"`, `"**Collection Time:** 2026-11-30T09:11:12Z"`, true},
		{`"2026-11-30T08:00:00Z"`, `"2026-11-30T09:11:12Z"`, false},
	} {
		if equal := differences(t, protocol.Raw(c.a), protocol.Raw(c.b)) == ""; equal != c.equal {
			t.Errorf("%s and %s: equal is %t", c.a, c.b, equal)
		}
	}
}
