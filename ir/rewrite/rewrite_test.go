package rewrite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/arith"
	"blutrain/dialects/builtin"
	"blutrain/dialects/fn"
	"blutrain/dialects/scf"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

func parse(t *testing.T, src string) (*ir.Context, *ir.Op) {
	t.Helper()
	c := ir.NewContext(builtin.Dialect, fn.Dialect, arith.Dialect, scf.Dialect)
	m, err := ir.Parse(c, "test.mlir", []byte("func.func @f(%x: i32, %y: i32, %c: i1) -> i32 {\n"+src+"\n}"))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, m))
	return c, m.Body().First()
}

// body is the operations of a function, one a line.
func body(f *ir.Op) []string {
	var lines []string
	for op := range f.Body().Ops() {
		lines = append(lines, op.String())
	}
	return lines
}

func TestGreedyFoldsAndCleansUp(t *testing.T) {
	c, f := parse(t, `
		%two = arith.constant {value = 2 : i32} : () -> i32
		%three = arith.constant {value = 3 : i32} : () -> i32
		%six = arith.muli %two, %three : (i32, i32) -> i32
		%zero = arith.subi %six, %six : (i32, i32) -> i32
		%unused = arith.addi %x, %y : (i32, i32) -> i32
		%a = arith.addi %zero, %x : (i32, i32) -> i32
		%b = arith.addi %six, %a : (i32, i32) -> i32
		func.return %b : (i32) -> ()`)
	changed, err := rewrite.Greedy(c, f, nil, rewrite.Options{})
	require.NoError(t, err)
	require.True(t, changed)
	require.NoError(t, ir.Verify(c, f))
	require.Equal(t, []string{
		"%0 = arith.constant {value = 6 : i32} : () -> i32",
		"%1 = arith.addi %arg0, %0 : (i32, i32) -> i32", // the constant went to the right
		"func.return %1 : (i32) -> ()",
	}, body(f))
	changed, err = rewrite.Greedy(c, f, nil, rewrite.Options{})
	require.NoError(t, err)
	require.False(t, changed, "nothing is left to do")
}

// x - y = 0 - (y - x): a rule that never ends.
var restless = rewrite.Pattern{Name: "restless", Op: arith.Subi, Run: func(r *rewrite.Rewriter, op *ir.Op) bool {
	b := arith.Builder{Builder: r.Builder}
	zero := arith.NewIndex(r.Builder, 0)
	r.Replace(op, b.Subi(b.IndexCast(zero, op.Result(0).Type()), b.Subi(op.Operand(1), op.Operand(0))))
	return true
}}

func TestGreedyNamesEndlessRules(t *testing.T) {
	c, f := parse(t, "%a = arith.subi %x, %y : (i32, i32) -> i32\nfunc.return %a : (i32) -> ()")
	_, err := rewrite.Greedy(c, f, []rewrite.Pattern{restless}, rewrite.Options{Limit: 50})
	require.ErrorContains(t, err, "rewriting did not end after 51 changes")
}

// select(c, x, x + 0) needs the fold of its operand first: users of what changed are looked at again.
func TestGreedyRevisitsUsers(t *testing.T) {
	c, f := parse(t, `
		%zero = arith.constant {value = 0 : i32} : () -> i32
		%a = arith.addi %x, %zero : (i32, i32) -> i32
		%s = arith.select %c, %x, %a : (i1, i32, i32) -> i32
		func.return %s : (i32) -> ()`)
	_, err := rewrite.Greedy(c, f, nil, rewrite.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"func.return %arg0 : (i32) -> ()"}, body(f))
}

func TestMergeEqual(t *testing.T) {
	c, f := parse(t, `
		%a = arith.addi %x, %y : (i32, i32) -> i32
		%b = arith.addi %y, %x : (i32, i32) -> i32
		%p = arith.subi %a, %b : (i32, i32) -> i32
		%q = arith.subi %b, %a : (i32, i32) -> i32
		%r = scf.if %c : (i1) -> i32 {
			%i = arith.addi %x, %y : (i32, i32) -> i32
			%j = arith.xori %i, %x : (i32, i32) -> i32
			scf.yield %j : (i32) -> ()
		} {
			%k = arith.xori %a, %x : (i32, i32) -> i32
			scf.yield %k : (i32) -> ()
		}
		%s = arith.minsi %p, %q : (i32, i32) -> i32
		%t = arith.minsi %s, %r : (i32, i32) -> i32
		func.return %t : (i32) -> ()`)
	require.Equal(t, 3, rewrite.MergeEqual(f, nil))
	require.NoError(t, ir.Verify(c, f))
	require.Equal(t, []string{
		"%0 = arith.addi %arg0, %arg1 : (i32, i32) -> i32",
		"%1 = arith.subi %0, %0 : (i32, i32) -> i32",
		// What one branch computes is not there in the other.
		"%2 = scf.if %arg2 : (i1) -> i32 {\n  %5 = arith.xori %0, %arg0 : (i32, i32) -> i32\n  scf.yield %5 : (i32) -> ()\n} {\n  %5 = arith.xori %0, %arg0 : (i32, i32) -> i32\n  scf.yield %5 : (i32) -> ()\n}",
		"%3 = arith.minsi %1, %1 : (i32, i32) -> i32",
		"%4 = arith.minsi %3, %2 : (i32, i32) -> i32",
		"func.return %4 : (i32) -> ()",
	}, body(f))
}

func TestEraseDead(t *testing.T) {
	c, f := parse(t, `
		%a = arith.addi %x, %y : (i32, i32) -> i32
		%b = arith.addi %a, %a : (i32, i32) -> i32
		%r = scf.if %c : (i1) -> i32 {
			%d = arith.addi %b, %y : (i32, i32) -> i32
			scf.yield %x : (i32) -> ()
		} {
			scf.yield %x : (i32) -> ()
		}
		func.return %r : (i32) -> ()`)
	require.Equal(t, 3, rewrite.EraseDead(f))
	require.NoError(t, ir.Verify(c, f))
	require.Len(t, body(f), 2)
}
