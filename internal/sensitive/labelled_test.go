// SPDX-License-Identifier: Apache-2.0

package sensitive

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// slots finds what the labelled set leaves to the test to make.
var slots = regexp.MustCompile(`\{(?:uuid|jwt|[a-z0-9]+:\d+)\}`)

// fill replaces the slots of a template with random text.
func fill(random *rand.Rand, template string) string {
	return slots.ReplaceAllStringFunc(template, func(slot string) string {
		kind, length, _ := strings.Cut(strings.Trim(slot, "{}"), ":")
		n, _ := strconv.Atoi(length)
		return make1(random, kind, n)
	})
}

// make1 makes one random text of a kind.
func make1(random *rand.Rand, kind string, n int) string {
	const upper, digit = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	lower := strings.ToLower(upper)
	switch kind {
	case "uuid":
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12),
			random.IntN(1<<12), random.Int64N(1<<48))
	case "jwt":
		header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"role":"service","iat":1700000000}`))
		return header + "." + claims + "." + make1(random, "word", 43)
	}
	alphabet := map[string]string{
		"alnum": upper + lower + digit, "letters": upper + lower, "lower": lower + digit, "upper": upper + digit,
		"hex": digit + "abcdef", "base32": upper + "234567", "digits": digit, "word": upper + lower + digit + "_-",
		"b64": upper + lower + digit + "+/",
	}[kind]
	var b strings.Builder
	for range n {
		b.WriteByte(alphabet[random.IntN(len(alphabet))])
	}
	return b.String()
}

// A tally counts how guesses compare with labels.
type tally struct{ hits, misses, alarms, rejections int }

func (c *tally) add(label, guess bool) {
	switch {
	case label && guess:
		c.hits++
	case label:
		c.misses++
	case guess:
		c.alarms++
	default:
		c.rejections++
	}
}

func (c *tally) precision() float64 { return float64(c.hits) / float64(max(c.hits+c.alarms, 1)) }

func (c *tally) recall() float64 { return float64(c.hits) / float64(max(c.hits+c.misses, 1)) }

// TestLabelled measures Pair with names and values of real servers.
func TestLabelled(t *testing.T) {
	const rounds, floor = 5, 0.97
	text, err := os.ReadFile("testdata/labelled.txt")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	var all tally
	wrong := make(map[string]int)
	cases := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		label, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, template, ok := strings.Cut(rest, " ")
		if !ok || label != "yes" && label != "no" {
			t.Fatalf("a line that is not understood: %q", line)
		}
		cases++
		for range rounds {
			value := strings.ReplaceAll(fill(random, template), `\n`, "\n")
			if strings.HasPrefix(value, "{") { // JSON keeps its escapes
				value = fill(random, template)
			}
			_, guess := Pair(name, value)
			all.add(label == "yes", guess)
			if guess != (label == "yes") {
				wrong[fmt.Sprintf("%s %s %s", label, name, template)]++
			}
		}
	}
	for line, n := range wrong {
		t.Logf("wrong in %d of %d: %s", n, rounds, line)
	}
	t.Logf("%d names with values, precision %.4f, recall %.4f", cases, all.precision(), all.recall())
	if cases < 200 || all.precision() < floor || all.recall() < floor {
		t.Errorf("precision %.4f and recall %.4f of %d, want %.2f", all.precision(), all.recall(), cases, floor)
	}
}
