package passes

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

func parse(t *testing.T, src string) (*ir.Context, *ir.Op) {
	t.Helper()
	c := dialects.NewContext()
	m, err := ir.Parse(c, "test.mlir", []byte(src))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, m))
	return c, m
}

func run(t *testing.T, src, pipeline string) string {
	t.Helper()
	c, m := parse(t, src)
	pl, err := ParsePipeline(Table, pipeline)
	require.NoError(t, err)
	require.NoError(t, (&Config{}).Run(c, m, pl))
	return string(ir.Print(m, ir.PrintOptions{}))
}

type testOptions struct {
	Mode   string  `help:"how" enum:"none,auto"`
	MaxOps int     `help:"how many"`
	Ratio  float64 `help:"how much"`
	Deep   bool    `help:"whether"`
}

// testTable is the passes and some that misbehave.
func testTable() []Pass {
	return append(Table[:len(Table):len(Table)],
		Pass{Name: "options", Summary: "prints its options", Options: testOptions{Mode: "auto", MaxOps: 3}, Run: With(func(s *State, op *ir.Op, o testOptions) error {
			op.SetAttr("test.options", s.Ctx.String(fmt.Sprintf("%+v", o)))
			return nil
		})},
		Pass{Name: "panic", Summary: "crashes", Run: Plain(func(s *State, op *ir.Op) error {
			s.Visit(op.Body().First())
			panic("out of luck")
		})},
		Pass{Name: "break", Summary: "leaves invalid IR", Run: Plain(func(s *State, op *ir.Op) error {
			op.Body().First().SetAttr("nonsense", s.Ctx.Unit())
			return nil
		})},
		Pass{Name: "refuse", Summary: "finds a fault in the program", Run: Plain(func(s *State, op *ir.Op) error {
			return op.Body().First().Errorf("not this function")
		})},
	)
}

func TestTable(t *testing.T) {
	require.NoError(t, Check(testTable()))
	nothing := Plain(func(*State, *ir.Op) error { return nil })
	for want, table := range map[string][]Pass{
		"two passes are called a":                  {{Name: "a", Summary: "s", Run: nothing}, {Name: "a", Summary: "s", Run: nothing}},
		"has no name, summary or function":         {{Name: "a", Run: nothing}},
		`pass a comes after "b", which is no pass`: {{Name: "a", Summary: "s", Run: nothing, After: []After{{"b", "r"}}}},
		"must run before itself": {{Name: "a", Summary: "s", Run: nothing, After: []After{{"b", "r"}}},
			{Name: "b", Summary: "s", Run: nothing, After: []After{{"a", "r"}}}},
		"option x is not exported or has no help": {{Name: "a", Summary: "s", Run: nothing, Options: struct{ X int }{}}},
		"which can't be read from text": {{Name: "a", Summary: "s", Run: nothing, Options: struct {
			X []int `help:"h"`
		}{}}},
	} {
		require.ErrorContains(t, Check(table), want)
	}
}

