package irhtml

import "strings"

// Lines longer than maxLine bytes are cut into rows of about maxRow: the head of a function can have hundreds of
// arguments.
const (
	maxLine = 300
	maxRow  = 110
)

// wrap cuts a line after commas. It prefers those between arguments to those in their types and attributes, which it
// uses only where a row would be longer than maxLine.
func wrap(line string) []string {
	if len(line) <= maxLine {
		return []string{line}
	}
	var rows []string
	start, depth := 0, 0
	for s := (scanner{text: line}); s.next(); {
		switch c := line[s.at]; {
		case c == '(' || c == '[' || c == '{' || c == '<':
			depth++
		case c == ')' || c == ']' || c == '}' || c == '>' && line[max(s.at-1, 0)] != '-':
			depth--
		case c == ',' && strings.HasPrefix(line[s.at:], ", "):
			if n := s.at - start; depth <= 1 && n >= maxRow || n >= maxLine {
				rows = append(rows, line[start:s.at+1])
				start = s.at + 2
			}
		}
	}
	return append(rows, line[start:])
}

// valuesIn counts the values that a row names.
func valuesIn(row string) (n int) {
	for s := (scanner{text: row}); s.next(); {
		if row[s.at] == '%' {
			n++
		}
	}
	return n
}

// scanner goes through the bytes of IR that are outside of strings.
type scanner struct {
	text string
	at   int // the current byte
	end  int // the one after it
}

func (s *scanner) next() bool {
	for s.end < len(s.text) {
		s.at = s.end
		s.end++
		if s.text[s.at] != '"' {
			return true
		}
		for s.end < len(s.text) && s.text[s.end] != '"' {
			if s.text[s.end] == '\\' {
				s.end++
			}
			s.end++
		}
		s.end++
	}
	return false
}
