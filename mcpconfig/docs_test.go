// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// declaredCodes returns every code that code.go declares, sorted.
func declaredCodes(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("code.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, match := range regexp.MustCompile(`Code = "([a-z0-9_.]+)"`).FindAllStringSubmatch(string(text), -1) {
		codes = append(codes, match[1])
	}
	slices.Sort(codes)
	return codes
}

// documentedCodes returns the codes of docs/findings.md with the severity that is given there.
// Its tables start a row with | `code` | severity |.
func documentedCodes(t *testing.T) map[string]Severity {
	t.Helper()
	codes := map[string]Severity{}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)` \\| (error|warning|info) \\| [^|]+ \\| [^|]+ \\|$")
	for _, match := range row.FindAllStringSubmatch(readDoc(t, "findings.md"), -1) {
		if _, ok := codes[match[1]]; ok {
			t.Errorf("%s is documented twice", match[1])
		}
		codes[match[1]] = Severity(match[2])
	}
	return codes
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFieldsAreDocumented checks that docs/config.md has a row for each field with every
// spelling of it, and says of the right ones that they have no effect yet.
func TestFieldsAreDocumented(t *testing.T) {
	rows := map[string]string{}
	for line := range strings.Lines(readDoc(t, "config.md")) {
		if match := regexp.MustCompile("^\\| `([A-Za-z]+)` \\|").FindStringSubmatch(line); match != nil {
			rows[match[1]] = line
		}
	}
	for _, f := range fields() {
		row, ok := rows[f.name]
		if !ok {
			t.Errorf("%s has no row in docs/config.md", f.name)
			continue
		}
		for _, key := range f.keys() {
			if !strings.Contains(row, "`"+key+"`") {
				t.Errorf("the row of %s lacks %s", f.name, key)
			}
		}
		if noEffect := f.noEffect != nil; noEffect != strings.Contains(row, "not yet") {
			t.Errorf("the row of %s is wrong about its effect: %s", f.name, row)
		}
	}
}

// TestSettingsAreDocumented checks that docs/config.md names each setting and section.
func TestSettingsAreDocumented(t *testing.T) {
	text := readDoc(t, "config.md")
	for _, s := range settings() {
		if name := "`" + s.section + "." + s.keys[0] + "`"; !strings.Contains(text, name) {
			t.Errorf("docs/config.md lacks %s", name)
		}
	}
	for _, section := range ownSections() {
		if !strings.Contains(text, "`"+section+"`") {
			t.Errorf("docs/config.md lacks the section %s", section)
		}
	}
}

// TestExamplesAreValid loads each block of JSON and YAML in docs/config.md.
func TestExamplesAreValid(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```(jsonc?|yaml)\n(.*?)```").FindAllStringSubmatch(readDoc(t, "config.md"), -1)
	if len(blocks) < 3 {
		t.Fatalf("only %d examples", len(blocks))
	}
	for _, block := range blocks {
		name := ServersFile
		if block[1] == "yaml" {
			name = GeneralFile
		}
		for _, f := range loadText(t, name, block[2]).Findings {
			if f.Severity == Error || f.Code == CodeKeyUnknown {
				t.Errorf("%s\nin the example:\n%s", f, block[2])
			}
		}
	}
}

// elsewhere are the codes that the files alone don't show, so that no case of the corpus has them.
func elsewhere() []Code {
	return []Code{
		CodeToolsUnknownName, CodeExpandUnset, CodeCommandNotFound, CodeCommandNotExecutable,
		CodeCwdUnusable, CodeEnvFileUnusable, CodeServerUnstartable, CodeEnvVaultUnavailable,
		CodeServerItself,
	}
}

// TestCodesAreDocumented checks that docs/findings.md and the corpus have every code, and no
// other.
func TestCodesAreDocumented(t *testing.T) {
	declared := declaredCodes(t)
	inDocs := documentedCodes(t)
	inCorpus := map[string]bool{}
	for _, code := range elsewhere() {
		inCorpus[string(code)] = true
	}
	for _, dir := range corpus(t) {
		for _, f := range loadCase(t, dir).Findings {
			inCorpus[string(f.Code)] = true
		}
	}
	if diff := cmp.Diff(declared, slices.Sorted(maps.Keys(inDocs))); diff != "" {
		t.Errorf("-code.go +docs/findings.md:\n%s", diff)
	}
	if diff := cmp.Diff(declared, slices.Sorted(maps.Keys(inCorpus))); diff != "" {
		t.Errorf("-code.go +testdata:\n%s", diff)
	}
	for code, severity := range inDocs {
		if got := Code(code).Severity(); got != severity {
			t.Errorf("%s is of severity %s, documented as %s", code, got, severity)
		}
	}
}
