package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/ref"
	"blutrain/runtime/synthetic"
)

// ReferenceModule is the name of the module in an artifact's reference that holds a function for each kernel.
const ReferenceModule = "reference"

// KernelRow is what was found of one kernel.
type KernelRow struct {
	Kernel   string
	Location string // in the source, of its first launch
	Launches int
	Checked  int // launches that were compared
	Outputs  []OutputRow
	Off      bool // the error of an output was beyond its bound
}

// OutputRow is the comparison of one of a kernel's outputs with what float64 gives for the same inputs.
type OutputRow struct {
	Elements int
	Relative float64 // norm(difference) / norm(reference), the worst of all comparisons
	Bound    float64 // what Relative may be, of that comparison
}

// CopyName stands for the kernel of copies, which have none.
const CopyName = "(copy)"

// Kernels runs init, two accumulations, an update, an evaluation and the functions of the model on random inputs and
// states, launch by launch, and compares every kernel with its function in the artifact's reference: on what it read, as it read it. A
// kernel is compared at its first launch, and again where it gets other truth values, such as whether a sum is the first.
//
// An error e of an output y is within bounds when
//
//	norm(e) <= 8 sqrt(n) max(u norm(y), norm(y' - y))
//
// with u = 2^-24, the unit roundoff of float32; y' the same function in float64, but with every input and every
// intermediate result changed by a random u or -u of itself (Monte Carlo arithmetic: Parker, 1997), which is what rounding
// would do to it, cancellation and all; and n the largest number of terms in one of its sums, since the rounding errors of
// a sum that is added up one after the other grow with the square root of their number. Bounds are not met by chance: a
// wrong constant, index or operation is off by orders of magnitude.
func Kernels(p runtime.Tracer, a *artifact.Artifact, seed uint64) ([]KernelRow, error) {
	o, err := openOracle(a)
	if err != nil {
		return nil, err
	}
	k := &kernelCheck{oracle: o, seen: map[string]bool{}, rows: map[string]*KernelRow{}, random: rand.New(rand.NewPCG(seed, 1))}
	m := p.Manifest()
	inputs := rand.New(rand.NewPCG(seed, 0))
	for i, name := range order(m) {
		f, ok := m.Function(name)
		if !ok {
			return nil, fmt.Errorf("the program has no function %s", name)
		}
		first := !slices.Contains(order(m)[:i], name)
		if _, err := p.Trace(name, synthetic.Inputs(m, f, inputs), synthetic.Scalars(first), k.visit); err != nil {
			return nil, err
		}
		if name == "init" {
			if err := synthetic.Shake(p, inputs); err != nil {
				return nil, err
			}
		}
	}
	return k.list(), nil
}

// kernelCheck compares launches as they happen.
type kernelCheck struct {
	oracle *oracle
	random *rand.Rand
	seen   map[string]bool
	rows   map[string]*KernelRow
	names  []string // of the kernels, in order of their first launch
}

func (k *kernelCheck) list() []KernelRow {
	rows := make([]KernelRow, len(k.names))
	for i, name := range k.names {
		rows[i] = *k.rows[name]
	}
	return rows
}

func (k *kernelCheck) row(s *runtime.Step) *KernelRow {
	name := s.Kernel
	if name == "" {
		name = CopyName
	}
	r := k.rows[name]
	if r == nil {
		r = &KernelRow{Kernel: name, Location: s.Location}
		k.rows[name], k.names = r, append(k.names, name)
	}
	r.Launches++
	return r
}

// visit runs a launch and compares it, unless its like was compared before.
func (k *kernelCheck) visit(s *runtime.Step, run func() error) error {
	row := k.row(s)
	in := make([]runtime.Array, s.Inputs)
	key := row.Kernel
	for i := range in {
		if in[i] = s.Read(i); in[i].DType == formats.Bool && len(in[i].Data) == 1 {
			key += fmt.Sprint(" ", in[i].Data[0])
		}
	}
	if err := run(); err != nil {
		return err
	}
	if k.seen[key] {
		return nil
	}
	k.seen[key] = true
	out := make([]runtime.Array, s.Outputs)
	for i := range out {
		out[i] = s.Read(s.Inputs + i)
	}
	if err := k.compare(row, s, in, out); err != nil {
		return fmt.Errorf("kernel %s: %w", row.Kernel, err)
	}
	return nil
}

func (k *kernelCheck) compare(row *KernelRow, s *runtime.Step, in, out []runtime.Array) error {
	if s.Kernel == "" {
		e := expected{value: tensorOf(in[0]), bound: 0}
		return row.add([]expected{e}, out)
	}
	want, err := k.oracle.expect(s.Reference, in, k.random)
	if err != nil {
		return err
	}
	return row.add(want, out)
}

// add notes the errors of a launch's outputs.
func (r *KernelRow) add(want []expected, got []runtime.Array) error {
	if len(want) != len(got) {
		return fmt.Errorf("it has %d outputs, its reference %d", len(got), len(want))
	}
	if r.Outputs == nil {
		r.Outputs = make([]OutputRow, len(got))
	}
	r.Checked++
	for i, w := range want {
		if !slices.Equal(w.value.Shape, got[i].Shape) {
			return fmt.Errorf("output %d is %v, its reference %v", i, got[i].Shape, w.value.Shape)
		}
		difference, norm := distances(tensorOf(got[i]).Data, w.value.Data)
		relative := ratio(difference, norm)
		o := &r.Outputs[i]
		if r.Checked == 1 || relative > o.Relative || difference > w.bound {
			*o = OutputRow{Elements: len(w.value.Data), Relative: relative, Bound: ratio(w.bound, norm)}
		}
		r.Off = r.Off || !(difference <= w.bound)
	}
	return nil
}

