package filecheck

import (
	"fmt"
	"strings"
)

func occurrence(n, of int) string { return fmt.Sprintf(" (%d out of %d)", n, of) }

// noteValues shows the values that a pattern's variables had.
func (c *checker) noteValues(p *pattern, at loc) {
	for _, piece := range p.pieces {
		name, value := piece.text, ""
		switch {
		case piece.number != nil:
			text, err := piece.number.value(piece.at)
			if err != nil {
				continue
			}
			name, value = piece.number.text, text
		case piece.text != "":
			text, ok := c.vars.text[piece.text]
			if !ok {
				continue
			}
			value = text
		default:
			continue
		}
		c.message(at, "note", "with %q equal to %q", name, value)
	}
}

// Bounds of the search for a near miss, whose cost is their product with a line's length.
const (
	nearLines  = 200 // lines looked at
	nearLength = 200 // characters compared in a line
)

// nearest guesses which line was meant: the one whose text has the most pairs of neighbouring characters in common with
// the pattern, if that is at least half of the pattern's pairs. It gives the offset of the line's text, 0 for none.
func (c *checker) nearest(p *pattern, text string) int {
	want := pairs(p.example())
	best, bestScore, off := 0, len(want)/2, 0
	for i, line := range strings.SplitAfter(text, "\n") {
		if i == nearLines {
			break
		}
		trimmed := strings.TrimLeft(line, " \t")
		score := 0
		for pair := range pairs(trimmed[:min(len(trimmed), nearLength)]) {
			if want[pair] {
				score++
			}
		}
		if score > bestScore {
			best, bestScore = off+len(line)-len(trimmed), score
		}
		off += len(line)
	}
	return best
}

func pairs(s string) map[string]bool {
	set := map[string]bool{}
	for i := 0; i+2 <= len(s); i++ {
		set[s[i:i+2]] = true
	}
	return set
}

// example is the text of the pattern, for comparing.
func (p *pattern) example() string {
	if p.fixed != "" {
		return p.fixed
	}
	var b strings.Builder
	for _, piece := range p.pieces {
		b.WriteString(strings.ReplaceAll(piece.ere, `\`, ""))
	}
	return b.String()
}
