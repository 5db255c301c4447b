// Package near finds the names that someone who typed another one may have meant. It knows nothing of what the names
// stand for.
package near

import (
	"slices"
	"strings"
)

// Misses lists the candidates closest to name, at most three, closest first and alphabetically among equals. A candidate
// farther than a third of its length (or two edits, for short ones) is no near miss.
func Misses(name string, candidates []string) []string {
	type miss struct {
		name string
		dist int
	}
	var found []miss
	for _, c := range candidates {
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if d <= max(2, len(c)/3) && d < max(len(c), len(name)) {
			found = append(found, miss{c, d})
		}
	}
	slices.SortFunc(found, func(a, b miss) int {
		if a.dist != b.dist {
			return a.dist - b.dist
		}
		return strings.Compare(a.name, b.name)
	})
	var names []string
	for _, m := range found[:min(3, len(found))] {
		names = append(names, m.name)
	}
	return names
}

// Suggest is "; did you mean a, b or c?", or "" when nothing is near: the end of an error message.
func Suggest(name string, candidates []string) string {
	m := Misses(name, candidates)
	switch len(m) {
	case 0:
		return ""
	case 1:
		return "; did you mean " + m[0] + "?"
	}
	last := len(m) - 1
	return "; did you mean " + strings.Join(m[:last], ", ") + " or " + m[last] + "?"
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours between a and b.
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j+1]+1, cur[j]+1, prev[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
