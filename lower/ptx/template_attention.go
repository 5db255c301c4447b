package ptx

import (
	"math"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/blu"
	"blutrain/dialects/builtin"
	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
	"blutrain/dialects/mem"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// referenceModule is where the functions are that kernels implement.
const referenceModule = "reference"

// attentionPrecisions is how the template computes attention at each precision. Three tf32 products, added up as float32, keep
// the promise of fp32, and so do three of float16 planes where they hold
// the numbers; one plane has tf32's bits (attentionWays). fp32-strict has kernels of its own (attentionSIMT).
var attentionPrecisions = map[string]blublas.Precision{"fp32": blublas.TF32x3, "tf32": blublas.TF32, "bf16": blublas.BF16, "fp32-strict": blublas.FP32Strict}

// attention lowers a kernel that is attention, or its gradient, by the template, or reports that it should be lowered
// otherwise. What a kernel computes is told by its reference, a single operation: its loops tell only how.
func attention(c *ir.Context, kernel *ir.Op, o Options, align []int64) (bool, error) {
	op := implements(kernel)
	if op == nil || o.Products == "general" {
		return false, nil
	}
	a, ok := describe(op, kernel, o.Target, align)
	if !ok {
		return false, nil
	}
	if a.Precision == blublas.FP32Strict {
		return attentionSIMT(a, picker{c, kernel, op, o, align})
	}
	d := blublas.DeviceFor(o.Target)
	ins, outs := tile.Refs(kernel)
	w := &chain{m: &match{l: &lowering{c: c, kernel: kernel}, kernel: kernel, refs: slices.Concat(ins, outs)}}
	places := map[string]exec.Param{}
	for i, name := range refNames(op) {
		places[name] = exec.Param{Ref: i}
	}
	if a.Sums.Pitch > 0 {
		places["sums"] = exec.Param{Ref: len(ins) + len(outs) - 1}
	}
	steps := attentionForward
	if op.Is(blu.AttentionGrad) {
		steps = attentionBackward
		places["delta"] = exec.Param{Ref: -1, Offset: w.take(4 * int64(a.Batch*a.Heads*a.Queries))}
	}
	ways, planes, err := attentionWays(a, steps, d, picker{c, kernel, op, o, align})
	if ways == nil || err != nil {
		return false, err
	}
	at := ir.NewBuilder(c, nil).Before(kernel).At(kernel.Loc())
	if planes {
		if err := w.attentionPlanes(at, a, steps, places); err != nil {
			return true, kernel.Errorf("%v", err)
		}
	}
	for _, way := range ways {
		k, err := way.step.build(way.Attention, at, d)
		if err != nil {
			return true, kernel.Errorf("%v", err)
		}
		w.add(k, places)
	}
	w.finish()
	kernel.Erase()
	return true, nil
}

// attentionWay is a kernel and its block.
type attentionWay struct {
	blublas.Attention
	step attentionStep
}

// inPlanes is the precision that computes another's attention by planes of float16, where they hold the numbers.
var inPlanes = map[blublas.Precision]blublas.Precision{blublas.TF32x3: blublas.FP16x3, blublas.TF32: blublas.FP16}

// attentionWays is the kernels of steps in order; nil where one can't be built. On Hopper those of float32 are of planes of
// float16, each with one of tf32 products behind it for heads that planes don't fit; planes says that there are any.
func attentionWays(a blublas.Attention, steps []attentionStep, d blublas.Device, by picker) (ways []attentionWay, planes bool, err error) {
	for _, s := range steps {
		fallback := a.Fitting(s.kernel, d)
		if len(fallback) == 0 {
			return nil, false, nil
		}
		choices := fallback
		if precision := inPlanes[a.Precision]; precision != "" {
			p := a
			p.Precision, p.Guard = precision, blublas.WhenClear
			if fit := p.Fitting(s.kernel, d); len(fit) > 0 {
				planes, choices = true, fit
			}
		}
		chosen, err := by.block(s.kernel, choices)
		if err != nil {
			return nil, false, err
		}
		chosen.Block.Staged = chosen.Block.Staged && !by.o.ThreadStores
		ways = append(ways, attentionWay{chosen, s})
		if chosen.Guard == blublas.WhenClear {
			best := fallback[0]
			best.Guard = blublas.WhenSet
			ways = append(ways, attentionWay{best, s})
		}
	}
	return ways, planes, nil
}

// picker is what is asked which block a kernel of attention has.
type picker struct {
	c      *ir.Context
	kernel *ir.Op
	op     *ir.Op // that the kernel implements
	o      Options
	align  []int64
}

// block is one of several attentions that differ in their blocks, the first by default.
func (p picker) block(kernel blublas.AttentionKernel, all []blublas.Attention) (blublas.Attention, error) {
	at := func(choice string) int {
		return slices.IndexFunc(all, func(a blublas.Attention) bool { return a.Block.Choice() == choice })
	}
	q := question{key: all[0].Key(kernel), can: func(choice string) bool { return at(choice) >= 0 }}
	for _, a := range all {
		q.options = append(q.options, a.Block.Choice())
	}
	if p.op.Is(blu.AttentionGrad) {
		for _, name := range refNames(p.op) {
			mean, deviation := 0.0, 1.0
			if name == "lse" { // normal scores of so many keys have about this logarithm of their exponentials' sum
				mean, deviation = math.Log(float64(all[0].Keys))+0.5, 0.1
			}
			q.normal = append(q.normal, mean, deviation)
		}
	}
	choice, err := p.o.pick(p.c, p.kernel, p.align, q)
	if err != nil {
		return all[0], err
	}
	return all[at(choice)], nil
}

// attentionPlanes appends the kernels that write planes of all tensors, and that find the heads that they don't fit.
func (c *chain) attentionPlanes(at *ir.Builder, a blublas.Attention, steps []attentionStep, places map[string]exec.Param) error {
	a.Precision = inPlanes[a.Precision]
	s := blublas.AttentionSplit{Attention: a, Tensors: []string{"q", "k", "v"}}
	if len(steps) > 1 {
		s.Tensors = append(s.Tensors, "do")
	}
	scratch := func(bytes int64) exec.Param { return exec.Param{Ref: -1, Offset: c.take(bytes)} }
	for _, t := range s.Tensors {
		places[t+".planes"], places[t+".scales"] = scratch(s.PlaneBytes(t)), scratch(s.ScaleBytes(t))
	}
	places["flags"], places["unfit"] = scratch(4*int64(s.Flags())), scratch(s.UnfitBytes())
	k, err := s.Build(at)
	if err != nil {
		return err
	}
	c.add(k, places)
	c.add(s.BuildUnfit(at), places)
	return nil
}

// attentionStep is one of the kernels of the template.
type attentionStep struct {
	kernel blublas.AttentionKernel
	build  func(blublas.Attention, *ir.Builder, blublas.Device) (*blublas.Kernel, error)
}

var (
	attentionForward  = []attentionStep{{blublas.AttentionForward, blublas.Attention.Forward}}
	attentionBackward = []attentionStep{{blublas.AttentionGradQueries, blublas.Attention.GradQueries}, {blublas.AttentionGradKeys, blublas.Attention.GradKeys}}
)

// implements is the operation of attention that a kernel is, of its references in order; nil where it is something else.
func implements(kernel *ir.Op) *ir.Op {
	module := kernel.Block().ParentOp()
	if module == nil || !module.Is(builtin.Module) {
		return nil
	}
	references := ir.LookupSymbol(module, referenceModule)
	if references == nil {
		return nil
	}
	f := functionOf(references, kernel)
	if f == nil || !f.Is(fn.Func) || f.Body() == nil {
		return nil
	}
	op, end := f.Body().First(), f.Body().Terminator()
	if op == nil || !op.Is(blu.Attention) && !op.Is(blu.AttentionGrad) || !slices.Equal(op.Operands(), f.Body().Args()) {
		return nil
	}
	if n := op.NumResults(); end.NumOperands() < n || !slices.Equal(op.Results(), end.Operands()[:n]) || (end.NumOperands() > n) != (kernel.Attr(share.SumsAttr) != nil) {
		return nil
	}
	return op
}

// refNames is the template's names of a kernel's references, but that of sums.
func refNames(op *ir.Op) []string {
	if op.Is(blu.AttentionGrad) {
		return []string{"q", "k", "v", "o", "lse", "do", "dq", "dk", "dv"}
	}
	return []string{"q", "k", "v", "o", "lse"}
}

// describe is the template's parameters, if it can read and write what is where it is.
func describe(op, kernel *ir.Op, target string, align []int64) (a blublas.Attention, ok bool) {
	q, k, v := op.Operand(0).Shape(), op.Operand(1).Shape(), op.Operand(2).Shape()
	precision, known := attentionPrecisions[op.Attrs().Str(blu.PrecisionAttr)]
	elem := "f32"
	if precision == blublas.BF16 {
		elem = "bf16"
	}
	if !known || v[3] != q[3] || op.Operand(0).Elem().String() != elem {
		return a, false
	}
	a = blublas.Attention{
		Batch: int(q[0]), Heads: int(q[1]), KeyHeads: int(k[1]), Queries: int(q[2]), Keys: int(k[2]), Features: int(q[3]),
		Causal: op.Attrs().Bool("causal"), Scale: op.Attrs().FloatOr("scale", 1), Precision: precision, Target: target,
	}
	ins, outs := tile.Refs(kernel)
	strides := map[string]*blublas.Strides{"q": &a.Q, "k": &a.K, "v": &a.V, "o": &a.O, "do": &a.DO, "dq": &a.DQ, "dk": &a.DK, "dv": &a.DV}
	names := refNames(op)
	if at := kernel.Attrs().Ints(share.SumsAttr); at != nil {
		if a.Sums, ok = sumsOf(a, outs[len(outs)-1], at); !ok || precision == blublas.FP32Strict {
			return a, false
		}
		outs = outs[:len(outs)-1]
	}
	for i, ref := range slices.Concat(ins, outs) {
		layout, _ := mem.Layout(ref.Type().(*ir.MemRefType))
		if names[i] == "lse" {
			if layout[2] != 1 && ref.Shape()[2] > 1 {
				return a, false
			}
			if !dense(ref.Shape(), layout) {
				a.LSE = blublas.Strides{Batch: int(layout[0]), Head: int(layout[1]), Row: 1}
			}
			continue
		}
		if align != nil && align[i]%16 != 0 || layout[3] != 1 {
			return a, false
		}
		*strides[names[i]] = blublas.Strides{Batch: int(layout[0]), Head: int(layout[1]), Row: int(layout[2])}
	}
	for _, pair := range share.Shared(kernel) {
		// A block reads its queries before it writes their outputs, and nobody else's. The gradient reads all more than once.
		if op.Is(blu.AttentionGrad) || names[pair[0]] != "q" {
			return a, false
		}
	}
	return a, true
}

// sumsOf is where sums of gradients are stored, if it is as the template does it.
func sumsOf(a blublas.Attention, ref *ir.Value, columns []int64) (s blublas.ColumnSums, ok bool) {
	shape := ref.Shape()
	rows := (a.Queries + blublas.AttentionSumRows - 1) / blublas.AttentionSumRows
	layout, _ := mem.Layout(ref.Type().(*ir.MemRefType))
	s = blublas.ColumnSums{Pitch: int(shape[1]), Q: int(columns[0]), K: int(columns[1]), V: int(columns[2])}
	return s, a.Queries == a.Keys && shape[0] == int64(a.Batch*rows) && dense(shape, layout)
}

// dense reports whether elements lie in order without gaps. The stride of a dimension of one element says nothing.
func dense(shape, strides []int64) bool {
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != n {
			return false
		}
		n *= shape[i]
	}
	return true
}
