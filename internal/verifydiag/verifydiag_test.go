package verifydiag

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/ir/diag"
)

func at(line, col int) diag.Range {
	return diag.Range{File: "f", Start: diag.Pos{Line: line, Col: col}}
}

func TestVerify(t *testing.T) {
	one := func(l *diag.List) { l.Errorf(at(2, 5), "x is not known") }
	tests := []struct {
		name  string
		src   string
		build func(l *diag.List)
		opts  Options
		want  []string
	}{
		{"met below", "// expected-error@+1 {{not known}}\n    x", one, Options{}, nil},
		{"met on its line", "\n x // expected-error {{not known}}", one, Options{}, nil},
		{"met above", "\n x\n// expected-error@above {{not known}}", one, Options{}, nil},
		{"met at a line", "// expected-error@2 {{not known}}", one, Options{}, nil},
		{"met with a space before the place", "// expected-error @below {{not known}}", one, Options{}, nil},
		{"met with the column", "// expected-error@+1:5 {{not known}}", one, Options{}, nil},
		{"a later piece of a split file", "// expected-error@+1 {{p}}", func(l *diag.List) { l.Errorf(at(41, 1), "p") },
			Options{FirstLine: 40}, nil},
		{"two on one line", "// expected-error {{a}} expected-warning {{b}}",
			func(l *diag.List) { l.Errorf(at(1, 1), "a"); l.Warnf(at(1, 1), "b") }, Options{}, nil},
		{"notes count", "// expected-error {{a}}\n// expected-note {{why}}",
			func(l *diag.List) { l.Errorf(at(1, 1), "a").Note(at(2, 1), "why") }, Options{}, nil},
		{"no place", "// expected-error@unknown {{a}}", func(l *diag.List) { l.Errorf(diag.Range{File: "f"}, "a") }, Options{}, nil},
		{"wrong column", "// expected-error@+1:6 {{not known}}", one, Options{},
			[]string{"f:1:4: error: expected error was not produced: not known", "f:2:5: error: unexpected error: x is not known"}},
		{"part is not exact", "// expected-error@+1 {{not known}}", one, Options{Exact: true},
			[]string{"f:1:4: error: expected error was not produced: not known", "f:2:5: error: unexpected error: x is not known"}},
		{"exact", "// expected-error@+1 {{x is not known}}", one, Options{Exact: true}, nil},
		{"wrong severity", "// expected-warning@+1 {{not known}}", one, Options{},
			[]string{"f:1:4: error: expected warning was not produced: not known", "f:2:5: error: unexpected error: x is not known"}},
		{"a note nobody announced", "// expected-error {{a}}",
			func(l *diag.List) { l.Errorf(at(1, 1), "a").Note(at(2, 1), "why") }, Options{},
			[]string{"f:2:1: error: unexpected note: why"}},
		{"one directive is met once", "// expected-error {{a}}",
			func(l *diag.List) { l.Errorf(at(1, 1), "a"); l.Errorf(at(1, 2), "a") }, Options{},
			[]string{"f:1:2: error: unexpected error: a"}},
		{"outside a comment it is text", "expected-error {{a}}", func(*diag.List) {}, Options{}, nil},
		{"malformed", "// expected-eror {{a}}", func(*diag.List) {}, Options{},
			[]string{"f:1:4: error: malformed directive: expected expected-error|warning|remark|note[@PLACE[:COLUMN]] {{text}}"}},
		{"without text", "// expected-error@+1", func(*diag.List) {}, Options{},
			[]string{"f:1:4: error: malformed directive: expected expected-error|warning|remark|note[@PLACE[:COLUMN]] {{text}}"}},
		{"column zero", "// expected-error@+1:0 {{a}}", func(*diag.List) {}, Options{},
			[]string{"f:1:4: error: malformed directive: column 0 is out of range"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got diag.List
			test.build(&got)
			var differs []string
			for _, d := range Verify("f", []byte(test.src), got, test.opts) {
				differs = append(differs, d.String())
			}
			require.Equal(t, test.want, differs)
		})
	}
}
