package filecheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A pattern is what a directive looks for: a fixed text, or an expression put together when it is matched, because it
// may contain values of variables.
type pattern struct {
	head
	at         loc
	fixed      string // if not empty, there is no expression
	pieces     []piece
	groups     int // parentheses opened so far
	textDefs   []textDef
	numberDefs []numberDef
	compiled   matcher // of expressions without variables
}

// A piece is a part of an expression: text, or the value of one of the others.
type piece struct {
	ere    string
	text   string        // the name of a string variable
	number *numericBlock // a numeric expression
	at     loc
}

type textDef struct {
	name  string
	group int
}

type numberDef struct {
	variable *numeric
	format   format
	group    int
}

// errNotFound is the error of a pattern that doesn't match. Any other error means that it couldn't be looked for.
var errNotFound = errors.New("not found")

// maxBackref is how many groups a pattern can refer back to.
const maxBackref = 20

func (p *pattern) usesVariables() bool {
	for _, piece := range p.pieces {
		if piece.ere == "" {
			return true
		}
	}
	return len(p.textDefs) > 0
}

func (p *pattern) add(ere string) { p.pieces = append(p.pieces, piece{ere: ere}) }

// parsePattern reads the text after a directive's colon.
func (c *checker) parsePattern(h head, at loc, text string) (*pattern, error) {
	p := &pattern{head: h, at: at}
	fullLine := c.opts.MatchFullLines && h.kind != kindNot
	keepBlanks := c.opts.MatchFullLines && c.opts.StrictWhitespace
	if !keepBlanks {
		text = strings.TrimRight(text, " \t")
	}
	switch {
	case h.kind == kindEmpty && text != "":
		return nil, errorAt(at, "found non-empty check string for empty check with prefix '%s:'", h.prefix)
	case h.kind == kindEmpty:
		return p, nil
	case text == "":
		return nil, errorAt(at, "found empty check string with prefix '%s:'", h.prefix)
	case h.literal, !fullLine && !strings.Contains(text, "{{") && !strings.Contains(text, "[["):
		p.fixed = text
		return p, nil
	}
	before, after := "", ""
	if fullLine {
		before, after = "^", "$"
		if !c.opts.StrictWhitespace {
			before, after = "^ *", " *$"
		}
	}
	p.add(before)
	for text != "" {
		n, err := c.parsePiece(p, at, text)
		if err != nil {
			return nil, err
		}
		at, text = at.plus(n), text[n:]
	}
	p.add(after)
	p.pieces = mergeText(p.pieces)
	if len(p.pieces) > 1 || p.pieces[0].ere == "" {
		return p, nil
	}
	var err error
	if p.compiled, err = compile(p.pieces[0].ere, c.opts.IgnoreCase); err != nil {
		return nil, errorAt(p.at, "invalid regex: %v", err)
	}
	return p, nil
}

// mergeText joins neighbouring pieces of plain expression text.
func mergeText(pieces []piece) []piece {
	var merged []piece
	for _, next := range pieces {
		n := len(merged)
		isText := next.text == "" && next.number == nil
		switch {
		case isText && next.ere == "":
		case isText && n > 0 && merged[n-1].ere != "":
			merged[n-1].ere += next.ere
		default:
			merged = append(merged, next)
		}
	}
	return merged
}

// parsePiece adds the first part of text to the pattern and says how long it is.
func (c *checker) parsePiece(p *pattern, at loc, text string) (int, error) {
	switch {
	case strings.HasPrefix(text, "{{"):
		body, _, ok := strings.Cut(text[2:], "}}")
		if !ok {
			return 0, errorAt(at, "found start of regex string with no end '}}'")
		}
		// With an alternative somewhere, parentheses keep abc{{x|z}}def from becoming abcx|zdef.
		grouped := strings.Contains(text, "|")
		if grouped {
			p.groups++
			p.add("(")
		}
		if err := p.addRegex(body, at.plus(2)); err != nil {
			return 0, err
		}
		if grouped {
			p.add(")")
		}
		return len(body) + 4, nil
	case strings.HasPrefix(text, "[[") && !strings.HasPrefix(text, "[[["):
		end, err := blockEnd(text[2:], at.plus(2))
		if err != nil {
			return 0, err
		}
		body := text[2 : 2+end]
		if number, ok := strings.CutPrefix(body, "#"); ok {
			err = c.addNumber(p, number, at.plus(3), false)
		} else {
			err = c.addText(p, body, at.plus(2))
		}
		return end + 4, err
	}
	n := len(text)
	for _, open := range []string{"{{", "[["} {
		if i := strings.Index(text[1:], open); i >= 0 {
			n = min(n, i+1)
		}
	}
	p.add(quoteERE(text[:n]))
	return n, nil
}

