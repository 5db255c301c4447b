package driver_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes"
)

// mutation changes a module in one place as a slip of the pen, or of a pass, might.
type mutation struct {
	*rand.Rand
	ctx   *ir.Context
	ops   []*ir.Op
	attrs []ir.Attr
	types []ir.Type
}

func newMutation(c *ir.Context, m *ir.Op, seed uint64) *mutation {
	r := &mutation{Rand: rand.New(rand.NewPCG(seed, 7)), ctx: c}
	r.attrs = []ir.Attr{c.Unit(), c.Int64(-1), c.Int64(1 << 62), c.Int64(3), c.Bool(true), c.I64s(), c.I64s(0, 0, 9), c.I64s(-1), c.String(""), c.Symbol("nobody"),
		c.Array(), c.Dict(), c.FloatAttr(0, c.F64()), c.TypeAttr(c.I1()), c.Elided(c.Tensor([]int64{3}, c.F32())), c.Splat(c.Tensor([]int64{3}, c.F32()), 1)}
	r.types = []ir.Type{c.F32(), c.Index(), c.None(), c.Tensor([]int64{0}, c.F32()), c.Tensor([]int64{ir.Dynamic, 2}, c.F32()), c.Tensor(nil, c.I1()),
		c.Tensor([]int64{1 << 40, 1 << 40}, c.F32()), c.Vector([]int64{2}, c.F32()), c.MemRef([]int64{2, 2}, c.F32()), c.Func(nil, nil)}
	ir.Walk(m, func(op *ir.Op) ir.WalkResult {
		if op != m {
			r.ops = append(r.ops, op)
			for _, a := range op.Attrs() {
				r.attrs = append(r.attrs, a.Value)
			}
			r.types = append(r.types, op.ResultTypes()...)
		}
		return ir.Advance
	})
	return r
}

func (r *mutation) apply() string {
	op := r.ops[r.IntN(len(r.ops))]
	switch r.IntN(6) {
	case 0:
		if as := op.Attrs(); len(as) > 0 {
			name := as[r.IntN(len(as))].Name
			op.SetAttr(name, nil)
			return fmt.Sprintf("%s without %s", op.Name(), name)
		}
	case 1:
		if as := op.Attrs(); len(as) > 0 {
			name := as[r.IntN(len(as))].Name
			op.SetAttr(name, r.attrs[r.IntN(len(r.attrs))])
			return fmt.Sprintf("%s with another %s", op.Name(), name)
		}
	case 2:
		if n := op.NumResults(); n > 0 {
			op.Result(r.IntN(n)).SetType(r.types[r.IntN(len(r.types))])
			return "another type of a result of " + op.Name()
		}
	case 3:
		if n := op.NumOperands(); n > 0 {
			other := r.ops[r.IntN(len(r.ops))]
			if k := other.NumResults(); k > 0 {
				op.SetOperand(r.IntN(n), other.Result(r.IntN(k)))
				return "another operand of " + op.Name()
			}
		}
	case 4:
		if n := op.NumOperands(); n > 0 {
			op.SetOperands(op.Operands()[:r.IntN(n)])
			return "fewer operands of " + op.Name()
		}
	case 5:
		if b := op.Body(); b != nil && len(b.Args()) > 0 {
			b.Arg(r.IntN(len(b.Args()))).SetType(r.types[r.IntN(len(r.types))])
			return "another type of an argument in " + op.Name()
		}
	}
	return ""
}

// mutants are the modules to mutate: golden tests and the phases of an example.
func mutants(t *testing.T) map[string][]byte {
	dir := t.TempDir()
	for _, target := range driver.TargetNames() {
		_, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: target, Set: map[string]float64{"M": 8, "E": 4, "V": 16, "W": 2, "S": 4, "B": 2}, DumpDir: filepath.Join(dir, target)})
		require.NoError(t, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.mlir"))
	require.NoError(t, err)
	golden, err := filepath.Glob("../test/lit/*/*.mlir")
	require.NoError(t, err)
	texts := map[string][]byte{}
	for _, f := range append(files, golden...) {
		texts[f], err = os.ReadFile(f)
		require.NoError(t, err)
	}
	return texts
}

// Whatever is wrong with a module, the verifier says so and does not crash; what it accepts, the passes leave valid.
func TestMutatedModules(t *testing.T) {
	rounds := uint64(200)
	if testing.Short() {
		rounds = 25
	}
	pl, err := passes.ParsePipeline(driver.Passes(), "builtin.module(inline,canonicalize,cse,dce)")
	require.NoError(t, err)
	for name, text := range mutants(t) {
		for seed := range rounds {
			c := dialects.NewContext()
			m, err := ir.Parse(c, filepath.Base(name), text)
			if err != nil {
				break // a golden test of the parser's errors
			}
			what := newMutation(c, m, seed).apply()
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s, seed %d: %s: %v", filepath.Base(name), seed, what, p)
					}
				}()
				err = ir.Verify(c, m)
			}()
			if what == "" || err != nil || t.Failed() {
				continue
			}
			cfg := passes.Config{}
			if err := cfg.Run(c, m, pl); err != nil {
				_, fault := err.(*passes.Failure)
				require.False(t, fault, "%s, seed %d: %s: %v", filepath.Base(name), seed, what, err)
			}
		}
	}
}

// entry is an attribute of an operation, or one in a dictionary of such.
var entry = regexp.MustCompile(`[a-z_][a-z_.0-9]* = ("[^"]*"|[^][{}<>",]+)`)

// Modules that later phases begin with are believed no more than models: whatever their attributes are, there is an artifact or an error.
func TestModulesWithOtherAttributes(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 10
	}
	for _, o := range []driver.Options{{Target: "cpu"}, {Target: "ref"}, {Target: "cuda", Precision: "bf16", Candidates: 2}} {
		o.Set, o.DumpDir = map[string]float64{"M": 8, "E": 4, "V": 16, "W": 2, "S": 4, "B": 2}, t.TempDir()
		_, err := driver.Compile("mlp.blu", source(t), o)
		require.NoError(t, err)
		files, err := filepath.Glob(filepath.Join(o.DumpDir, "*.mlir"))
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			entries := entry.FindAllIndex(text, -1)
			r := rand.New(rand.NewPCG(uint64(len(text)), 5))
			for range rounds {
				at := entries[r.IntN(len(entries))]
				other := entries[r.IntN(len(entries))]
				values := []string{"7 : i64", `"none"`, "[7 : i64]", "[]", "unit", "-1 : i64", "{}", "@none", "tensor<2xf32>", "array<i64: 3>", string(text[other[0]:other[1]])}
				value := values[r.IntN(len(values))]
				if name, _, _ := strings.Cut(string(text[at[0]:at[1]]), " = "); !strings.Contains(value, " = ") {
					value = name + " = " + value
				}
				wrong := slices.Concat(text[:at[0]], []byte(value), text[at[1]:])
				func() {
					defer func() {
						require.Nil(t, recover(), "%s: %s for %s\n%s", f, value, text[at[0]:at[1]], debug.Stack())
					}()
					_, _ = driver.Compile(f, wrong, driver.Options{})
				}()
			}
		}
	}
}
