package main

import (
	"fmt"
	"go/format"
	"strings"
)

// one is the body of a function of one vector, two of two.
func one(f func(e *expression, x *val) *val) func(*expression, []*val) []*val {
	return func(e *expression, in []*val) []*val { return []*val{f(e, in[0])} }
}

func two(f func(e *expression, x, y *val) *val) func(*expression, []*val) []*val {
	return func(e *expression, in []*val) []*val { return []*val{f(e, in[0], in[1])} }
}

type unaryOp struct {
	name string
	f    func(e *expression, x *val) *val
}

var unaryOps = []unaryOp{
	{"Neg", (*expression).neg},
	{"Abs", (*expression).abs},
	{"Square", func(e *expression, x *val) *val { return e.mul(x, x) }},
	{"Sqrt", (*expression).sqrt},
	{"Rsqrt", func(e *expression, x *val) *val { return e.div(e.c(1), e.sqrt(x)) }},
	{"Recip", func(e *expression, x *val) *val { return e.div(e.c(1), x) }},
	{"Exp", (*expression).exp},
	{"Expm1", (*expression).expm1},
	{"Log", (*expression).log},
	{"Log1p", (*expression).log1p},
	{"Tanh", (*expression).tanh},
	{"Erf", (*expression).erf},
	{"Sigmoid", (*expression).sigmoid},
	{"Sin", func(e *expression, x *val) *val { return e.trig(x, 0) }},
	{"Cos", func(e *expression, x *val) *val { return e.trig(x, 1) }},
	{"Floor", func(e *expression, x *val) *val { return e.round(x, down) }},
	{"Ceil", func(e *expression, x *val) *val { return e.round(x, up) }},
	{"Trunc", func(e *expression, x *val) *val { return e.round(x, toZero) }},
	{"RoundEven", func(e *expression, x *val) *val { return e.round(x, even) }},
	{"Sign", (*expression).sign},
	{"Relu", func(e *expression, x *val) *val { return e.sel(e.cmp(cmpLt, x, e.c(0)), e.c(0), x) }},
	{"Silu", (*expression).silu},
	{"GeluTanh", (*expression).geluTanh},
	{"GeluErf", (*expression).geluErf},
	{"DSilu", (*expression).dSilu},
	{"DGeluTanh", (*expression).dGeluTanh},
	{"DGeluErf", (*expression).dGeluErf},
	{"RoundBF16", (*expression).roundBF16},
}

type binaryOp struct {
	name string
	f    func(e *expression, x, y *val) *val
}

var binaryOps = []binaryOp{
	{"Add", (*expression).add},
	{"Sub", (*expression).sub},
	{"Mul", (*expression).mul},
	{"Div", (*expression).div},
	{"Max", (*expression).maximum},
	{"Min", (*expression).minimum},
	{"CopySign", (*expression).copySign},
}

func intBinary(op opcode) func(e *expression, x, y *val) *val {
	return func(e *expression, x, y *val) *val { return e.intOp(op, x, y) }
}

var intOps = []binaryOp{
	{"AddI", intBinary(opAddI)},
	{"SubI", intBinary(opSubI)},
	{"MulI", intBinary(opMulI)},
	{"MaxI", intBinary(opMaxI)},
	{"MinI", intBinary(opMinI)},
	{"AndI", intBinary(opAnd)},
	{"OrI", intBinary(opOr)},
	{"XorI", intBinary(opXor)},
}

func compare(p int) func(e *expression, x, y *val) *val {
	return func(e *expression, x, y *val) *val { return e.maskBits(e.cmp(p, x, y)) }
}

// compareI makes a comparison of integers from > and ==, swapped or negated.
func compareI(p int, swap, not bool) func(e *expression, x, y *val) *val {
	return func(e *expression, x, y *val) *val {
		if swap {
			x, y = y, x
		}
		m := e.maskBits(e.cmpI(p, x, y))
		if not {
			m = e.intOp(opXor, m, e.i(0xffffffff))
		}
		return m
	}
}

var compareOps = []binaryOp{
	{"Eq", compare(cmpEq)},
	{"Ne", compare(cmpNe)},
	{"Lt", compare(cmpLt)},
	{"Le", compare(cmpLe)},
	{"Gt", compare(cmpGt)},
	{"Ge", compare(cmpGe)},
}

var compareIntOps = []binaryOp{
	{"Eq", compareI(cmpEq, false, false)},
	{"Ne", compareI(cmpEq, false, true)},
	{"Lt", compareI(cmpGt, true, false)},
	{"Le", compareI(cmpGt, false, true)},
	{"Gt", compareI(cmpGt, false, false)},
	{"Ge", compareI(cmpGt, true, true)},
}

