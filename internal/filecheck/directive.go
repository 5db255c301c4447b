package filecheck

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A kind is what a directive's suffix asks for.
type kind uint8

const (
	kindPlain kind = iota
	kindNext
	kindSame
	kindNot
	kindDAG
	kindLabel
	kindEmpty
	kindEOF // stands after the last directive: everything up to the end has been looked at
)

// suffixes lists the words after a prefix.
var suffixes = []struct {
	word string
	kind kind
}{
	{"NEXT", kindNext}, {"SAME", kindSame}, {"NOT", kindNot},
	{"DAG", kindDAG}, {"LABEL", kindLabel}, {"EMPTY", kindEmpty},
}

// A directive is one check, with the CHECK-DAG and CHECK-NOT lines that come before it.
type directive struct {
	pattern *pattern
	before  []*pattern // kindDAG and kindNot, in the order of the file
}

// A head is a directive up to its colon.
type head struct {
	prefix  string
	at      int // offset of the prefix
	end     int // offset after the colon
	kind    kind
	count   int
	literal bool
	comment bool
}

func (h head) name() string {
	name := h.prefix
	for _, s := range suffixes {
		if s.kind == h.kind {
			name += "-" + s.word
		}
	}
	if h.count > 1 {
		name += "-COUNT"
	}
	if h.literal {
		name += "{LITERAL}"
	}
	return name
}

// readDirectives reads all directives of the check file.
func (c *checker) readDirectives(check *source) ([]directive, error) {
	if err := c.validatePrefixes(); err != nil {
		return nil, err
	}
	if err := c.defineFromOptions(); err != nil {
		return nil, err
	}
	implicit, err := c.implicitNots()
	if err != nil {
		return nil, err
	}

	var list []directive
	before := slices.Clone(implicit)
	used := map[string]bool{}
	for off := 0; ; {
		h, found, err := c.nextHead(check, off)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		start, end := patternSpan(check.text, h.end, c.opts.StrictWhitespace && c.opts.MatchFullLines)
		off = end
		if h.comment {
			continue
		}
		used[h.prefix] = true
		p, err := c.parsePattern(h, loc{check, start}, check.text[start:end])
		if err != nil {
			return nil, err
		}
		if err := checkPlacement(h, p, loc{check, h.at}, len(list) > 0); err != nil {
			return nil, err
		}
		if h.kind == kindNot || h.kind == kindDAG {
			before = append(before, p)
			continue
		}
		list = append(list, directive{p, before})
		before = slices.Clone(implicit)
	}
	if err := c.checkUsedPrefixes(used); err != nil {
		return nil, err
	}
	if len(before) > 0 {
		end := &pattern{head: head{prefix: c.opts.CheckPrefixes[0], kind: kindEOF, count: 1}, at: loc{check, len(check.text)}}
		list = append(list, directive{end, before})
	}
	return list, nil
}

// patternSpan finds the pattern after a directive's colon: the rest of the line.
func patternSpan(text string, start int, keepBlanks bool) (int, int) {
	for !keepBlanks && start < len(text) && isBlank(text[start]) {
		start++
	}
	if n := strings.IndexAny(text[start:], "\n\r"); n >= 0 {
		return start, start + n
	}
	return start, len(text)
}

// nextHead finds the next directive at or after off: a prefix that doesn't end a longer word, a known suffix and a colon.
func (c *checker) nextHead(check *source, off int) (head, bool, error) {
	text := check.text
	for {
		at, prefix := c.nextPrefix(text, off)
		if prefix == "" {
			return head{}, false, nil
		}
		if at == off || !isWord(text[at-1]) {
			h := head{prefix: prefix, at: at, count: 1}
			ok, err := c.readSuffix(&h, check)
			if err != nil || ok {
				return h, ok, err
			}
		}
		off = at + len(prefix)
		for off < len(text) && isWord(text[off]) {
			off++
		}
	}
}

// nextPrefix finds the first prefix at or after off; where several start at the same place, the longest.
func (c *checker) nextPrefix(text string, off int) (int, string) {
	at, found := 0, ""
	for _, prefix := range slices.Concat(c.opts.CheckPrefixes, c.opts.CommentPrefixes) {
		n := strings.Index(text[off:], prefix)
		if n < 0 {
			continue
		}
		if n += off; found == "" || n < at || n == at && len(prefix) > len(found) {
			at, found = n, prefix
		}
	}
	return at, found
}

func isWord(c byte) bool { return isAlnum(c) || c == '-' || c == '_' }

func isAlnum(c byte) bool { return isAlpha(c) || '0' <= c && c <= '9' }