// tensorOf widens an array.
func tensorOf(a runtime.Array) *ir.Tensor {
	return &ir.Tensor{Shape: a.Shape, Data: formats.Tensor(a).Float64s()}
}

// oracle evaluates the functions that kernels implement.
type oracle struct {
	ctx    *ir.Context
	module *ir.Op
}

func openOracle(a *artifact.Artifact) (*oracle, error) {
	text, ok := a.File(artifact.ReferenceName)
	if !ok {
		return nil, fmt.Errorf("the artifact has no %s", artifact.ReferenceName)
	}
	o := &oracle{ctx: dialects.NewContext()}
	whole, err := ir.Parse(o.ctx, artifact.ReferenceName, text)
	if err != nil {
		return nil, err
	}
	if err := ir.Verify(o.ctx, whole); err != nil {
		return nil, err
	}
	if o.module = ir.LookupSymbol(whole, ReferenceModule); o.module == nil || o.module.Body() == nil {
		return nil, fmt.Errorf("%s has no module @%s with the kernels' functions", artifact.ReferenceName, ReferenceModule)
	}
	return o, nil
}

// expected is what an output should be, and how far from it, in norm, is near enough.
type expected struct {
	value *ir.Tensor
	bound float64
}

// roundoff is the unit roundoff of float32.
const roundoff = 1.0 / (1 << 24)

// expect evaluates a kernel's function twice, exactly and with random roundings.
func (o *oracle) expect(name string, in []runtime.Array, r *rand.Rand) ([]expected, error) {
	fn := ir.LookupSymbol(o.module, name)
	if fn == nil || fn.Body() == nil {
		return nil, fmt.Errorf("%s has no function %s", artifact.ReferenceName, name)
	}
	body := fn.Body()
	if len(in) != len(body.Args()) {
		return nil, fmt.Errorf("it has %d inputs, its reference %d", len(in), len(body.Args()))
	}
	exact, err := ref.Evaluate(o.ctx, o.module, body, arguments(body, in, nil), nil)
	if err != nil {
		return nil, err
	}
	rounded, err := ref.Evaluate(o.ctx, o.module, body, arguments(body, in, r), func(f *ir.Frame, op *ir.Op, out []ir.Datum) {
		for i, d := range out {
			if t, ok := d.(*ir.Tensor); ok && rounds(op) {
				f.Set(op.Result(i), jittered(t, r))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	growth := 8 * math.Sqrt(float64(terms(body)))
	want := make([]expected, len(exact))
	for i, d := range exact {
		y := d.(*ir.Tensor)
		response, norm := distances(rounded[i].(*ir.Tensor).Data, y.Data)
		want[i] = expected{y, growth * math.Max(roundoff*norm, response)}
	}
	return want, nil
}

// arguments are a function's arguments, with random roundings where r is given.
func arguments(body *ir.Block, in []runtime.Array, r *rand.Rand) []ir.Datum {
	args := make([]ir.Datum, len(in))
	for i, a := range in {
		t := tensorOf(a)
		t.Elem = body.Arg(i).Elem()
		if r != nil {
			t = jittered(t, r)
		}
		args[i] = t
	}
	return args
}

// rounds reports whether the results of an operation are rounded: computed, not chosen, moved or counted.
func rounds(op *ir.Op) bool {
	switch op.Def().Name {
	case "select", "gather", "pad", "concat", "slice", "constant", "iota", "max", "min", "neg", "abs", "reduce_max", "reduce_min":
		return false
	}
	return !op.Has(ir.View)
}

// jittered is a tensor of floating-point numbers with every element changed by a unit roundoff of itself, up or down.
func jittered(t *ir.Tensor, r *rand.Rand) *ir.Tensor {
	if !ir.IsFloat(t.Elem) {
		return t
	}
	j := &ir.Tensor{Shape: t.Shape, Elem: t.Elem, Data: make([]float64, len(t.Data))}
	factors := [2]float64{1 + roundoff, 1 - roundoff}
	var bits uint64
	for i, v := range t.Data {
		if i%64 == 0 {
			bits = r.Uint64()
		}
		j.Data[i] = v * factors[bits>>(i%64)&1]
	}
	return j
}

// terms is the largest number of terms in a sum that one of a body's operations adds up: at most as many elements of an
// operand as there are for each element of the smallest result, or, where an operation has an inner dimension that no
// result shows, as that is long.
func terms(body *ir.Block) int64 {
	most := int64(1)
	for op := range body.Ops() {
		if op.Has(ir.View) || op.Has(ir.Terminator) || op.Has(ir.Elementwise) {
			continue
		}
		smallest := int64(math.MaxInt64)
		for _, r := range op.Results() {
			smallest = min(smallest, max(1, ir.NumElements(r.Shape())))
		}
		for _, v := range op.Operands() {
			most = max(most, ir.NumElements(v.Shape())/smallest)
			for _, n := range v.Shape() {
				most = max(most, n)
			}
		}
	}
	return most
}
