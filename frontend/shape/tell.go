package shape

import (
	"fmt"
	"strings"
)

// Sprintf is fmt.Sprintf for messages about sizes. An Int is told as its number and what was written for it,
// "3072 (4*C)", or "768 (C = 768)" where that is a name; a Type and a []Int are told as they are written. The names
// whose values the message has not told by then follow at its end: "; C = 768, H = 12".
func Sprintf(format string, args ...any) string {
	var t teller
	told := make([]any, len(args))
	for i, a := range args {
		told[i] = t.tell(a)
	}
	return fmt.Sprintf(format, told...) + t.rest()
}

// Count is a size with what it counts, told as "768 channels (C = 768)".
type Count struct {
	Of   Int
	Noun string
}

// teller collects the names that a message mentions and those whose values it tells.
type teller struct {
	names []power
	told  map[string]bool
}

func (t *teller) tell(arg any) any {
	switch a := arg.(type) {
	case Int:
		return t.int(a, "")
	case Count:
		return t.int(a.Of, " "+a.Noun)
	case []Int:
		t.mention(a)
		return DimsString(a)
	case Type:
		t.mentionType(a)
		return a.String()
	}
	return arg
}

func (t *teller) int(a Int, noun string) string {
	switch {
	case a.expr.isName():
		if t.told == nil {
			t.told = map[string]bool{}
		}
		t.told[a.String()] = true
		return fmt.Sprintf("%d%s (%s = %d)", a.N, noun, a, a.N)
	case len(a.expr.names()) == 0:
		return fmt.Sprint(a.N) + noun
	}
	t.mention([]Int{a})
	return fmt.Sprintf("%d%s (%s)", a.N, noun, a)
}

func (t *teller) mention(dims []Int) {
	for _, d := range dims {
		t.names = append(t.names, d.expr.names()...)
	}
}

func (t *teller) mentionType(a Type) {
	t.mention(a.Dims)
	for _, e := range a.Elems {
		t.mentionType(e)
	}
}

// rest tells the values of the names that were mentioned and not told.
func (t *teller) rest() string {
	var parts []string
	seen := map[string]bool{}
	for _, n := range t.names {
		if !t.told[n.name] && !seen[n.name] {
			seen[n.name] = true
			parts = append(parts, fmt.Sprintf("%s = %d", n.name, n.value))
		}
	}
	if parts == nil {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}
