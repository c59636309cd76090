// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A record keeps all that left garra, by where it did. It is safe for concurrent use.
type record struct {
	mu    sync.Mutex // guards texts
	texts map[string]*bytes.Buffer
}

// add keeps one more text that left at a place.
func (r *record) add(where, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.texts == nil {
		r.texts = make(map[string]*bytes.Buffer)
	}
	if r.texts[where] == nil {
		r.texts[where] = new(bytes.Buffer)
	}
	r.texts[where].WriteString(text)
}

// at returns what has left at a place so far.
func (r *record) at(where string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.texts[where] == nil {
		return ""
	}
	return r.texts[where].String()
}

// writer returns a writer that keeps what is written.
func (r *record) writer(where string) io.Writer { return recorder{r, where} }

// A recorder is the writer of one place.
type recorder struct {
	record *record
	where  string
}

// Write implements io.Writer.
func (r recorder) Write(p []byte) (int, error) {
	r.record.add(r.where, string(p))
	return len(p), nil
}

// size is how many bytes have left, and at how many places.
func (r *record) size() (total, places int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.texts {
		total += text.Len()
	}
	return total, len(r.texts)
}

// A leak is a canary that was found.
type leak struct {
	where, canary, form string
	around              string // without the canary
}

func (l leak) String() string {
	return fmt.Sprintf("%s: the canary %q as %s, around %q", l.where, l.canary, l.form, l.around)
}

// keyLength is how long the beginning of a needle is by which it is found first.
const keyLength = 8

// A needle is a text to look for, and what it was made of.
type needle struct{ text, canary, form string }

// needles returns what canaries are found by, by how it begins: the halves of each
// form of each part.
func needles(canaries flock) map[string][]needle {
	all := make(map[string][]needle)
	for name, c := range canaries {
		for _, part := range c.parts {
			for _, f := range forms(part) {
				middle := len(f.trace) / 2
				for _, half := range []string{f.trace[:middle], f.trace[middle:]} {
					all[half[:keyLength]] = append(all[half[:keyLength]], needle{half, name, f.name})
				}
			}
		}
	}
	return all
}

// search looks for canaries everywhere. What a place may show is not looked for; nil
// is that none may show anything. It returns one leak for each place, canary and form.
func (r *record) search(canaries flock, may func(where string, c *canary) bool) []leak {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, seen := needles(canaries), make(map[string]bool)
	var found []leak
	for _, where := range slices.Sorted(maps.Keys(r.texts)) {
		text := r.texts[where].String()
		for i := range max(len(text)-keyLength+1, 0) {
			for _, n := range all[text[i:i+keyLength]] {
				key := where + "\x00" + n.canary
				if seen[key] || !strings.HasPrefix(text[i:], n.text) || may != nil && may(where, canaries[n.canary]) {
					continue
				}
				seen[key] = true
				around := text[max(0, i-150):i] + "…" + text[i+len(n.text):min(len(text), i+len(n.text)+40)]
				found = append(found, leak{where, n.canary, n.form, around})
			}
		}
	}
	return found
}