func isAlpha(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// readSuffix reads what follows the prefix up to the colon. It is false where the prefix turns out to be ordinary text.
func (c *checker) readSuffix(h *head, check *source) (bool, error) {
	rest := check.text[h.at+len(h.prefix):]
	here := func() loc { return loc{check, len(check.text) - len(rest)} }
	if slices.Contains(c.opts.CommentPrefixes, h.prefix) {
		h.comment, h.end = true, h.at+len(h.prefix)+1
		return strings.HasPrefix(rest, ":"), nil
	}
	misspelled := strings.HasPrefix(rest, "_")
	if !strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "{") {
		var ok bool
		if rest, ok = cutAny(rest, "-", "_"); !ok {
			return false, nil
		}
		switch after, isCount := strings.CutPrefix(rest, "COUNT-"); {
		case isCount:
			if h.count, rest, ok = readCount(after); !ok {
				return false, errorAt(here(), "invalid count in -COUNT specification on prefix '%s'", h.prefix)
			}
		case isBadNot(rest):
			return false, errorAt(here(), "unsupported -NOT combo on prefix '%s'", h.prefix)
		default:
			if h.kind, rest, ok = readKind(rest); !ok {
				return false, nil
			}
		}
	}
	rest, ok := readModifiers(h, rest)
	if misspelled && ok {
		at := loc{check, h.at}
		return false, errorAt(at, "misspelled directive '%s'", check.text[h.at:here().off])
	}
	h.end = here().off
	return ok, nil
}

func cutAny(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return rest, true
		}
	}
	return s, false
}

func readKind(rest string) (kind, string, bool) {
	for _, s := range suffixes {
		if after, ok := strings.CutPrefix(rest, s.word); ok {
			return s.kind, after, true
		}
	}
	return kindPlain, rest, false
}

// readCount reads the number of CHECK-COUNT-n. It isn't ok without a positive number before the colon or modifiers.
func readCount(rest string) (int, string, bool) {
	n := 0
	for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
		n++
	}
	count, err := strconv.Atoi(rest[:n])
	rest = rest[n:]
	ok := err == nil && count > 0 && count <= math.MaxInt32 && rest != "" && (rest[0] == ':' || rest[0] == '{')
	return count, rest, ok
}

// isBadNot reports whether -NOT is combined with another suffix.
func isBadNot(rest string) bool {
	for _, s := range []string{"DAG", "NEXT", "SAME", "EMPTY"} {
		if strings.HasPrefix(rest, s+"-NOT:") || strings.HasPrefix(rest, "NOT-"+s+":") {
			return true
		}
	}
	return false
}

// readModifiers reads an optional {LITERAL} and the colon.
func readModifiers(h *head, rest string) (string, bool) {
	const space = " \t\n\v\f\r"
	if after, ok := strings.CutPrefix(rest, "{"); ok {
		for {
			after, ok = strings.CutPrefix(strings.TrimLeft(after, space), "LITERAL")
			if !ok {
				return rest, false
			}
			h.literal = true
			after = strings.TrimLeft(after, space)
			if after, ok = strings.CutPrefix(after, ","); !ok {
				break
			}
		}
		if rest, ok = strings.CutPrefix(after, "}"); !ok {
			return rest, false
		}
	}
	return strings.CutPrefix(rest, ":")
}

// checkPlacement refuses directives that make no sense where they are.
func checkPlacement(h head, p *pattern, at loc, hasPrevious bool) error {
	switch h.kind {
	case kindLabel:
		if p.usesVariables() {
			return errorAt(at, "found '%s-LABEL:' with variable definition or use", h.prefix)
		}
	case kindNext, kindSame, kindEmpty:
		if !hasPrevious {
			return errorAt(at, "found '%s' without previous '%s: line", h.name(), h.prefix)
		}
	}
	return nil
}

// checkUsedPrefixes refuses a check file that checks nothing, and prefixes that it never uses.
func (c *checker) checkUsedPrefixes(used map[string]bool) error {
	var unused []string
	for _, prefix := range c.opts.CheckPrefixes {
		if !used[prefix] {
			unused = append(unused, "'"+prefix+":'")
		}
	}
	if len(unused) == 0 || len(used) > 0 && c.opts.AllowUnusedPrefixes {
		return nil
	}
	if len(c.opts.ImplicitCheckNot) > 0 && c.defaultPrefix {
		return nil
	}
	return fmt.Errorf("no check strings found with prefix %s", strings.Join(unused, ", "))
}

// validatePrefixes refuses prefixes that can't be told from text or from each other.
func (c *checker) validatePrefixes() error {
	seen := map[string]bool{}
	for _, prefix := range slices.Concat(c.opts.CheckPrefixes, c.opts.CommentPrefixes) {
		if prefix == "" || strings.ContainsFunc(prefix, func(r rune) bool { return r > 127 || !isWord(byte(r)) }) {
			return fmt.Errorf("prefix '%s' must be letters, digits, hyphens and underscores", prefix)
		}
		if seen[prefix] {
			return fmt.Errorf("prefix '%s' is given twice", prefix)
		}
		seen[prefix] = true
	}
	return nil
}

// implicitNots are the patterns that --implicit-check-not adds before every directive.
func (c *checker) implicitNots() ([]*pattern, error) {
	var nots []*pattern
	for _, text := range c.opts.ImplicitCheckNot {
		h := head{prefix: "IMPLICIT-CHECK", kind: kindNot, count: 1}
		p, err := c.parsePattern(h, loc{&source{commandLine, text}, 0}, text)
		if err != nil {
			return nil, err
		}
		nots = append(nots, p)
	}
	return nots, nil
}