// A group is a family of loops of one signature, held in one array of the table.
type group struct {
	field string // of opTable
	typ   string // of its functions
	keys  []string
	loops []*loop
}

func (g *group) add(key string, l *loop) {
	g.keys, g.loops = append(g.keys, key), append(g.loops, l)
}

func lower(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// groups is all the loops.
func groups() []*group {
	unary := &group{field: "unary"}
	for _, o := range unaryOps {
		unary.add(o.name, &loop{name: lower(o.name), doc: "dst = " + o.name + "(x)",
			ins: []param{vec("x")}, outs: []param{vec("dst")}, body: one(o.f)})
	}
	all := []*group{unary}
	all = append(all, binaryGroups("binary", "", binaryOps, floatLane, floatLane)...)
	all = append(all, binaryGroups("int", "Int", intOps, intLane, intLane)...)
	all = append(all, binaryGroups("compare", "Float", compareOps, floatLane, intLane)...)
	all = append(all, binaryGroups("compareInt", "Int", compareIntOps, intLane, intLane)...)
	return append(all, singles()...)
}

// binaryGroups are the forms of binary operations: both operands blocks (VV), or
// one of them a scalar (VS, SV). Integer operations need no SV: all commute but
// subtraction and comparisons, which can be written the other way round.
func binaryGroups(field, suffix string, ops []binaryOp, in, out kind) []*group {
	forms := []string{"VV", "VS", "SV"}
	if in == intLane || out == intLane {
		forms = forms[:2]
	}
	var all []*group
	for _, form := range forms {
		g := &group{field: field + form}
		for _, o := range ops {
			x, y := param{name: "x", kind: in}, param{name: "y", kind: in}
			x.scalar, y.scalar = form[0] == 'S', form[1] == 'S'
			g.add(o.name, &loop{name: lower(o.name) + suffix + form, doc: "dst = " + o.name + "(x, y)",
				ins: []param{x, y}, outs: []param{{name: "dst", kind: out}}, body: two(o.f)})
		}
		all = append(all, g)
	}
	return all
}

// singles are the loops of which there is one of a kind.
func singles() []*group {
	var all []*group
	single := func(name, doc string, outs, ins []param, body func(*expression, []*val) []*val) {
		g := &group{field: name}
		g.add("", &loop{name: name, doc: doc, ins: ins, outs: outs, body: body})
		all = append(all, g)
	}
	dst, idst := []param{vec("dst")}, []param{ivec("dst")}
	fma := func(e *expression, in []*val) []*val { return []*val{e.fma(in[0], in[1], in[2])} }
	single("fmaVVV", "dst = x*y + z", dst, []param{vec("x"), vec("y"), vec("z")}, fma)
	single("fmaVSV", "dst = x*y + z", dst, []param{vec("x"), scalar("y"), vec("z")}, fma)
	single("fmaVVS", "dst = x*y + z", dst, []param{vec("x"), vec("y"), scalar("z")}, fma)
	single("fmaVSS", "dst = x*y + z", dst, []param{vec("x"), scalar("y"), scalar("z")}, fma)
	sel := func(e *expression, in []*val) []*val { return []*val{e.sel(e.bitsMask(in[0]), in[1], in[2])} }
	single("selectVV", "dst = mask ? x : y", dst, []param{ivec("mask"), vec("x"), vec("y")}, sel)
	single("selectVS", "dst = mask ? x : y", dst, []param{ivec("mask"), vec("x"), scalar("y")}, sel)
	single("selectSV", "dst = mask ? x : y", dst, []param{ivec("mask"), scalar("x"), vec("y")}, sel)
	single("selectSS", "dst = mask ? x : y", dst, []param{ivec("mask"), scalar("x"), scalar("y")}, sel)
	single("fill", "dst = s", idst, []param{iscalar("s")}, func(_ *expression, in []*val) []*val { return in })
	single("toI32", "dst = x, towards zero", idst, []param{vec("x")}, one((*expression).truncInt))
	single("fromI32", "dst = x", dst, []param{ivec("x")}, one((*expression).toFloat))
	single("maskToFloat", "dst = mask ? 1 : 0", dst, []param{ivec("mask")}, one(func(e *expression, m *val) *val {
		return e.asFloat(e.intOp(opAnd, m, e.i(0x3f800000)))
	}))
	single("uniform", "dst = the upper 24 bits of x, times 2^-24", dst, []param{ivec("x")}, one(func(e *expression, x *val) *val {
		return e.mul(e.toFloat(e.shr(x, 8)), e.c(0x1p-24))
	}))
	adamw := func(name string, decays bool) {
		ins := []param{vec("p"), vec("m"), vec("v"), vec("grad"), scalar("gradScale"), scalar("keep1"), scalar("take1"),
			scalar("keep2"), scalar("take2"), scalar("root"), scalar("eps"), scalar("step")}
		if decays {
			ins = append(ins, scalar("decay"))
		}
		single(name, "one step of AdamW", []param{vec("newP"), vec("newM"), vec("newV")}, ins,
			func(e *expression, in []*val) []*val { return adamW(e, in) })
	}
	adamw("adamW", false)
	adamw("adamWDecay", true)
	return all
}

// adamW is algorithm 2 of Loshchilov and Hutter's "Decoupled weight decay regularization" (2019), with what doesn't depend on
// the element computed beforehand:
//
//	g' = gradScale g; m' = keep1 m + take1 g'; v' = keep2 v + take2 g'^2
//	p' = p - decay p - step m' / (root sqrt(v') + eps)
//
// The last terms of a sum are added in one rounding, as the operations that this takes the place of do.
func adamW(e *expression, in []*val) []*val {
	p, m, v, g, gradScale, keep1, take1, keep2, take2, root, eps, step := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8], in[9], in[10], in[11]
	g = e.mul(g, gradScale)
	m = e.fma(m, keep1, e.mul(g, take1))
	v = e.fma(v, keep2, e.mul(e.mul(g, g), take2))
	if len(in) > 12 {
		p = e.fnma(p, in[12], p)
	}
	p = e.fnma(e.div(m, e.fma(e.sqrt(v), root, eps)), step, p)
	return []*val{p, m, v}
}

