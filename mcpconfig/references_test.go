// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/garraia/garra/envbuild"
)

func TestReferences(t *testing.T) {
	for text, want := range map[string][]reference{
		"":                       nil,
		"plain $5 ${a%b} ${} $":  nil,
		"${HOME}/x":              {{variableReference, "HOME"}},
		"${A:-b c}${env:B}":      {{variableReference, "A:-b c"}, {variableReference, "env:B"}},
		"$${A}":                  nil,
		"$${A} ${B}":             {{variableReference, "B"}},
		"vault:mcp.s.K":          {{secretReference, "mcp.s.K"}},
		"Bearer ${vault:K}":      {{secretReference, "K"}},
		"x vault:K":              nil,
		"op://V/an item/x":       {{storeReference, "op://V/an item/x"}},
		"x ${op:y}":              {{storeReference, "op:y"}},
		"${pass:y} pass:y":       nil,
		"vualt:mcp.s.K":          {{brokenReference, "vualt:…"}},
		"${valut:K}":             {{brokenReference, "${valut:…"}},
		"${env:A":                {{brokenReference, "${env:…"}},
		"${input:key}":           {{brokenReference, "${input:…"}},
		"${A":                    {{brokenReference, "${…"}},
		"$TOKEN":                 {{brokenReference, "$NAME"}},
		"$token":                 nil,
		"${9A} ${A-b} ${A:0:1}}": nil,
		"${a%${B}}":              {{variableReference, "B"}},
		"${A:-${B}}":             {{nestedReference, "A"}},
		"${input:${B}}":          {{brokenReference, "${input:…"}, {variableReference, "B"}},
	} {
		got := references(text, true, []string{"op"})
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(reference{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestReferencesInOtherFields(t *testing.T) {
	for text, want := range map[string][]reference{
		"vault:K":    {{brokenReference, "vault:…"}},
		"${vault:K}": {{secretReference, "K"}},
	} {
		if diff := cmp.Diff(want, references(text, false, nil), cmp.AllowUnexported(reference{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

// TestReferencesAgreeWithExpansion checks that what is judged here is what is expanded when a
// server starts: the same variables, the same secrets, the same texts refused.
func TestReferencesAgreeWithExpansion(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"$", "{", "}", "${", "$${", "vault:", "env:", "A", "b_1", "9", ":-", ":", "-", ".", " ", "%", "é", "input:",
		"op:", "b_1:",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		whole := rapid.Bool().Draw(t, "whole")
		stores := []string{"op", "b_1"}
		parse := envbuild.ParseTemplate
		if whole {
			parse = envbuild.ParseValue
		}
		template, err := parse(text, stores)
		var variables, secrets []string
		refused := false
		for _, r := range references(text, whole, stores) {
			switch {
			case r.kind == nestedReference || (r.kind == secretReference || r.kind == storeReference) && !r.valid():
				refused = true
			case r.kind == secretReference, r.kind == storeReference:
				secrets = append(secrets, r.name)
			case r.kind == variableReference:
				name, _, _ := strings.Cut(strings.TrimPrefix(r.name, "env:"), ":-")
				variables = append(variables, name)
			}
		}
		if refused != (err != nil) {
			t.Fatalf("%q: refused is %v, the expansion says %v", text, refused, err)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(template.Variables(), variables, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q: variables: -expanded +judged:\n%s", text, diff)
		}
		if diff := cmp.Diff(template.SecretKeys(), secrets, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q: secrets: -expanded +judged:\n%s", text, diff)
		}
	})
}
