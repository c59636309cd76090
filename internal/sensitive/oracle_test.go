// SPDX-License-Identifier: Apache-2.0

package sensitive

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"
)

// publicRules is a module with the rules of a scanner for secrets.
const publicRules = "github.com/zricethezav/gitleaks/v8@v8.30.1"

// A rule finds one kind of secret. The first group that matches is the secret;
// a rule that needs a name before it is told by its beginning.
type rule struct {
	id    string
	text  string
	named bool
}

// readRules fetches the rules, and skips the test when they can't be had.
func readRules(t *testing.T) []rule {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", publicRules)
	download.Dir = t.TempDir()
	out, err := download.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("%s can't be downloaded: %v", publicRules, err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "config", "gitleaks.toml"))
	if err != nil {
		t.Fatal(err)
	}
	id, pattern := regexp.MustCompile(`(?m)^id = "(.*)"$`), regexp.MustCompile(`(?m)^regex = '''(.*)'''$`)
	var rules []rule
	for block := range strings.SplitSeq(string(text), "[[rules]]") {
		name, expression := id.FindStringSubmatch(block), pattern.FindStringSubmatch(block)
		if name != nil && expression != nil {
			rules = append(rules, rule{name[1], expression[1], strings.Contains(expression[1], `[\w.-]{0,50}?`)})
		}
	}
	return rules
}

// sample makes a text that an expression matches, of ASCII.
func sample(random *rand.Rand, e *syntax.Regexp) string {
	var b strings.Builder
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		var choice []rune
		for i := 0; i < len(e.Rune); i += 2 {
			for r := max(e.Rune[i], ' '); r <= min(e.Rune[i+1], '~'); r++ {
				choice = append(choice, r)
			}
		}
		if len(choice) > 0 {
			return string(choice[random.IntN(len(choice))])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return make1(random, "alnum", 1)
	case syntax.OpAlternate:
		return sample(random, e.Sub[random.IntN(len(e.Sub))])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := repeats(e)
		for range least + random.IntN(most-least+1) {
			b.WriteString(sample(random, e.Sub[0]))
		}
	default:
		for _, part := range e.Sub {
			b.WriteString(sample(random, part))
		}
	}
	return b.String()
}

// repeats returns how often a part is repeated: not much more than it has to.
func repeats(e *syntax.Regexp) (least, most int) {
	switch e.Op {
	case syntax.OpStar:
		return 0, 3
	case syntax.OpPlus:
		return 12, 24
	case syntax.OpQuest:
		return 0, 1
	}
	if e.Max < 0 {
		return e.Min, e.Min + 8
	}
	return e.Min, min(e.Max, e.Min+8)
}

// secretsOf returns what an expression matches: all of it, and its first group.
// It returns nothing when no sample could be made.
func secretsOf(t *testing.T, random *rand.Rand, text string) []string {
	t.Helper()
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		groups := compiled.FindStringSubmatch(sample(random, parsed))
		if groups != nil {
			return slices.DeleteFunc(groups, func(group string) bool { return len(group) < 8 })
		}
	}
	return nil
}

// isSecret tells whether one of the texts is a secret here.
func (r rule) isSecret(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		if r.named {
			_, ok := Pair(strings.ReplaceAll(r.id, "-", "_"), text)
			return ok
		}
		_, ok := Value(text)
		return ok
	})
}

// hits returns of how many samples the secret is one here too, -1 when no sample
// can be made.
func (r rule) hits(t *testing.T, random *rand.Rand, rounds int) int {
	t.Helper()
	hits := 0
	for range rounds {
		texts := secretsOf(t, random, r.text)
		switch {
		case len(texts) == 0:
			return -1
		case r.isSecret(texts):
			hits++
		}
	}
	return hits
}

// TestPublicRules compares with the rules of a scanner: what they find is a
// secret here too. Rules that go by a name are asked with their own id as the
// name. Left out are rules for what is public, and those for whole commands and
// files.
func TestPublicRules(t *testing.T) {
	const rounds, floor = 10, 0.95
	left := regexp.MustCompile(`-(?:client|access|api)-id$|-pub(?:lic)?-key$|` +
		`^(?:curl|kubernetes|nuget|freemius|gitlab-session|hashicorp-tf-password)`)
	random := rand.New(rand.NewPCG(7, 8))
	found, all := map[bool]int{}, map[bool]int{}
	for _, r := range readRules(t) {
		if left.MatchString(r.id) {
			continue
		}
		hits := r.hits(t, random, rounds)
		if hits < rounds {
			t.Logf("%s: %d of %d samples", r.id, hits, rounds)
		}
		if hits < 0 {
			continue
		}
		all[r.named]++
		if hits*10 >= rounds*9 {
			found[r.named]++
		}
	}
	for _, named := range []bool{false, true} {
		recall := float64(found[named]) / float64(max(all[named], 1))
		t.Logf("rules that go by a name: %v: %d of %d, recall %.3f", named, found[named], all[named], recall)
		if recall < floor || all[named] < 50 {
			t.Errorf("recall %.3f of %d rules, want %.2f", recall, all[named], floor)
		}
	}
}
