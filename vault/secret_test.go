// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/rs/zerolog"
)

// inBothModes runs a test with values in locked and in ordinary memory.
func inBothModes(t *testing.T, test func(t *testing.T)) {
	for name, mode := range map[string]MemoryMode{"locked": Locked, "unlocked": Unlocked} {
		t.Run(name, func(t *testing.T) {
			if err := LockMemory(mode); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := LockMemory(); err != nil {
					t.Error(err)
				}
			}()
			test(t)
		})
	}
}

func TestSealTakesOver(t *testing.T) {
	inBothModes(t, func(t *testing.T) {
		for _, want := range []string{"", "x", "hunter2", strings.Repeat("long", 5000)} {
			b := []byte(want)
			s, err := Seal(b)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Trim(string(b), "\x00") != "" {
				t.Errorf("%q is still in the caller's memory", b)
			}
			if got := text(t, s); got != want {
				t.Errorf("got %.20q, want %.20q", got, want)
			}
			if s.size() != len(want) {
				t.Errorf("got %d bytes, want %d", s.size(), len(want))
			}
		}
	})
}

func TestUse(t *testing.T) {
	inBothModes(t, func(t *testing.T) {
		s, broken := newSecret(t, "value"), errors.New("broken")
		if err := s.Use(func([]byte) error { return broken }); err != broken {
			t.Errorf("got %v, want the error of the function", err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = s.Use(func([]byte) error { panic("at once") })
		}()
		if got := text(t, s); got != "value" {
			t.Errorf("after a panic: %q", got)
		}
	})
}

func TestUnlockedUseIsACopy(t *testing.T) {
	if err := LockMemory(Unlocked); err != nil {
		t.Fatal(err)
	}
	s := newSecret(t, "value")
	if err := LockMemory(); err != nil {
		t.Fatal(err)
	}
	var kept []byte
	if err := s.Use(func(b []byte) error { kept = b; b[0] = 'V'; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := text(t, s); got != "value" || strings.Trim(string(kept), "\x00") != "" {
		t.Errorf("the value is %q, and what the function kept %q", got, kept)
	}
}

func TestEqual(t *testing.T) {
	inBothModes(t, func(t *testing.T) {
		a := newSecret(t, "one")
		for other, want := range map[string]bool{"one": true, "two": false, "one ": false, "": false} {
			if got := a.Equal(newSecret(t, other)); got != want {
				t.Errorf("one and %q: %v", other, got)
			}
		}
		if !newSecret(t, "").Equal(newSecret(t, "")) {
			t.Error("empty values differ")
		}
	})
}

// Every way of printing a value, or what holds it, shows that there is one.
func TestSecretsAreNotPrinted(t *testing.T) {
	inBothModes(t, func(t *testing.T) {
		s := newSecret(t, "hunter2")
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "pointer", s, "value", *s)
		logger := zerolog.New(&log)
		logger.Info().Interface("pointer", s).Any("value", *s).Stringer("stringer", s).Msg("x")
		printed := map[string]string{"log": log.String()}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
			printed[verb] = fmt.Sprintf(verb, s)
			printed["value "+verb] = fmt.Sprintf(verb, *s)
			printed["struct "+verb] = fmt.Sprintf(verb, struct{ S Secret }{*s})
			printed["unexported "+verb] = fmt.Sprintf(verb, struct {
				s Secret
				p *Secret
			}{*s, s})
			printed["map "+verb] = fmt.Sprintf(verb, map[string]*Secret{"k": s})
		}
		for name, marshal := range map[string]func(any) ([]byte, error){
			"v1": json.Marshal, "v2": func(v any) ([]byte, error) { return jsonv2.Marshal(v) },
		} {
			out, err := marshal(map[string]any{"pointer": s, "value": *s})
			if err != nil {
				t.Fatal(err)
			}
			printed[name] = string(out)
		}
		for how, out := range printed {
			for _, form := range []string{"hunter2", "68756e74", "68756E74", "104 117", "0x68, 0x75"} {
				if strings.Contains(out, form) {
					t.Errorf("%s: %s", how, out)
				}
			}
			says := !strings.Contains(how, "p") // neither "unexported", nor "%p"
			if says && !strings.Contains(out, shown) {
				t.Errorf("%s: %s", how, out)
			}
		}
	})
}
