package ir

import (
	"slices"
	"strconv"
)

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

// fileLocs is the places in one file: by line, in pages of 64 lines, then by column. Places are mostly asked for in
// ascending order, so that what is looked at was looked at a moment ago.
type fileLocs struct {
	file  string
	pages map[int]*locPage
	last  *locPage
}

type locPage struct {
	number int
	lines  [64][]*Location // ascending columns
}

// FileLoc is a place in a file, line and column from 1.
func (c *Context) FileLoc(file string, line, col int) *Location {
	f := c.file
	if f == nil || f.file != file {
		if f = c.locs[file]; f == nil {
			f = &fileLocs{file: file, pages: map[int]*locPage{}}
			c.locs[file] = f
		}
		c.file = f
	}
	return f.loc(line, col)
}

func (f *fileLocs) loc(line, col int) *Location {
	p := f.last
	if p == nil || p.number != line>>6 {
		if p = f.pages[line>>6]; p == nil {
			p = &locPage{number: line >> 6}
			f.pages[line>>6] = p
		}
		f.last = p
	}
	places := &p.lines[line&63]
	i, found := slices.BinarySearchFunc(*places, col, func(l *Location, col int) int { return l.Col - col })
	if !found {
		*places = slices.Insert(*places, i, &Location{Kind: LocFile, File: f.file, Line: line, Col: col})
	}
	return (*places)[i]
}
