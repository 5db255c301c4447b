package verify

import (
	"fmt"
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
	Checked  int     // launches that were compared
	Outputs  []Error // of each output, what is nearest to its bound or furthest beyond it
}

// Off reports whether the error of an output was beyond its bound.
func (r KernelRow) Off() bool { return slices.ContainsFunc(r.Outputs, Error.Off) }

// CopyName stands for the kernel of copies, which have none.
const CopyName = "(copy)"

// Kernels runs init, two accumulations, an update, an evaluation and the functions of the model on random inputs and
// states, launch by launch, and compares every kernel with its function in the artifact's reference: on what it read, as it read it. A
// kernel is compared at its first launch, and again where it gets other truth values, such as whether a sum is the first.
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
	if s.Collective != nil {
		return run() // what it computes is compared with the functions
	}
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
	row.Checked++
	if s.Kernel == "" {
		row.add([]*expected{{value: float64s(in[0])}}, out)
		return nil
	}
	e, err := k.oracle.evaluate(s.Reference, in)
	if err != nil {
		return err
	}
	if len(e.want) != len(out) {
		return fmt.Errorf("it has %d outputs, its reference %d", len(out), len(e.want))
	}
	for i, shape := range e.shapes {
		if !slices.Equal(shape, out[i].Shape) {
			return fmt.Errorf("output %d is %v, its reference %v", i, out[i].Shape, shape)
		}
	}
	for i := range draws {
		if err := e.round(k.random, i == draws-1); err != nil {
			return err
		}
		if e.holds(out) {
			break
		}
	}
	row.add(e.want, out)
	return nil
}

// draws is how many evaluations with roundings there are at most: one is as a rule enough, but can happen to move a result of
// few elements by next to nothing. The last one rounds to the nearest float32.
const draws = 6

// add notes the errors of a launch's outputs.
func (r *KernelRow) add(want []*expected, got []runtime.Array) {
	first := r.Outputs == nil
	if first {
		r.Outputs = make([]Error, len(got))
	}
	for i, w := range want {
		if e := w.of(float64s(got[i])); first || !(e.Share() <= r.Outputs[i].Share()) {
			r.Outputs[i] = e
		}
	}
}

func float64s(a runtime.Array) []float64 { return formats.Tensor(a).Float64s() }

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

// evaluation is a kernel's function of some inputs.
type evaluation struct {
	*oracle
	body   *ir.Block
	args   []ir.Datum
	want   []*expected
	shapes [][]int64
}

// evaluate evaluates a kernel's function exactly.
func (o *oracle) evaluate(name string, in []runtime.Array) (*evaluation, error) {
	fn := ir.LookupSymbol(o.module, name)
	if fn == nil || fn.Body() == nil {
		return nil, fmt.Errorf("%s has no function %s", artifact.ReferenceName, name)
	}
	e := &evaluation{oracle: o, body: fn.Body()}
	if len(in) != len(e.body.Args()) {
		return nil, fmt.Errorf("it has %d inputs, its reference %d", len(in), len(e.body.Args()))
	}
	for i, a := range in {
		e.args = append(e.args, &ir.Tensor{Elem: e.body.Arg(i).Elem(), Shape: a.Shape, Data: float64s(a)})
	}
	exact, err := ref.Evaluate(o.ctx, o.module, e.body, e.args, nil)
	if err != nil {
		return nil, err
	}
	results := e.body.Terminator().Operands()
	for i, d := range exact {
		e.want = append(e.want, &expected{value: d.(*ir.Tensor).Data, spacing: lastSpacing(results[i])})
		e.shapes = append(e.shapes, d.(*ir.Tensor).Shape)
	}
	return e, nil
}

// round evaluates it with roundings: random ones, or to the nearest float32.
func (e *evaluation) round(random *rand.Rand, near bool) error {
	r := &rounding{random: random, growth: 8, unit: unitOf(e.body.ParentOp()), near: near}
	rounded, err := ref.Evaluate(e.ctx, e.module, e.body, e.args, r)
	if err != nil {
		return err
	}
	for i, w := range e.want {
		w.growth = r.growth
		w.add(rounded[i].(*ir.Tensor).Data)
	}
	return nil
}

// holds reports whether results are within bounds.
func (e *evaluation) holds(got []runtime.Array) bool {
	for i, w := range e.want {
		if w.of(float64s(got[i])).Off() {
			return false
		}
	}
	return true
}
