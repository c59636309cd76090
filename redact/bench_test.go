// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// manyValues returns n secrets as they are in practice: tokens of 24 to 64
// letters and digits, some with the same beginning.
func manyValues(n int) []Value {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]Value, n)
	for i := range values {
		raw := make([]byte, 18+random.IntN(30))
		for j := range raw {
			raw[j] = byte(random.Uint32())
		}
		prefix := []string{"", "ghp_", "xoxb-", "sk-proj-"}[i%4]
		values[i] = Value{Name: fmt.Sprintf("KEY_%d", i), Text: prefix + base64.RawURLEncoding.EncodeToString(raw)}
	}
	return values
}

// cleanText returns about a megabyte of what servers write: prose, logs, source
// code, digests and base64.
func cleanText() []byte {
	random := rand.New(rand.NewPCG(3, 4))
	words := strings.Fields(`the server returned a list of issues with labels and comments; error: connection
		refused at https://api.example.com/v1/items?page=2&limit=50 func main() { fmt.Println("hello") } 2026-11-30
		INFO request finished status=200 duration=12ms path=/home/user/src/project/index.ts const x = await get()`)
	var b strings.Builder
	for b.Len() < 1<<20 {
		for range 12 {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		if random.IntN(8) == 0 {
			fmt.Fprintf(&b, "%016x%016x ", random.Uint64(), random.Uint64())
		}
		b.WriteString("\n")
	}
	return []byte(b.String())
}

// cleanJSON returns about a megabyte of a tool's result.
func cleanJSON(tb testing.TB) []byte {
	tb.Helper()
	content := make([]map[string]string, 0, 256)
	text := string(cleanText())
	for len(text) > 4096 {
		content = append(content, map[string]string{"type": "text", "text": text[:4096]})
		text = text[4096:]
	}
	message := map[string]any{"jsonrpc": "2.0", "id": 7, "result": map[string]any{"content": content}}
	b, err := json.Marshal(message)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func benchmark(b *testing.B, secrets int, text []byte, redact func(*Set, []byte) ([]byte, Found)) {
	b.Helper()
	var s Set
	defer s.Hold(manyValues(secrets))()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, found := redact(&s, text); !found.None() {
			b.Fatal(found.Names())
		}
	}
}

func BenchmarkText100(b *testing.B) { benchmark(b, 100, cleanText(), (*Set).Text) }

func BenchmarkText300(b *testing.B) { benchmark(b, 300, cleanText(), (*Set).Text) }

func BenchmarkJSON100(b *testing.B) { benchmark(b, 100, cleanJSON(b), (*Set).JSON) }

func BenchmarkSmall100(b *testing.B) { benchmark(b, 100, cleanText()[:400], (*Set).Text) }

func BenchmarkNone(b *testing.B) { benchmark(b, 0, cleanJSON(b), (*Set).JSON) }

// BenchmarkEscaped is the worst that a server can make of text: nothing but
// escapes in escapes.
func BenchmarkEscaped(b *testing.B) {
	benchmark(b, 100, []byte(strings.Repeat(`\\u0041%2541&amp;lt;`, 1<<15)), (*Set).Text)
}

func BenchmarkHold100(b *testing.B) {
	var s Set
	values := manyValues(100)
	b.ReportAllocs()
	for b.Loop() {
		s.current.Store(automatonOf(values))
	}
	a := s.current.Load()
	b.ReportMetric(float64(4*len(a.table)+28*len(a.states)), "table-bytes")
}