func elementwiseUnit(a *asm) {
	laneMasks(a)
	for _, g := range groups() {
		for _, l := range g.loops {
			for _, isa := range []vectorISA{avx512, avx2} {
				l.assemble(a, isa)
			}
		}
	}
}

// table writes the function that returns an instruction set's loops.
func table(suffix string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "// ops%s is the element-wise loops of one instruction set.\nfunc ops%s() opTable {\n\treturn opTable{\n", suffix, suffix)
	for _, g := range groups() {
		if g.keys[0] == "" {
			fmt.Fprintf(&s, "\t\t%s: %s%s,\n", g.field, g.loops[0].name, suffix)
			continue
		}
		typ, size := opType(g)
		fmt.Fprintf(&s, "\t\t%s: [%s]%s{\n", g.field, size, typ)
		for i, l := range g.loops {
			fmt.Fprintf(&s, "\t\t\t%s: %s%s,\n", g.keys[i], l.name, suffix)
		}
		fmt.Fprintf(&s, "\t\t},\n")
	}
	fmt.Fprintf(&s, "\t}\n}\n\n")
	return s.String()
}

func opType(g *group) (typ, size string) {
	sizes := map[string]string{"una": "numUnary", "bin": "numBinary", "int": "numInt", "com": "numCompare"}
	return g.loops[0].signature(), sizes[g.field[:3]]
}

// opTableType declares the struct that the tables fill.
func opTableType() string {
	var s strings.Builder
	s.WriteString("// An opTable holds the element-wise loops of one instruction set.\ntype opTable struct {\n")
	for _, g := range groups() {
		typ, size := opType(g)
		if g.keys[0] == "" {
			fmt.Fprintf(&s, "\t%s %s // %s\n", g.field, typ, g.loops[0].doc)
			continue
		}
		fmt.Fprintf(&s, "\t%s [%s]%s\n", g.field, size, typ)
	}
	s.WriteString("}\n\n")
	return s.String()
}

const generated = "// Code generated by internal/asmgen. DO NOT EDIT.\n\npackage prim\n\n"

// writeGo writes the portable loops and the tables.
func writeGo(files map[string][]byte) error {
	g := &goWriter{}
	g.printf("%simport (\n\t\"math\"\n\t\"unsafe\"\n)\n\n", generated)
	g.printf("%s%s", opTableType(), table("Go"))
	for _, group := range groups() {
		for _, l := range group.loops {
			g.function(l)
		}
	}
	for _, r := range reductions {
		g.writeReduction(r)
	}
	for name, text := range map[string]string{
		"elementwise_go.go":        g.text.String(),
		"elementwise_tab_amd64.go": generated + table("AVX512") + table("AVX2"),
	} {
		src, err := format.Source([]byte(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files[name] = src
	}
	return nil
}
