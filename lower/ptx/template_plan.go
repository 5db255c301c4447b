package ptx

import (
	"cmp"
	"fmt"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/exec"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// Options is what kernels are lowered for.
type Options struct {
	Target   string  // sm_80, sm_89 or sm_90a
	Products string  // "auto": templates where they are predicted to be faster; "templates": wherever there is one; "general": nowhere they needn't be
	Tuning   *Tuning // what decides beside prediction, where Products is auto; nil: nothing

	// ThreadStores says that no kernel has the copy engine write to global memory, for tools that don't see what it writes there.
	ThreadStores bool

	// Room is the bytes of memory beside values that kernels may work in where they don't need as much; 0: no limit.
	Room int64

	of functions // of operands that products have, by kernel
}

// way is one way to compute a product: a template, and copies of its operands that it needs.
type way struct {
	g       blublas.Gemm
	copies  [2]*blublas.Copy // of A and B; nil: as they are
	planes  *planes          // nil: of the operands' own elements
	general bool             // by no template
	seconds float64
}

// kernels lists kernels for a product whose operands have been brought into a layout by copies.
type kernels func(g blublas.Gemm, w *way) []blublas.Gemm

// ways lists those by the kernels that of gives for each layout that the operands can be brought into.
func (m *match) ways(d blublas.Device, of kernels) (all []*way) {
	for _, a := range m.sides(m.g.A, m.g.M, m.g.Unaligned[0]) {
		for _, b := range m.sides(m.g.B, m.g.N, m.g.Unaligned[1]) {
			g := m.g
			g.A, g.B = a.operand, b.operand
			g.Unaligned = [2]bool{g.Unaligned[0] && a.copy == nil, g.Unaligned[1] && b.copy == nil}
			w := way{copies: [2]*blublas.Copy{a.copy, b.copy}}
			for _, c := range w.copies {
				if c != nil {
					c.Target = d.Target
					w.seconds += c.Seconds(d)
				}
			}
			for _, g := range of(g, &w) {
				by := w
				by.g, by.seconds = g, w.seconds+g.Cost(d).Seconds
				all = append(all, &by)
			}
		}
	}
	slices.SortStableFunc(all, bySeconds)
	return all
}

func bySeconds(v, w *way) int { return cmp.Compare(v.seconds, w.seconds) }

// planes is a product of planes of float16, and the kernel that makes them of both operands where there are none yet: where planes
// don't hold a number, the product's kernel computes it on the float32 units.
type planes struct {
	g     blublas.Gemm
	split blublas.Split
}

// inPlanes lists the ways by planes.
func (m *match) inPlanes(d blublas.Device, otherwise *way, of kernels) (all []*way) {
	if !m.faithful {
		return nil
	}
	p := planes{g: m.g, split: blublas.Split{Precision: blublas.FP16x3, Target: d.Target}}
	p.g.Precision, p.g.Unaligned = blublas.FP16x3, [2]bool{}
	var flags [2]int
	for i, o := range []*blublas.Operand{&p.g.A, &p.g.B} {
		x := blublas.Matrix{Name: sideNames[i], Rows: [2]int{m.g.M, m.g.N}[i], Cols: m.g.K, Pitch: o.Pitch, Unaligned: m.g.Unaligned[i]}
		if o.MNMajor {
			x.Rows, x.Cols = x.Cols, x.Rows
		}
		x.PlanePitch, x.Sets = padded(x.Cols, 2), []blublas.Set{{Name: x.Name, MNMajor: o.MNMajor}}
		o.Pitch = x.PlanePitch
		p.split.Of = append(p.split.Of, x)
		flags[i] = x.Flags(d)
	}
	for _, g := range of(p.g, &way{planes: &p}) {
		by := p
		by.g = g
		refuge := otherwise.g // the choice of its tiles doesn't matter
		refuge.BM, refuge.BN, refuge.BK, refuge.Consumers, refuge.SplitK = 128, 128, 8, 2, g.SplitK
		by.g.Flags, by.g.Refuge = flags, &refuge
		w := *otherwise
		w.planes = &by
		w.seconds = p.split.Seconds(d) + g.Cost(d).Seconds
		all = append(all, &w)
	}
	return all
}

// sideNames is what templates call operands.
var sideNames = [2]string{"a", "b"}

// side is an operand as it is, or as a copy is.
type side struct {
	operand blublas.Operand
	copy    *blublas.Copy
}

// sides lists the layouts that an operand can be brought into.
func (m *match) sides(o blublas.Operand, extent int, unaligned bool) []side {
	all := []side{{operand: o}}
	if len(m.g.Batch) > 0 || m.g.Precision == blublas.FP32Strict {
		return all
	}
	size := 4
	if m.g.Precision == blublas.BF16 {
		size = 2
	}
	rows, cols := extent, m.g.K
	if o.MNMajor {
		rows, cols = cols, rows
		all = append(all, side{blublas.Operand{Pitch: padded(rows, size)}, &blublas.Copy{Rows: rows, Cols: cols, Pitch: o.Pitch, Size: size, Transposed: true, OutPitch: padded(rows, size), Unaligned: unaligned}})
	}
	if unaligned || o.Pitch*size%16 != 0 {
		all = append(all, side{blublas.Operand{MNMajor: o.MNMajor, Pitch: padded(cols, size)}, &blublas.Copy{Rows: rows, Cols: cols, Pitch: o.Pitch, Size: size, OutPitch: padded(cols, size)}})
	}
	return slices.DeleteFunc(all, func(s side) bool { return s.copy != nil && s.copy.Check() != nil }) // of very large operands there are none
}

// general predicts the time of the general lowering: float32 units, blocks of the tile kernel's size, about half as well
// used as the template's.
func (m *match) general(d blublas.Device) float64 {
	g := m.g
	g.Precision, g.Unit, g.BM, g.BN, g.BK, g.SplitK = blublas.FP32Strict, blublas.SIMT, m.steps[0], m.steps[1], depthStep, 1
	return 2 * g.Cost(d).Seconds
}

// template lowers a kernel by a template, or reports that it should be lowered otherwise. A product in planes is lowered later.
func template(c *ir.Context, kernel *ir.Op, o Options, align []int64) (later *planeProduct, done bool, err error) {
	m := matchProduct(c, kernel, align)
	if m == nil {
		return nil, false, nil
	}
	m.of, m.g.ThreadStores = o.of[ir.SymName(kernel)], o.ThreadStores
	d := blublas.DeviceFor(o.Target)
	w, err := m.choose(o, align, d)
	if w == nil || err != nil {
		return nil, false, err
	}
	if w.planes != nil {
		return m.planeProduct(w.planes), true, nil
	}
	return nil, true, m.build(w, d)
}

// chain is the kernels that a launch runs one after the other, while they are made.
type chain struct {
	m       *match
	suffix  string // of the names of them, where the tile kernel becomes several chains
	kernels []*ir.Op
	scratch int64
}

// build writes a way's kernels in place of the tile kernel.
func (m *match) build(w *way, d blublas.Device) error {
	c := &chain{m: m}
	at := ir.NewBuilder(m.l.c, nil).Before(m.kernel).At(m.kernel.Loc())
	lhs, rhs, _, _ := tile.ContractOperands(m.contract)
	places := map[string]exec.Param{}
	for i, v := range []*ir.Value{lhs[0], rhs[0]} {
		name := sideNames[i]
		places[name] = exec.Param{Ref: m.refOf(v)}
		if t := w.copies[i]; t != nil {
			k, err := t.Build(at)
			if err != nil {
				return m.kernel.Errorf("%v", err)
			}
			to := exec.Param{Ref: -1, Offset: c.take(t.Bytes())}
			c.add(k, map[string]exec.Param{"x": places[name], "y": to})
			places[name] = to
		}
	}
	if w.g.SplitK > 1 {
		places["partials"] = exec.Param{Ref: -1, Offset: c.take(w.g.PartialBytes())}
	}
	if err := c.product(at, w.g, d, places); err != nil {
		return err
	}
	c.finish()
	m.kernel.Erase()
	return nil
}

// planes writes the kernels of a product in planes that makes some of them first.
func (c *chain) planes(p *planeProduct, split blublas.Split, d blublas.Device, places map[string]exec.Param) error {
	at := ir.NewBuilder(c.m.l.c, nil).Before(c.m.kernel).At(c.m.kernel.Loc())
	for i, name := range sideNames {
		places[name] = exec.Param{Ref: p.refs[i]}
	}
	if len(split.Of) > 0 {
		k, err := split.Build(at, d)
		if err != nil {
			return c.m.kernel.Errorf("%v", err)
		}
		c.add(k, places)
	}
	if err := c.product(at, p.g, d, places); err != nil {
		return err
	}
	c.finish()
	return nil
}

// product appends the kernels of a product.
func (c *chain) product(at *ir.Builder, g blublas.Gemm, d blublas.Device, places map[string]exec.Param) error {
	for i, v := range c.m.used {
		places[fmt.Sprint("ref.", i)] = exec.Param{Ref: c.m.refOf(v)}
	}
	k, err := g.Build(at, d)
	if err != nil {
		return c.m.kernel.Errorf("%v", err)
	}
	c.add(k, places)
	if g.SplitK > 1 {
		if k, err = g.SumParts(at, d); err != nil {
			return c.m.kernel.Errorf("%v", err)
		}
		c.add(k, places)
	}
	return c.m.err
}

// refOf is the number of a reference.
func (m *match) refOf(v *ir.Value) int { return slices.Index(m.refs, v) }

// take is a place in scratch memory.
func (c *chain) take(bytes int64) int64 {
	at := c.scratch
	c.scratch += (bytes + planeAlign - 1) / planeAlign * planeAlign
	return at
}

// add appends a kernel, whose parameters are at the places of their names.
func (c *chain) add(k *blublas.Kernel, places map[string]exec.Param) {
	var params []ir.Attr
	for _, p := range k.Params {
		at, ok := places[p.Name]
		if !ok {
			panic("lower/ptx: a template's parameter " + p.Name + " has no place")
		}
		if p.Map != nil {
			at.Map = mapOf(p.Map)
			at.Offset += p.Offset
		}
		params = append(params, at.Attr(c.m.l.c))
	}
	k.Op.SetAttr(ParamsAttr, c.m.l.c.Array(params...))
	k.Op.SetAttr(BlocksAttr, c.m.l.c.Int64(int64(k.Grid)))
	c.kernels = append(c.kernels, k.Op)
}

func mapOf(m *blublas.TensorMap) *exec.Map {
	dims, strides, box := m.Layout()
	return &exec.Map{Elem: m.Element, Dims: wide(dims), Strides: wide(strides), Box: wide(box)}
}

func wide(ns []int) (out []int64) {
	for _, n := range ns {
		out = append(out, int64(n))
	}
	return out
}

// name is what the first kernel is called: as the tile kernel was.
func (c *chain) name() string { return ir.SymName(c.m.kernel) + c.suffix }

// finish names the kernels, and says how they are launched.
func (c *chain) finish() {
	ctx, name := c.m.l.c, c.name()
	var types []ir.Attr
	for _, v := range c.m.refs {
		types = append(types, ctx.TypeAttr(v.Type()))
	}
	names := make([]string, len(c.kernels))
	for i := range names {
		if names[i] = name; i > 0 {
			names[i] = fmt.Sprintf("%s.step%d", name, i+1)
		}
	}
	_, outs := tile.Refs(c.m.kernel)
	c.kernels[0].SetAttr(ChoicesAttr, c.m.kernel.Attr(ChoicesAttr))
	for i, k := range c.kernels {
		k.SetAttr("sym_name", ctx.String(names[i]))
		k.SetAttr(RefsAttr, ctx.Array(types...))
		k.SetAttr(OutsAttr, ctx.Int64(int64(len(outs))))
		if c.scratch > 0 {
			k.SetAttr(ScratchAttr, ctx.Int64(c.scratch))
		}
		if i+1 < len(names) {
			k.SetAttr(ThenAttr, ctx.Symbol(names[i+1]))
		}
		if i > 0 {
			k.SetAttr(ReferenceAttr, ctx.String(""))
		} else if r := c.m.kernel.Attr(tileReference); r != nil {
			k.SetAttr(ReferenceAttr, r)
		} else if c.suffix != "" {
			k.SetAttr(ReferenceAttr, ctx.String(ir.SymName(c.m.kernel)))
		}
	}
}
