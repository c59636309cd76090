// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// didYouMean returns what to do about an unknown key: the known one that it is nearest to, if
// any is near.
func didYouMean(key string, known []string) string {
	if nearest := Nearest(key, known); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return "check the spelling, or remove it; garra ignores it and keeps it"
}

// Nearest returns which of the known keys or names somebody most likely meant: the first with
// the least edit distance, or one that is longer or shorter at its end alone, or "" when nothing
// is near. Case, underscores and hyphens don't count. Long ones are near to nothing, since what
// is known may be named by a stranger.
func Nearest(key string, known []string) string {
	const longest = 64
	known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return len(k) > longest })
	if len(key) > longest {
		return ""
	}
	folded := fold(key)
	nearest, least := "", max(1, len(folded)/3)+1
	for _, candidate := range known {
		if distance := editDistance(folded, fold(candidate)); distance < least {
			nearest, least = candidate, distance
		}
	}
	if nearest != "" {
		return nearest
	}
	for _, candidate := range known {
		if startAlike(folded, fold(candidate)) {
			return candidate
		}
	}
	return ""
}

// startAlike reports whether one of two keys is the start of the other, and not a trivial one.
func startAlike(a, b string) bool {
	const least = 3
	return min(len(a), len(b)) >= least && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// fold removes the differences between camelCase, snake_case and kebab-case.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, key)
}

// editDistance returns how many insertions, deletions, replacements and swaps of neighbours
// lead from a to b (optimal string alignment).
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
