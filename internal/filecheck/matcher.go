package filecheck

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A matcher finds the longest of the leftmost matches of an expression. The result is as from regexp's
// FindStringSubmatchIndex: pairs of offsets for the match and each group, -1 where a group took no part; nil for no match.
type matcher interface {
	find(text string) ([]int, error)
}

// compile reads an expression. Those without back-references run in linear time.
func compile(text string, ignoreCase bool) (matcher, error) {
	root, p, err := parseERE(text)
	if err != nil {
		return nil, err
	}
	if p.backrefs {
		return &backtracker{root: root, groups: p.groups, ignoreCase: ignoreCase}, nil
	}
	var b strings.Builder
	if ignoreCase {
		b.WriteString("(?i)")
	}
	root.goSyntax(&b)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, err
	}
	re.Longest()
	return goMatcher{re}, nil
}

type goMatcher struct{ re *regexp.Regexp }

func (m goMatcher) find(text string) ([]int, error) { return m.re.FindStringSubmatchIndex(text), nil }

// maxSteps bounds a backtracking search, whose time may grow exponentially. Expressions seen in practice need fewer
// steps than the input has characters times the length of a line.
const maxSteps = 100_000_000

// A backtracker matches expressions with back-references: it tries every way, and keeps the longest.
type backtracker struct {
	root       *node
	groups     int
	ignoreCase bool
}

func (m *backtracker) find(text string) ([]int, error) {
	s := &search{m: m, text: text, caps: make([]int, 2*m.groups+2)}
	for start := 0; start <= len(text); start++ {
		for i := range s.caps {
			s.caps[i] = -1
		}
		s.match(m.root, start, func(end int) {
			if s.best == nil || end > s.best[1] {
				s.best = append([]int{start, end}, s.caps[2:]...)
			}
		})
		if s.steps > maxSteps {
			return nil, errors.New("the expression with its back-references is too complex for this input")
		}
		if s.best != nil {
			return s.best, nil
		}
	}
	return nil, nil
}

// A search is one run of a backtracker.
type search struct {
	m     *backtracker
	text  string
	caps  []int
	best  []int
	steps int
}

// match calls then with every place where n can end when it starts at pos, greedy choices first.
func (s *search) match(n *node, pos int, then func(end int)) {
	if s.steps++; s.steps > maxSteps {
		return
	}
	switch n.op {
	case opChar, opAny, opClass:
		r, size := utf8.DecodeRuneInString(s.text[pos:])
		if size > 0 && s.accepts(n, r) {
			then(pos + size)
		}
	case opLineStart:
		if pos == 0 || s.text[pos-1] == '\n' {
			then(pos)
		}
	case opLineEnd:
		if pos == len(s.text) || s.text[pos] == '\n' {
			then(pos)
		}
	case opConcat:
		s.concat(n.subs, pos, then)
	case opAlternate:
		for _, sub := range n.subs {
			s.match(sub, pos, then)
		}
	case opRepeat:
		s.repeat(n, 0, pos, then)
	case opGroup:
		saved := [2]int{s.caps[2*n.group], s.caps[2*n.group+1]}
		s.match(n.subs[0], pos, func(end int) {
			inner := [2]int{s.caps[2*n.group], s.caps[2*n.group+1]}
			s.caps[2*n.group], s.caps[2*n.group+1] = pos, end
			then(end)
			s.caps[2*n.group], s.caps[2*n.group+1] = inner[0], inner[1]
		})
		s.caps[2*n.group], s.caps[2*n.group+1] = saved[0], saved[1]
	case opBackref:
		s.backref(n, pos, then)
	}
}

func (s *search) concat(subs []*node, pos int, then func(int)) {
	if len(subs) == 0 {
		then(pos)
		return
	}
	s.match(subs[0], pos, func(end int) { s.concat(subs[1:], end, then) })
}

func (s *search) repeat(n *node, done, pos int, then func(int)) {
	if n.max < 0 || done < n.max {
		s.match(n.subs[0], pos, func(end int) {
			if end > pos || done < n.min { // an empty turn more would go on for ever
				s.repeat(n, done+1, end, then)
			}
		})
	}
	if done >= n.min {
		then(pos)
	}
}

func (s *search) backref(n *node, pos int, then func(int)) {
	from, to := s.caps[2*n.group], s.caps[2*n.group+1]
	if from < 0 || pos+to-from > len(s.text) {
		return
	}
	was, is := s.text[from:to], s.text[pos:pos+to-from]
	if was == is || s.m.ignoreCase && strings.EqualFold(was, is) {
		then(pos + to - from)
	}
}

// accepts reports whether a one-character node takes r.
func (s *search) accepts(n *node, r rune) bool {
	switch n.op {
	case opChar:
		return r == n.char || s.m.ignoreCase && strings.EqualFold(string(r), string(n.char))
	case opAny:
		return r != '\n'
	}
	in := n.contains(r)
	if s.m.ignoreCase {
		in = in || n.contains(unicode.ToLower(r)) || n.contains(unicode.ToUpper(r))
	}
	return in != n.negated && !(n.negated && r == '\n')
}

func (n *node) contains(r rune) bool {
	for i := 0; i < len(n.ranges); i += 2 {
		if n.ranges[i] <= r && r <= n.ranges[i+1] {
			return true
		}
	}
	return false
}
