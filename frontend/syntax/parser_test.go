package syntax

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func body(stmt string) string { return "model m() {\n  fn f() -> f32 {\n    " + stmt + "\n  }\n}\n" }

// firstExpr is the value that the function of body(stmt) returns.
func firstExpr(t *testing.T, src string) Expr {
	f := parseClean(t, src).Items[0].(*Model).Members[0].(*Func)
	return f.Body.Stmts[len(f.Body.Stmts)-1].(*Return).Value
}

func TestPrecedence(t *testing.T) {
	for src, want := range map[string]string{
		"a + b * c":           "(a+(b*c))",
		"a - b - c":           "((a-b)-c)",
		"-a * !b":             "((-a)*(!b))",
		"a < b && c || d":     "(((a<b)&&c)||d)",
		"-x[0](1).y":          "", // a call of an index is no expression
		"a * (b + c)":         "(a*((b+c)))",
		"a % b / c":           "((a%b)/c)",
		"a == b + 1":          "(a==(b+1))",
		"f(a, n: b)[0:c].d":   "f(a,b)[0:c].d",
		"1_000 + 2.5e-3 - 3.": "", // a point stands between digits
	} {
		file, diags := Parse("t.blu", body("return "+src))
		if want == "" {
			require.Error(t, diags.Err(), src)
			continue
		}
		require.NoError(t, diags.Err(), src)
		got := show(file.Items[0].(*Model).Members[0].(*Func).Body.Stmts[0].(*Return).Value)
		require.Equal(t, want, got)
	}
}

// show writes an expression with all its parentheses.
func show(e Expr) string {
	switch e := e.(type) {
	case *Name:
		return e.Name
	case *Number:
		return e.Text
	case *Paren:
		return "(" + show(e.X) + ")"
	case *Unary:
		return "(" + e.Op + show(e.X) + ")"
	case *Binary:
		return "(" + show(e.X) + e.Op + show(e.Y) + ")"
	case *Select:
		return show(e.X) + "." + e.Name.Name
	case *Index:
		return show(e.X) + "[" + show(e.Indices[0].Low) + ":" + show(e.Indices[0].High) + "]"
	case *Call:
		parts := make([]string, len(e.Args))
		for i, a := range e.Args {
			parts[i] = show(a.Value)
		}
		return show(e.Fun) + "(" + strings.Join(parts, ",") + ")"
	}
	return "?"
}

func TestPositionsCountCharacters(t *testing.T) {
	src := body("let ñ = 1\n    return größe + \"é\" + x")
	e := firstExpr(t, src).(*Binary)
	require.Equal(t, 4, e.Y.Pos().Start.Line)
	require.Equal(t, 26, e.Y.Pos().Start.Col)
	require.Equal(t, "x", src[e.Y.Pos().Start.Offset:e.Y.Pos().End.Offset])
	require.Equal(t, `größe + "é"`, src[e.X.Pos().Start.Offset:e.X.Pos().End.Offset])
}

func TestNumbers(t *testing.T) {
	n := firstExpr(t, body("return 1_000_000")).(*Number)
	require.False(t, n.Float)
	require.EqualValues(t, 1000000, n.Int)
	n = firstExpr(t, body("return 2e3")).(*Number)
	require.True(t, n.Float)
	require.InDelta(t, 2000, n.Value, 0)
}

// TestDeepAndLong: what nests or repeats too much is one clear error, at once.
func TestDeepAndLong(t *testing.T) {
	const n = 100000
	for name, test := range map[string]struct{ src, want string }{
		"parentheses": {body("return " + strings.Repeat("(", n)), "nested more than 200 levels deep"},
		"signs":       {body("return " + strings.Repeat("-", n) + "x"), "nested more than 200 levels deep"},
		"lists":       {body("return " + strings.Repeat("[", n)), "nested more than 200 levels deep"},
		"types":       {"fn f() -> " + strings.Repeat("(", n), "nested more than 200 levels deep"},
		"blocks":      {body(strings.Repeat("if a {\n", n)), "nested more than 200 levels deep"},
		"else if":     {body("if a { x = 1 }" + strings.Repeat(" else if a { x = 1 }", n)), "nested more than 200 levels deep"},
		"operators":   {body("return x" + strings.Repeat(" + x", n)), "more than 1000 operators in a row"},
		"members":     {body("return x" + strings.Repeat(".x", n)), "more than 1000 calls and indices in a row"},
		"indices":     {body("return x" + strings.Repeat("[0]", n)), "more than 1000 calls and indices in a row"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, diags := Parse("t.blu", test.src)
			require.Less(t, time.Since(start), 5*time.Second)
			require.NotEmpty(t, diags)
			require.Equal(t, test.want, diags[0].Message)
			require.Less(t, len(diags), 5)
		})
	}
}

// A file that is no text, or in another encoding, has one error for that.
func TestForeignFiles(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{"PK\x03\x04\x00\x00\x00 # @ @", "m.blu: error: not a text: byte 4 is zero"},
		{"model m {\n}\n\xff\n\xfe\n", "m.blu:3:1: error: the text is not valid UTF-8 here"},
	} {
		_, diags := Parse("m.blu", test.src)
		require.EqualError(t, diags.Err(), test.want)
		_, diags = Format("m.blu", test.src)
		require.EqualError(t, diags.Err(), test.want)
	}
}
