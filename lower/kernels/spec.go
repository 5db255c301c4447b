package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// formSpec is the kernel of a group that was resolved.
func (l *lowerer) formSpec(f *form) *spec {
	s := &spec{
		loc: f.g.root.Loc(), key: l.formKey(f), name: f.name(),
		build: func() *ir.Op { return f.emit(l.c) },
		refer: f.refer,
	}
	for _, t := range slices.Concat(f.sides, f.inputs) {
		p := port{value: t.value, perm: t.perm, shape: t.shape}
		if t.from != nil && t.from.partial {
			p.sum = t.value.Op()
		}
		s.inputs = append(s.inputs, p)
	}
	for _, t := range f.outputs {
		s.outputs = append(s.outputs, port{value: t.value, shape: t.shape, sum: t.sum})
	}
	return s
}

// formKey is equal for forms whose kernels are.
func (l *lowerer) formKey(f *form) string {
	k := keyWriter{l: l}
	k.num(int64(f.g.kind), int64(f.row), int64(f.col), int64(f.along), bit(f.held), int64(len(f.axes)))
	for _, a := range f.axes {
		k.num(a.size, a.extent, a.step, bit(a.grid), bit(a.reduce), bit(a.sum))
	}
	k.ints(f.loops)
	if f.g.kind == product {
		k.b = append(k.b, f.orientation()...) // not what it computes, but what its name says
		k.b = append(k.b, f.g.root.Attrs().Str(blu.PrecisionAttr)...)
		k.num(int64(len(k.b)))
	}
	members := map[*ir.Value]int64{}
	for i, op := range f.ops {
		members[op.Result(0)] = int64(i)
	}
	for _, list := range [][]tensor{f.sides, f.inputs, f.outputs} {
		k.num(int64(len(list)))
		for _, t := range list {
			k.tensor(f, t, members)
		}
	}
	for _, op := range slices.Concat(f.ops, f.g.sums) {
		k.op(f, op, members)
	}
	return string(k.b)
}

type keyWriter struct {
	l *lowerer
	b []byte
}

func (k *keyWriter) num(ns ...int64) {
	for _, n := range ns {
		k.b = binary.AppendVarint(k.b, n)
	}
}

func (k *keyWriter) ints(ns []int) {
	k.num(int64(len(ns)))
	for _, n := range ns {
		k.num(int64(n))
	}
}

func (k *keyWriter) ref(p any) { k.b = binary.AppendUvarint(k.b, idOf(k.l.ids, p)) }

func bit(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

func (k *keyWriter) tensor(f *form, t tensor, members map[*ir.Value]int64) {
	k.ref(t.value.Elem())
	k.ints(t.axes)
	k.num(int64(len(t.shape)))
	k.num(t.shape...)
	switch {
	case t.sum != nil:
		k.num(-2)
	case t.from == nil && t.perm == nil:
		k.num(members[t.value])
	case t.from != nil:
		k.num(-3, bit(t.from.partial), bit(t.from.raw))
	}
}

// op writes an operation: its axes say what is left of attributes that name dimensions.
func (k *keyWriter) op(f *form, op *ir.Op, members map[*ir.Value]int64) {
	k.ref(op.Def())
	k.ref(op.Result(0).Elem())
	if op.Def().DialectName() == "kernels" || !isReduction(op) && !op.Is(blu.Dot) && !op.Is(blu.Iota) && !op.Is(blu.Constant) {
		for _, a := range op.Attrs() {
			k.ref(a.Value)
		}
	}
	k.dims(f, f.g.dims[op.Result(0)])
	if ds := f.g.operand[op]; ds != nil {
		k.dims(f, ds)
	}
	if isInline(op) {
		k.inline(f, op, f.g.dims[op.Result(0)])
	}
	for _, s := range f.sources[op] {
		switch {
		case s.member != nil:
			k.num(1, members[s.member])
		case s.inline != nil:
			k.num(2)
			k.inline(f, s.inline, s.dims)
		default:
			k.num(3, int64(s.input))
		}
	}
}

func (k *keyWriter) inline(f *form, op *ir.Op, ds dims) {
	k.ref(op.Result(0).Elem())
	if d, ok := op.Attr("value").(*ir.DenseAttr); ok {
		k.num(int64(math.Float64bits(ir.DecodeElement(op.Result(0).Elem(), d.Raw))))
		return
	}
	k.num(-1)
	k.dims(f, ds[op.Attrs().IntOr("axis", 0):][:1])
}

// dims writes which axes dimensions are made of.
func (k *keyWriter) dims(f *form, ds dims) {
	flat := f.g.dom.flat(ds)
	for i := 0; i < len(flat); {
		a := f.axisOf(flat[i])
		k.num(int64(a))
		i += len(f.axes[a].atoms)
	}
	k.num(-1)
}

// mostLabels is how many operations a kernel's name tells.
const mostLabels = 4

// name tells what a kernel does and for which sizes: gemm_nt_bias_gelu_256x3072x768.
func (f *form) name() string {
	origin := f.p.origin
	var labels []string
	add := func(s string) {
		if s != "" && !slices.Contains(labels, s) && len(labels) < mostLabels {
			labels = append(labels, s)
		}
	}
	if f.g.kind == product {
		add("gemm_" + f.orientation())
	}
	for _, op := range slices.Concat(f.ops, f.g.sums) {
		switch {
		case op.Is(blu.Dot):
		case origin[op] != "":
			add(origin[op])
		case op.Is(blu.Add) && f.g.kind == product:
			add(f.sumLabel(op))
		case op.Is(replica):
			add("copy")
		case op.Is(blu.Constant):
			add("fill")
		default:
			add(op.Def().Name)
		}
	}
	if f.g.kind == loops && len(f.inputs) > 0 && f.inputs[0].from.partial {
		labels = append([]string{"finish"}, labels...)
	}
	var sizes []string
	for _, a := range f.axes {
		sizes = append(sizes, fmt.Sprint(a.size))
	}
	if f.g.kind == product {
		depth := f.sides[0].shape
		sizes = append(sizes, fmt.Sprint(depth[len(depth)-1]))
	}
	if len(sizes) > 0 {
		labels = append(labels, strings.Join(sizes, "x"))
	}
	return strings.Join(labels, "_")
}

// sumLabel tells a bias from a residual.
func (f *form) sumLabel(op *ir.Op) string {
	for _, s := range f.sources[op] {
		if s.input >= 0 && s.member == nil && s.inline == nil {
			if len(f.inputs[s.input].axes) < len(f.axes) {
				return "bias"
			}
			return "residual"
		}
	}
	return "add"
}

// orientation is nn, nt or tn, as in BLAS: whether each operand of a product is transposed in memory.
func (f *form) orientation() string {
	lhs, rhs := blu.DotOperandAxes(f.g.root)
	unit := func(i int, axes blu.DotAxes) bool {
		strides := f.p.layouts.of(f.g.root.Operand(i))
		if len(axes.Contract) == 0 {
			return true
		}
		return strides[axes.Contract[len(axes.Contract)-1]] == 1
	}
	a, b := "t", "n"
	if unit(0, lhs) {
		a = "n"
	}
	if unit(1, rhs) {
		b = "t"
	}
	return a + b
}