func TestParsePipeline(t *testing.T) {
	table := testTable()
	for _, text := range []string{
		"builtin.module()", "builtin.module(cse)", "builtin.module(inline,func.func(canonicalize,cse),dce)",
		"builtin.module(options{mode=none max-ops=7 deep=true},builtin.module(func.func(cse)))",
	} {
		pl, err := ParsePipeline(table, text)
		require.NoError(t, err)
		require.Equal(t, text, pl.String())
	}
	pl, err := ParsePipeline(table, " builtin.module( options{ deep  mode=auto } , cse ) ")
	require.NoError(t, err)
	require.Equal(t, "builtin.module(options{deep=true},cse)", pl.String())
	for text, want := range map[string]string{
		"cse":                                    "column 4: expected an operation and passes for it, as in builtin.module(canonicalize,cse)",
		"builtin.module(cse":                     "column 19: expected ',' or ')'",
		"builtin.module(cse,)":                   "column 20: expected a pass",
		"builtin.module(cse))":                   "column 20: expected the end",
		"builtin.module(dce,csf)":                "column 20: no pass csf; did you mean cse?",
		"builtin.module(cse{x=1})":               "column 20: cse has no options",
		"builtin.module(options{mod=1})":         "column 24: options: no option mod; did you mean mode?; there are mode, max-ops, ratio, deep",
		"builtin.module(options{mode=some})":     `column 24: options: option mode is none, auto, not "some"`,
		"builtin.module(options{max-ops=x})":     `column 24: options: option max-ops: expected an integer, not "x"`,
		"builtin.module(options{ratio=x})":       `column 24: options: option ratio: expected a number, not "x"`,
		"builtin.module(options{deep=x})":        `column 24: options: option deep: expected true or false, not "x"`,
		"builtin.module(options{max-ops})":       "column 24: options: option max-ops needs a value: max-ops=...",
		"builtin.module(options{mode=auto":       "column 29: expected '}'",
		"builtin.module(cse,canonicalize)":       "canonicalize must run before cse: equal operations look equal only in canonical form",
		strings.Repeat("builtin.module(", 100):   "nested deeper than 32 levels",
		"builtin.module(func.func(cse),inline2)": "no pass inline2; did you mean inline?",
	} {
		_, err := ParsePipeline(table, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestOptions(t *testing.T) {
	c, m := parse(t, "func.func @f() {\n  func.return\n}")
	pl, err := ParsePipeline(testTable(), "builtin.module(options{max-ops=9 ratio=0.5})")
	require.NoError(t, err)
	require.NoError(t, (&Config{}).Run(c, m, pl))
	require.Equal(t, "{Mode:auto MaxOps:9 Ratio:0.5 Deep:false}", m.Attrs().Str("test.options"))
	require.Equal(t, []string{"mode=auto  how (none, auto)", "max-ops=3  how many", "ratio=0  how much", "deep=false  whether"}, Find(testTable(), "options").Help())
}

const source = `func.func @f(%x: i32) -> i32 {
  %a = arith.addi %x, %x : (i32, i32) -> i32
  %b = arith.addi %x, %x : (i32, i32) -> i32
  %c = arith.muli %a, %b : (i32, i32) -> i32
  func.return %c : (i32) -> ()
}
`

func TestCanonicalizeCSE(t *testing.T) {
	require.Equal(t, `builtin.module {
  func.func @f(%arg0: i32) -> i32 {
    %0 = arith.addi %arg0, %arg0 : (i32, i32) -> i32
    %1 = arith.muli %0, %0 : (i32, i32) -> i32
    func.return %1 : (i32) -> ()
  }
}
`, run(t, source, "builtin.module(canonicalize,func.func(cse))"))
}

func TestDCE(t *testing.T) {
	require.Equal(t, "builtin.module {\n  func.func private @used() {\n    func.return\n  }\n  func.func @f() {\n    func.call {callee = @used} : () -> ()\n    func.return\n  }\n}\n",
		strings.Replace(run(t, `
func.func private @used() {
  func.return
}
func.func private @recursive() {
  func.call {callee = @recursive}
  func.return
}
func.func private @unused() {
  func.call {callee = @only_by_unused}
  func.return
}
func.func private @only_by_unused() {
  func.return
}
func.func @f() {
  %dead = arith.constant {value = 1 : i32} : () -> i32
  func.call {callee = @used}
  func.return
}`, "builtin.module(dce)"), "{callee = @used}\n", "{callee = @used} : () -> ()\n", 1))
}

func TestInline(t *testing.T) {
	c, m := parse(t, `
func.func @main(%x: i32) -> i32 {
  %y = func.call %x {callee = @mid} : (i32) -> i32 loc("m.blu":3:1)
  %z = func.call %y {callee = @mid} : (i32) -> i32 loc("m.blu":4:1)
  func.return %z : (i32) -> ()
}
func.func private @mid(%x: i32) -> i32 {
  %y = func.call %x {callee = @leaf} : (i32) -> i32 loc("m.blu":2:1)
  func.return %y : (i32) -> ()
}
func.func private @leaf(%x: i32) -> i32 {
  %y = arith.addi %x, %x : (i32, i32) -> i32 loc("m.blu":1:1)
  func.return %y : (i32) -> ()
}
func.func private @same(%x: i32) -> i32 {
  func.return %x : (i32) -> ()
}
func.func @main2(%x: i32) -> i32 {
  %z = func.call %x {callee = @same} : (i32) -> i32
  func.return %z : (i32) -> ()
}`)
	pl, err := NewPipeline(Table, "inline")
	require.NoError(t, err)
	require.NoError(t, (&Config{}).Run(c, m, pl))
	require.Equal(t, `builtin.module {
  func.func @main(%arg0: i32) -> i32 {
    %0 = arith.addi %arg0, %arg0 : (i32, i32) -> i32
    %1 = arith.addi %0, %0 : (i32, i32) -> i32
    func.return %1 : (i32) -> ()
  }
  func.func @main2(%arg0: i32) -> i32 {
    func.return %arg0 : (i32) -> ()
  }
}
`, string(ir.Print(m, ir.PrintOptions{})))
	require.Equal(t, `callsite(callsite("m.blu":1:1 at "m.blu":2:1) at "m.blu":4:1)`, m.Body().First().Body().First().Next().Loc().String())
}

func TestInlineRefusesRecursion(t *testing.T) {
	c, m := parse(t, `
func.func @main() {
  func.call {callee = @a}
  func.return
}
func.func private @a() {
  func.call {callee = @b}
  func.return
}
func.func private @b() {
  func.call {callee = @a}
  func.return
}`)
	pl, err := NewPipeline(Table, "inline")
	require.NoError(t, err)
	err = (&Config{}).Run(c, m, pl)
	require.EqualError(t, err, "test.mlir:11:3: error: function @a calls itself by way of @b: it can't be inlined")
}

// A crash names pass and operation, and its reproducer crashes alike.
func TestCrash(t *testing.T) {
	c, m := parse(t, source)
	pl, err := ParsePipeline(testTable(), "builtin.module(cse,func.func(dce,panic))")
	require.NoError(t, err)
	err = (&Config{}).Run(c, m, pl)
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, "panic", f.Pass)
	require.EqualError(t, err, "test.mlir:2:8: error: pass panic crashed at %0 = arith.addi %arg0, %arg0 : (i32, i32) -> i32: out of luck")
	require.Contains(t, f.Stack, "passes_test.go")

	text, ok := Replay(f.Reproducer)
	require.True(t, ok)
	require.Equal(t, "builtin.module(func.func(panic))", text)
	c2, m2 := parse(t, string(f.Reproducer))
	require.Contains(t, string(ir.Print(m2, ir.PrintOptions{})), "arith.muli %0, %0", "the module before the pass, after cse")
	pl, err = ParsePipeline(testTable(), text)
	require.NoError(t, err)
	again := (&Config{}).Run(c2, m2, pl)
	require.EqualError(t, again, f.Error())
}

func TestInvalidIR(t *testing.T) {
	c, m := parse(t, source)
	pl, err := NewPipeline(testTable(), "break")
	require.NoError(t, err)
	err = (&Config{}).Run(c, m, pl)
	require.EqualError(t, err, "test.mlir:1:1: error: pass break left invalid IR: func.func: unknown attribute nonsense")
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.NotContains(t, string(f.Reproducer), "nonsense")
	require.Len(t, ir.Diagnostics(err), 1)
}

// What a pass finds wrong with the program is not its own fault.
func TestRefusal(t *testing.T) {
	c, m := parse(t, source)
	pl, err := NewPipeline(testTable(), "refuse")
	require.NoError(t, err)
	err = (&Config{}).Run(c, m, pl)
	var f *Failure
	require.False(t, errors.As(err, &f))
	require.EqualError(t, err, "test.mlir:1:1: error: not this function")
}

func TestPrinting(t *testing.T) {
	headers := func(cfg Config, pipeline string) []string {
		c, m := parse(t, source)
		pl, err := ParsePipeline(testTable(), pipeline)
		require.NoError(t, err)
		var log bytes.Buffer
		cfg.Log = &log
		require.NoError(t, cfg.CheckNames(testTable()))
		require.NoError(t, cfg.Run(c, m, pl))
		var hs []string
		for line := range strings.Lines(log.String()) {
			if h, ok := strings.CutPrefix(line, "// IR "); ok {
				hs = append(hs, strings.TrimSpace(h))
			}
		}
		return hs
	}
	all := "builtin.module(canonicalize,cse,cse,dce)"
	require.Equal(t, []string{"after canonicalize", "after cse", "after cse", "after dce"}, headers(Config{PrintAfterAll: true}, all))
	require.Equal(t, []string{"after cse"}, headers(Config{PrintAfterChange: true}, all))
	require.Equal(t, []string{"before dce"}, headers(Config{PrintBefore: []string{"dce"}}, all))
	require.Equal(t, []string{"after cse", "after cse"}, headers(Config{PrintAfter: []string{"cse"}}, all))
	require.EqualError(t, (&Config{PrintAfter: []string{"csa"}}).CheckNames(Table), "no pass csa; did you mean cse?")
}

func TestTiming(t *testing.T) {
	c, m := parse(t, source)
	pl, err := NewPipeline(Table, "canonicalize", "cse", "cse")
	require.NoError(t, err)
	timing := &Timing{}
	require.NoError(t, (&Config{Timing: timing}).Run(c, m, pl))
	var b bytes.Buffer
	timing.Print(&b)
	require.Regexp(t, `(?s)    1  canonicalize\n.*    3  \(verifier\)\n.*    2  cse\n.*100\.0%        total\n`, b.String())
}

// Shuffled programs are other orders of the same program, and orders do differ.
func TestShuffle(t *testing.T) {
	src := `
func.func private @effect(i32)
func.func @f(%x: i32) -> i32 {
  %a = arith.addi %x, %x : (i32, i32) -> i32
  func.call %a {callee = @effect} : (i32) -> ()
  %b = arith.muli %x, %x : (i32, i32) -> i32
  func.call %b {callee = @effect} : (i32) -> ()
  %c = arith.subi %x, %a : (i32, i32) -> i32
  %d = arith.subi %x, %b : (i32, i32) -> i32
  %i = arith.constant {value = 1 : index} : () -> index
  %l = scf.for %i, %i, %i, %c : (index, index, index, i32) -> i32 (%j: index, %y: i32) {
    %z = arith.addi %y, %d : (i32, i32) -> i32
    scf.yield %z : (i32) -> ()
  }
  func.return %l : (i32) -> ()
}`
	orders := map[string]bool{}
	for seed := range uint64(50) {
		c, m := parse(t, src)
		ShuffleOps(m, seed)
		require.NoError(t, ir.Verify(c, m), "seed %d", seed)
		text := string(ir.Print(m, ir.PrintOptions{}))
		orders[text] = true
		c2, m2 := parse(t, src)
		_ = c2
		ShuffleOps(m2, seed)
		require.Equal(t, text, string(ir.Print(m2, ir.PrintOptions{})), "a seed gives one order")
		first, second := strings.Index(text, "func.call"), strings.LastIndex(text, "func.call")
		require.Less(t, strings.Index(text, "arith.addi %arg0"), first)
		require.Less(t, strings.Index(text, "arith.muli"), second, "effects keep their order")
	}
	require.Greater(t, len(orders), 10)
}
