package diag

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func at(file string, line, col int) Range {
	return Range{File: file, Start: Pos{Line: line, Col: col}, End: Pos{Line: line, Col: col + 1}}
}

func TestRender(t *testing.T) {
	long := strings.Repeat("a", 500) + "X" + strings.Repeat("b", 500)
	tests := []struct {
		name   string
		source string
		build  func(l *List)
		want   string
	}{
		{"caret and note", "one\n  two three\n", func(l *List) {
			l.Errorf(at("f.blu", 2, 7), "bad %s", "three").Note(at("f.blu", 1, 1), "see here")
		}, "f.blu:2:7: error: bad three\n    2 |   two three\n      |       ^\nf.blu:1:1: note: see here\n    1 | one\n      | ^\n"},
		{"tabs line up at any width", "\tx\ty\n", func(l *List) { l.Errorf(at("f.blu", 1, 4), "y") },
			"f.blu:1:4: error: y\n    1 | \tx\ty\n      | \t \t^\n"},
		{"columns are characters, not bytes", "αβγ = 1\n", func(l *List) { l.Warnf(at("f.blu", 1, 5), "eq") },
			"f.blu:1:5: warning: eq\n    1 | αβγ = 1\n      |     ^\n"},
		{"past the end of the line", "ab\r\ncd", func(l *List) { l.Errorf(at("f.blu", 1, 3), "end") },
			"f.blu:1:3: error: end\n    1 | ab\n      |   ^\n"},
		{"last line without a newline", "ab\ncd", func(l *List) { l.Errorf(at("f.blu", 2, 3), "end") },
			"f.blu:2:3: error: end\n    2 | cd\n      |   ^\n"},
		{"a line that is not there", "ab", func(l *List) { l.Errorf(at("f.blu", 9, 1), "gone") }, "f.blu:9:1: error: gone\n"},
		{"an unknown file", "ab", func(l *List) { l.Errorf(at("g.blu", 1, 1), "other") }, "g.blu:1:1: error: other\n"},
		{"no place", "ab", func(l *List) { l.Errorf(Range{File: "f.blu"}, "whole") }, "f.blu: error: whole\n"},
		{"no file", "ab", func(l *List) { l.Remarkf(Range{}, "flag") }, "remark: flag\n"},
		{"control characters cannot drive the terminal", "a\x1b[31mb", func(l *List) { l.Errorf(at("f.blu", 1, 1), "esc") },
			"f.blu:1:1: error: esc\n    1 | a\uFFFD[31mb\n      | ^\n"},
		{"a very long line is cut around the caret", long, func(l *List) { l.Errorf(at("f.blu", 1, 501), "here") },
			"f.blu:1:501: error: here\n    1 | " + long[420:580] + "\n      | " + strings.Repeat(" ", 80) + "^\n"},
		{"a message cannot drive the terminal, or fill it", "x", func(l *List) {
			l.Errorf(at("f.blu", 1, 1), "string \x1b[31m%s", strings.Repeat("é", 3000))
		}, "f.blu:1:1: error: string \uFFFD[31m" + strings.Repeat("é", 2000-12) + "...\n    1 | x\n      | ^\n"},
		{"of very many the first are shown", "x", func(l *List) {
			for range 1003 {
				l.Errorf(at("g.blu", 1, 1), "e")
			}
		}, strings.Repeat("g.blu:1:1: error: e\n", 1000) + "3 more are not shown\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var l List
			test.build(&l)
			var b strings.Builder
			require.NoError(t, Render(&b, l, Sources{"f.blu": []byte(test.source)}))
			require.Equal(t, test.want, b.String())
		})
	}
}

func TestSortIsSourceOrderWithoutRepetitions(t *testing.T) {
	var l List
	l.Warnf(at("a", 2, 1), "w")
	l.Errorf(at("b", 1, 1), "other file")
	l.Errorf(at("a", 2, 1), "e")
	l.Errorf(at("a", 1, 9), "late column")
	l.Errorf(at("a", 1, 2), "early column")
	l.Errorf(at("a", 1, 2), "early column")
	l.Sort()
	var got []string
	for _, d := range l {
		got = append(got, d.String())
	}
	require.Equal(t, []string{
		"a:1:2: error: early column", "a:1:9: error: late column", "a:2:1: error: e", "a:2:1: warning: w",
		"b:1:1: error: other file",
	}, got)
}

func TestErr(t *testing.T) {
	var l List
	l.Warnf(at("a", 1, 1), "only a warning")
	require.False(t, l.HasErrors())
	require.NoError(t, l.Err())
	l.Errorf(at("a", 2, 1), "broken").Note(at("a", 3, 1), "because")
	require.True(t, l.HasErrors())
	require.EqualError(t, l.Err(), "a:1:1: warning: only a warning\na:2:1: error: broken\na:3:1: note: because")
}

func FuzzRender(f *testing.F) {
	f.Add("a\tb\n", 1, 3)
	f.Add("\xff\xfe", 1, 1)
	f.Fuzz(func(t *testing.T, src string, line, col int) {
		var l List
		l.Errorf(at("f", line, col), "m")
		require.NoError(t, Render(&strings.Builder{}, l, Sources{"f": []byte(src)}))
	})
}

// Of remarks that say the same there is one, which names all places; errors and warnings stay.
func TestMerged(t *testing.T) {
	var l List
	l.Remarkf(at("a.blu", 1, 2), "slow")
	l.Warnf(at("a.blu", 1, 2), "odd")
	l.Remarkf(at("a.blu", 3, 2), "slow")
	l.Warnf(at("a.blu", 2, 2), "odd")
	l.Remarkf(at("a.blu", 3, 2), "other")
	l.Remarkf(at("a.blu", 1, 2), "slow")
	l.Remarkf(at("a.blu", 3, 2), "slow")
	l.Remarkf(at("b.blu", 3, 2), "slow")
	var got []string
	for _, d := range l.Merged() {
		got = append(got, d.String())
	}
	require.Equal(t, []string{
		"a.blu:1:2: remark: slow; likewise at 3:2, b.blu:3:2",
		"a.blu:1:2: warning: odd",
		"a.blu:2:2: warning: odd",
		"a.blu:3:2: remark: other",
	}, got)
	require.Equal(t, "slow", l[0].Message)
}
