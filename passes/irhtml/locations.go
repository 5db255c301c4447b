package irhtml

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/ir"
)

// locations numbers locations and the places in files that they name, in the order in which they are met. Number 0 is
// no location.
type locations struct {
	list   []location
	known  map[*ir.Location]int
	files  []string
	places [][3]int // file, line, column
	ids    map[[3]int]int
}

// location is what the page knows of a location.
type location struct {
	Text   string `json:"t"`
	Places []int  `json:"p"`           // where it is: several for operations that became one
	Via    []int  `json:"v,omitempty"` // the calls that brought it where it is
}

func newLocations() *locations {
	return &locations{list: []location{{Text: "unknown", Places: []int{}}}, known: map[*ir.Location]int{}, ids: map[[3]int]int{}}
}

func (ls *locations) index(l *ir.Location) int {
	if l == nil || l.Kind == ir.LocUnknown {
		return 0
	}
	i, ok := ls.known[l]
	if !ok {
		places, via := ls.split(l)
		i = len(ls.list)
		ls.known[l] = i
		ls.list = append(ls.list, location{describe(l), places, via})
	}
	return i
}

// split lists the places that a location is, and those of calls that it came through.
func (ls *locations) split(l *ir.Location) (places, via []int) {
	places = []int{}
	switch l.Kind {
	case ir.LocFile:
		places = append(places, ls.place(l))
	case ir.LocName, ir.LocFused:
		for _, c := range l.Children {
			p, v := ls.split(c)
			places, via = union(places, p), union(via, v)
		}
	case ir.LocCallSite:
		places, via = ls.split(l.Children[0])
		p, v := ls.split(l.Children[1])
		via = union(via, union(p, v))
	}
	return places, via
}

func union(a, b []int) []int {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

func (ls *locations) place(l *ir.Location) int {
	file := slices.Index(ls.files, l.File)
	if file < 0 {
		file = len(ls.files)
		ls.files = append(ls.files, l.File)
	}
	p := [3]int{file, l.Line, l.Col}
	i, ok := ls.ids[p]
	if !ok {
		i = len(ls.places)
		ls.ids[p] = i
		ls.places = append(ls.places, p)
	}
	return i
}

// describe writes a location for a person.
func describe(l *ir.Location) string {
	switch l.Kind {
	case ir.LocFile:
		return fmt.Sprintf("%s:%d:%d", l.File, l.Line, l.Col)
	case ir.LocName:
		if len(l.Children) > 0 {
			return fmt.Sprintf("%q at %s", l.File, describe(l.Children[0]))
		}
		return fmt.Sprintf("%q", l.File)
	case ir.LocCallSite:
		return describe(l.Children[0]) + ", called at " + describe(l.Children[1])
	case ir.LocFused:
		var parts []string
		for _, c := range l.Children {
			parts = append(parts, describe(c))
		}
		return "[" + strings.Join(parts, "] and [") + "]"
	}
	return "unknown"
}

// names reports whether a location is in the file.
func (ls *locations) names(file string) bool { return slices.Contains(ls.files, file) }
