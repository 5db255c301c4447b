package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/arith"
	"blutrain/dialects/exec"
	"blutrain/dialects/host"
	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/runtime"
	hostdevice "blutrain/runtime/host"
	"blutrain/runtime/synthetic"
)

// A program that was tampered with is refused, stops with an error, or runs within its memory. Each piece of memory lies
// between pages that may not be touched, so that anything else ends the test.
func TestHostilePrograms(t *testing.T) {
	programs := victims(t)
	n := 1000
	if testing.Short() {
		n = 200
	}
	ends := map[string]int{}
	for seed := range n {
		ends[attack(t, programs, uint64(seed))]++
	}
	t.Log(ends)
	for _, end := range []string{"refused", "stopped", "ran"} {
		require.Greater(t, ends[end], n/20, "%s: %v", end, ends)
	}
}

func FuzzHostilePrograms(f *testing.F) {
	programs := victims(f)
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) { attack(t, programs, seed) })
}

// victims is small programs with every kind of instruction that models come to.
func victims(t testing.TB) []*artifact.Artifact {
	return []*artifact.Artifact{
		example(t, "gpt2.blu", map[string]float64{"V": 19, "T": 9, "L": 1, "H": 2, "C": 8, "B": 2, "S": 9}),
		example(t, "llama.blu", map[string]float64{"V": 17, "L": 1, "H": 4, "K": 2, "C": 16, "F": 12, "B": 1, "S": 7}),
	}
}

// attack runs a program with some edits that the seed gives, and says how it ended.
func attack(t *testing.T, programs []*artifact.Artifact, seed uint64) string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	a := *programs[r.IntN(len(programs))]
	a.Files = slices.Clone(a.Files)
	i := slices.IndexFunc(a.Files, func(f artifact.File) bool { return f.Name == artifact.ProgramName })
	c := dialects.NewContext()
	module, err := ir.Parse(c, artifact.ProgramName, a.Files[i].Data)
	require.NoError(t, err)
	e := newEditor(c, module, r)
	var edits []string
	for range 1 + r.IntN(3) {
		edits = append(edits, e.edit())
	}
	a.Files[i].Data = ir.Print(module, ir.PrintOptions{ElideAbove: -1})
	done := make(chan string, 1)
	go func() { done <- runHostile(&a, r) }()
	select {
	case end := <-done:
		return end
	case <-time.After(5 * time.Minute):
		require.Fail(t, "still running", "seed %d: %v", seed, edits)
		return ""
	}
}

// runHostile calls every function of a program.
func runHostile(a *artifact.Artifact, r *rand.Rand) string {
	p, err := hostdevice.Open(a, runtime.Options{Threads: 2, Poison: true, Guard: true})
	if err != nil {
		return "refused"
	}
	defer p.Close()
	end := "ran"
	for _, name := range []string{"init", "accumulate", "apply", "eval", "logits"} {
		f, _ := a.Manifest.Function(name)
		if _, err := p.Call(name, synthetic.Inputs(&a.Manifest, f, r), synthetic.Scalars(true)); err != nil {
			end = "stopped"
		}
	}
	return end
}

// editor changes a program at random, so that most of what comes out is still a program.
type editor struct {
	c   *ir.Context
	r   *rand.Rand
	ops []*ir.Op
}

func newEditor(c *ir.Context, module *ir.Op, r *rand.Rand) *editor {
	e := &editor{c: c, r: r}
	ir.Walk(module, func(op *ir.Op) ir.WalkResult {
		if op != module && !op.Is(exec.State) && !op.Is(exec.Func) {
			e.ops = append(e.ops, op)
		}
		return ir.Advance
	})
	return e
}

func pick[T any](r *rand.Rand, xs []T) T { return xs[r.IntN(len(xs))] }

// edit makes one change and says what it was about.
func (e *editor) edit() string {
	for {
		op := pick(e.r, e.ops)
		before := op.Name() + " " + fmt.Sprint(op.Loc())
		changed := false
		switch e.r.IntN(6) {
		case 0, 1:
			changed = e.number(op)
		case 2:
			changed = e.operand(op)
		case 3:
			changed = e.blockType(op)
		case 4:
			changed = e.memoryType(op)
		case 5:
			changed = e.other(op)
		}
		if changed {
			return before
		}
	}
}

