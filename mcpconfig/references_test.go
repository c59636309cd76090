// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReferences(t *testing.T) {
	for text, want := range map[string][]reference{
		"":                       nil,
		"plain $5 ${a%b} ${} $":  nil,
		"${HOME}/x":              {{variableReference, "HOME"}},
		"${A:-b c}${env:B}":      {{variableReference, "A:-b c"}, {variableReference, "env:B"}},
		"$${A}":                  nil,
		"$${A} ${B}":             {{variableReference, "B"}},
		"vault:mcp.s.K":          {{vaultReference, "mcp.s.K"}},
		"Bearer ${vault:K}":      {{vaultReference, "K"}},
		"x vault:K":              nil,
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
		if diff := cmp.Diff(want, references(text, true), cmp.AllowUnexported(reference{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestReferencesInOtherFields(t *testing.T) {
	for text, want := range map[string][]reference{
		"vault:K":    {{brokenReference, "vault:…"}},
		"${vault:K}": {{vaultReference, "K"}},
	} {
		if diff := cmp.Diff(want, references(text, false), cmp.AllowUnexported(reference{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}
