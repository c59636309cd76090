// SPDX-License-Identifier: Apache-2.0

// Package ranking finds the documents that fit a query best, among some
// thousands in memory: words are compared by their stem, and weighed by BM25F
// (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), which
// counts a rare word more than a frequent one and a word in a name more than one
// in a description.
package ranking

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// The parameters of BM25F, at the values that its authors recommend.
const (
	saturation = 1.2  // k1: how soon more of the same word stop to count
	lengthNorm = 0.75 // b: how much a long field is held against its words
)

// discount is what a word counts that means the same as one of the query.
const discount = 0.5

// maxWords bounds the words that are read of one field and of a query: what is
// indexed comes from strangers.
const maxWords = 200

// A Field is a part of a document. Documents of an index have the same fields in
// the same order.
type Field struct {
	Text   string
	Weight float64 // how much a word in it counts
}

// An Index is what can be searched. It never changes and is safe for concurrent
// use.
type Index struct {
	size     int
	postings map[string][]posting // by stem, in the order of the documents
	synonyms map[string][]string  // stems that mean the same as a stem
}

// A posting says how much a stem counts in a document.
type posting struct {
	document int
	weight   float64
}

// New indexes documents. Hits name them by their place in the list. Each of the
// synonyms is a group of words that mean the same, separated by blanks.
func New(documents [][]Field, synonyms ...string) *Index {
	x := &Index{
		size: len(documents), postings: make(map[string][]posting), synonyms: make(map[string][]string),
	}
	for _, group := range synonyms {
		stems := Stems(group)
		for _, stem := range stems {
			x.synonyms[stem] = append(x.synonyms[stem], stems...)
		}
	}
	stems := make([][][]string, len(documents)) // by document and field
	var average []float64                       // length of each field
	for i, fields := range documents {
		stems[i] = make([][]string, len(fields))
		for f, field := range fields {
			stems[i][f] = Stems(field.Text)
			if f == len(average) {
				average = append(average, 0)
			}
			average[f] += float64(len(stems[i][f])) / float64(len(documents))
		}
	}
	for i, fields := range documents {
		weights := make(map[string]float64)
		for f, field := range fields {
			norm := 1 - lengthNorm + lengthNorm*float64(len(stems[i][f]))/max(average[f], 1)
			for _, stem := range stems[i][f] {
				weights[stem] += field.Weight / norm
			}
		}
		for stem, weight := range weights {
			x.postings[stem] = append(x.postings[stem], posting{i, weight})
		}
	}
	return x
}

// A Hit is a document that has words of the query.
type Hit struct {
	Document int
	Score    float64
}

// Search returns the documents that have a word of the query, the best first and
// of equals the one that was indexed first.
func (x *Index) Search(query string) []Hit {
	scores := make(map[int]float64)
	meant := x.meant(query)
	for _, stem := range slices.Sorted(maps.Keys(meant)) { // sums differ by their order
		found := x.postings[stem]
		n, df := float64(x.size), float64(len(found))
		rarity := math.Log(1 + (n-df+0.5)/(df+0.5))
		for _, p := range found {
			scores[p.document] += meant[stem] * rarity * p.weight / (saturation + p.weight)
		}
	}
	hits := make([]Hit, 0, len(scores))
	for document, score := range scores {
		hits = append(hits, Hit{document, score})
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Document, b.Document))
	})
	return hits
}

// meant are the words of a query and those that mean the same, with what each
// counts.
func (x *Index) meant(query string) map[string]float64 {
	factors := make(map[string]float64)
	for _, stem := range Stems(query) {
		factors[stem] = 1
		for _, other := range x.synonyms[stem] {
			factors[other] = max(factors[other], discount)
		}
	}
	return factors
}

// Stems returns the words of a text by which it is found: in small letters,
// without endings, and without the words that every English text has. Names such
// as read_file are taken apart; readFile stays a word, too.
func Stems(text string) (stems []string) {
	for _, word := range words(text) {
		if len(stems) == maxWords {
			break
		}
		if english.IsStopWord(word) {
			continue
		}
		stems = append(stems, english.Stem(word, false))
	}
	return stems
}

// words takes a text apart where letters and digits end. Of a word with a small
// letter before a big one, the parts are words too: GitHub is also found as
// github, and readFile as file.
func words(text string) (list []string) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if len(list) >= 2*maxWords {
			break
		}
		list = append(list, strings.ToLower(word))
		if parts := humps(word); len(parts) > 1 {
			list = append(list, parts...)
		}
	}
	return list
}

// humps takes a word apart before each big letter that follows a small one.
func humps(word string) (parts []string) {
	start, last := 0, ' '
	for i, r := range word {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			parts = append(parts, strings.ToLower(word[start:i]))
			start = i
		}
		last = r
	}
	return append(parts, strings.ToLower(word[start:]))
}