// number changes one number among an operation's attributes.
func (e *editor) number(op *ir.Op) bool {
	var names []string
	for _, a := range op.Attrs() {
		switch a.Value.(type) {
		case *ir.IntegerAttr, *ir.DenseArrayAttr:
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return false
	}
	name := pick(e.r, names)
	switch a := op.Attr(name).(type) {
	case *ir.IntegerAttr:
		switch {
		case a.Type == e.c.I1():
			op.SetAttr(name, e.c.Bool(a.Value == 0))
		default:
			op.SetAttr(name, e.c.Integer(e.otherNumber(a.Value), a.Type))
		}
	case *ir.DenseArrayAttr:
		ns := slices.Clone(a.Ints)
		if len(ns) == 0 {
			return false
		}
		n := e.r.IntN(len(ns))
		ns[n] = e.otherNumber(ns[n])
		op.SetAttr(name, e.c.I64s(ns...))
	}
	return true
}

// otherNumber is a number near another, or one at the edge of what there is.
func (e *editor) otherNumber(n int64) int64 {
	return pick(e.r, []int64{n + 1, n - 1, 2 * n, n / 2, n + 64, n - 64, 0, 1, -n, -1, int64(e.r.IntN(300)), 1 << e.r.IntN(63), 1<<63 - 1})
}

// operand uses another value of the same type that is known at that place.
func (e *editor) operand(op *ir.Op) bool {
	if op.NumOperands() == 0 {
		return false
	}
	i := e.r.IntN(op.NumOperands())
	var others []*ir.Value
	for b := op; b != nil; b = b.Parent() {
		if b.Block() == nil || b.Is(host.Kernel) || b.Is(exec.Func) {
			break
		}
		for o := range b.Block().Ops() {
			if o == b {
				break
			}
			others = append(others, o.Results()...)
		}
		others = append(others, b.Block().Args()...)
	}
	others = slices.DeleteFunc(others, func(v *ir.Value) bool { return v.Type() != op.Operand(i).Type() || v == op.Operand(i) })
	if len(others) == 0 {
		return false
	}
	op.SetOperand(i, pick(e.r, others))
	return true
}

// blockType gives a block other extents or elements.
func (e *editor) blockType(op *ir.Op) bool {
	if !op.Is(host.Scratch) && !op.Is(host.Window) {
		return false
	}
	t := op.Result(0).Type().(*ir.DialectType)
	shape, elem := slices.Clone(t.Shape), t.Elem
	if e.r.IntN(3) == 0 {
		elem = e.elem()
	} else {
		n := e.r.IntN(2)
		shape[n] = max(0, e.otherNumber(shape[n]))
	}
	op.Result(0).SetType(host.Block(e.c, shape[0], shape[1], elem))
	return true
}

func (e *editor) elem() ir.Type {
	return pick(e.r, []ir.Type{e.c.F32(), e.c.F64(), e.c.Float(ir.BF16), e.c.Float(ir.F16), e.c.I1(), e.c.I32(), e.c.I64(), e.c.Int(8)})
}

// memoryType gives one of a kernel's references another type, and all places that it is launched with.
func (e *editor) memoryType(op *ir.Op) bool {
	if !op.Is(host.Kernel) {
		op = op.ParentOfKind(host.Kernel)
	}
	if op == nil {
		return false
	}
	i := e.r.IntN(len(op.Body().Args()))
	old, ok := op.Body().Arg(i).Type().(*ir.MemRefType)
	if !ok || len(old.Shape) == 0 {
		return false
	}
	strides, _ := mem.Layout(old)
	shape, strides, elem := slices.Clone(old.Shape), slices.Clone(strides), old.Elem
	n := e.r.IntN(len(shape))
	switch e.r.IntN(5) {
	case 0, 1:
		shape[n] = max(0, e.otherNumber(shape[n]))
	case 2, 3:
		strides[n] = max(0, e.otherNumber(strides[n]))
	case 4:
		elem = e.elem()
	}
	t := e.c.MemRefWith(shape, elem, e.c.Strided(strides, 0), nil)
	for _, launch := range e.ops {
		if launch.Is(exec.Launch) && launch.Attrs().Sym("kernel") == ir.SymName(op) {
			launch.Operand(i).SetType(t)
		}
	}
	op.Body().Arg(i).SetType(t)
	return true
}

// other changes a word, an operation, or the order.
func (e *editor) other(op *ir.Op) bool {
	switch e.r.IntN(3) {
	case 0:
		words := map[string][]string{"fn": slices.Concat(host.Unaries, host.Binaries, host.Predicates, host.Reductions), "space": mem.Spaces}
		for name, ws := range words {
			if op.Attr(name) != nil {
				op.SetAttr(name, e.c.String(pick(e.r, ws)))
				return true
			}
		}
	case 1:
		if op.Def().DialectName() == "arith" && op.NumOperands() == 2 {
			def := pick(e.r, []*ir.OpDef{arith.Addi, arith.Subi, arith.Muli, arith.Divsi, arith.Remsi, arith.Minsi, arith.Maxsi, arith.Floordivsi, arith.Ceildivsi})
			n := ir.NewBuilder(e.c, nil).Before(op).CreateState(def, ir.OpState{Loc: op.Loc(), Operands: op.Operands(), Results: op.ResultTypes()})
			op.Result(0).ReplaceAllUsesWith(n.Result(0))
			return true
		}
	case 2:
		if op.NumResults() == 0 && !op.Has(ir.Terminator) && op.Next() != nil && !op.Next().Has(ir.Terminator) && !op.Is(host.Kernel) {
			op.Next().MoveBefore(op)
			return true
		}
	}
	return false
}