// blockEnd finds the ]] that closes a block, past the brackets of the expression in it.
func blockEnd(text string, at loc) (int, error) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth == 0 && strings.HasPrefix(text[i:], "]]") {
				return i, nil
			}
			if depth--; depth < 0 {
				return 0, errorAt(at.plus(i), `missing closing "]" for regex variable`)
			}
		}
	}
	return 0, errorAt(at.plus(-2), "invalid substitution block, no ]] found")
}

// addRegex adds an expression that must be complete by itself.
func (p *pattern) addRegex(ere string, at loc) error {
	_, parsed, err := parseERE(ere)
	if err != nil {
		return errorAt(at, "invalid regex: %v", err)
	}
	p.groups += parsed.groups
	p.add(ere)
	return nil
}

// addText adds a block of the form [[NAME:regex]], [[NAME]] or [[@LINE+n]].
func (c *checker) addText(p *pattern, body string, at loc) error {
	beforeColon, _, defines := strings.Cut(body, ":")
	if i := strings.IndexAny(beforeColon, " \t"); i >= 0 {
		return errorAt(at.plus(i), "unexpected whitespace")
	}
	name, rest, err := cutName(body)
	switch {
	case err != nil:
		return errorAt(at, "%v", err)
	case defines:
		regex, ok := strings.CutPrefix(rest, ":")
		if !ok || name[0] == '@' {
			return errorAt(at, "invalid name in string variable definition")
		}
		return c.defineInPattern(p, name, regex, at)
	case name[0] == '@':
		return c.addNumber(p, body, at, true)
	case rest != "":
		return errorAt(at, "invalid name in string variable use")
	}
	for _, def := range slices.Backward(p.textDefs) {
		if def.name == name {
			if def.group > maxBackref {
				return errorAt(at, "can't back-reference more than %d variables", maxBackref)
			}
			p.add(fmt.Sprintf(`\g{%d}`, def.group))
			return nil
		}
	}
	p.pieces = append(p.pieces, piece{text: name, at: at})
	return nil
}

func (c *checker) defineInPattern(p *pattern, name, regex string, at loc) error {
	if c.vars.number[name] != nil {
		return errorAt(at, "numeric variable with name '%s' already exists", name)
	}
	p.groups++
	p.textDefs = append(p.textDefs, textDef{name, p.groups})
	c.vars.textDefined[name] = true
	p.add("(")
	if regex != "" {
		if err := p.addRegex(regex, at.plus(len(name)+1)); err != nil {
			return err
		}
	}
	p.add(")")
	return nil
}

// addNumber adds a numeric block.
func (c *checker) addNumber(p *pattern, body string, at loc, legacy bool) error {
	line, _ := p.at.position()
	if p.at.src.name == commandLine {
		line = 0
	}
	block, err := c.parseNumericBlock(body, at, line, legacy)
	if err != nil {
		return err
	}
	if block.defines != nil {
		p.groups++
		p.numberDefs = append(p.numberDefs, numberDef{block.defines, block.format, p.groups})
		c.vars.number[block.defines.name] = block.defines
		p.add("(")
	}
	if block.expr != nil {
		p.pieces = append(p.pieces, piece{number: block, at: at})
	} else if err := p.addRegex(block.format.wildcard(), at); err != nil {
		return err
	}
	if block.defines != nil {
		p.add(")")
	}
	return nil
}
