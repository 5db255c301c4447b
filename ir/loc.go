package ir

import "strconv"

// LocKind says what a Location holds.
type LocKind uint8

const (
	LocUnknown  LocKind = iota
	LocFile             // a place in a source file
	LocName             // a name, with an optional child
	LocCallSite         // callee at caller: what inlining leaves
	LocFused            // several places that became one operation
)

// unknownLoc is every context's unknown location.
var unknownLoc = &Location{}

// Location says where an operation came from. Locations are interned in a Context.
type Location struct {
	Kind      LocKind
	File      string // LocFile; for LocName the name
	Line, Col int    // from 1; 0 is unknown
	Children  []*Location
}

func (l *Location) String() string { return string(l.appendTo(nil)) }

// Source is the innermost place in a file the location tells of: the callee of a call site, the first of a fusion.
func (l *Location) Source() *Location {
	if l == nil || l.Kind == LocFile {
		return l
	}
	for _, c := range l.Children {
		if s := c.Source(); s != nil {
			return s
		}
	}
	return nil
}

// appendTo writes what stands between the parentheses of loc(...).
func (l *Location) appendTo(b []byte) []byte {
	switch l.Kind {
	case LocFile:
		b = appendQuoted(b, l.File)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(l.Line), 10)
		b = append(b, ':')
		return strconv.AppendInt(b, int64(l.Col), 10)
	case LocName:
		b = appendQuoted(b, l.File)
		if len(l.Children) > 0 {
			b = append(b, '(')
			b = l.Children[0].appendTo(b)
			b = append(b, ')')
		}
		return b
	case LocCallSite:
		b = append(b, "callsite("...)
		b = l.Children[0].appendTo(b)
		b = append(b, " at "...)
		b = l.Children[1].appendTo(b)
		return append(b, ')')
	case LocFused:
		b = append(b, "fused["...)
		for i, c := range l.Children {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = c.appendTo(b)
		}
		return append(b, ']')
	}
	return append(b, "unknown"...)
}
