// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/sandbox.md has the list of claims, a row each.
func TestClaimsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, claim := range Claims() {
		row := fmt.Sprintf("| `%s` | %s |", claim.Name, claim.Text)
		for _, level := range []Level{LevelNamespaces, LevelLandlock, LevelBasic} {
			held := " no |"
			if claim.Holds(&Confinement{Level: level, Landlock: 6}) {
				held = " yes |"
			}
			row += held
		}
		rows = append(rows, row)
	}
	if want := strings.Join(rows, "\n"); !strings.Contains(string(text), want) {
		t.Errorf("docs/sandbox.md lacks these rows:\n%s", want)
	}
}
