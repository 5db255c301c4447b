package ptx

import (
	"fmt"
	"strings"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// result gives an operation's only result a register.
func (p *printer) result(op *ir.Op) string { return p.fresh(op.Result(0))[0] }

// guard is "@%p1 " where the optional operand i, a predicate, is there.
func (p *printer) guard(op *ir.Op, i int) string {
	if op.NumOperands() <= i {
		return ""
	}
	return "@" + p.inRegister(op.Operand(i), 0) + " "
}

// at is a memory operand: [register+offset].
func (p *printer) at(op *ir.Op, i int, offset string) string {
	base := p.inRegister(op.Operand(i), 0)
	if n := op.Attrs().IntOr(offset, 0); n != 0 {
		return fmt.Sprintf("[%s+%d]", base, n)
	}
	return "[" + base + "]"
}

func option(op *ir.Op, name, text string) string {
	if op.Attrs().Bool(name) {
		return text
	}
	return ""
}

func dotted(s string) string {
	if s == "" {
		return ""
	}
	return "." + s
}

// listed is a list of registers in braces, also of one.
func listed(names []string) string { return "{" + strings.Join(names, ", ") + "}" }

func (p *printer) list(v *ir.Value) string {
	names := make([]string, ptx.Registers(v.Type()))
	for i := range names {
		names[i] = p.inRegister(v, i)
	}
	return listed(names)
}

// accessType is ".v4" and ".b32" for what is moved.
func accessType(v *ir.Value) (vec, typ string) {
	if n := ptx.Registers(v.Type()); n > 1 {
		vec = fmt.Sprintf(".v%d", n)
	}
	class, _ := class(ir.Elem(v.Type()))
	return vec, class
}

func (p *printer) load(op *ir.Op) {
	vec, t := accessType(op.Result(0))
	cache := op.Attrs().Str("cache")
	where := op.Attrs().Str("space") + dotted(cache)
	names := p.fresh(op.Result(0))
	if op.NumOperands() > 1 {
		for _, n := range names {
			p.move(ir.Elem(op.Result(0).Type()), n, zero(t))
		}
	}
	p.line("%sld.%s%s%s %s, %s;", p.guard(op, 1), where, vec, t, braces(names), p.at(op, 0, "offset"))
}

// zero is the immediate 0 of a PTX class.
func zero(class string) string {
	switch class {
	case ".f32":
		return "0f00000000"
	case ".f64":
		return "0d0000000000000000"
	}
	return "0"
}

func (p *printer) compare(op *ir.Op) {
	t := op.Operand(0).Type()
	is, typ := op.Attrs().Str("is"), "s"
	switch {
	case ir.IsFloat(t):
		typ = "f"
		if is == "ne" {
			is = "neu" // NaN differs from everything
		}
	case is == "lo" || is == "ls" || is == "hi" || is == "hs":
		typ = "u"
	}
	p.line("setp.%s.%s%d %s, %s, %s;", is, typ, ptx.Width(t), p.result(op), p.operand(op.Operand(0)), p.operand(op.Operand(1)))
}

func (p *printer) convert(op *ir.Op) {
	from, to := op.Operand(0).Type(), op.Result(0).Type()
	x := p.operand(op.Operand(0))
	if op.Attrs().Bool("tf32") {
		bits := p.temporary(&ir.IntegerType{Width: 32})
		p.line("cvt.rna.tf32.f32 %s, %s;", bits, x)
		p.line("mov.b32 %s, %s;", p.result(op), bits)
		return
	}
	signed := op.Attrs().Bool("signed")
	round := ""
	switch fromFloat, toFloat := ir.IsFloat(from), ir.IsFloat(to); {
	case !fromFloat && toFloat, fromFloat && toFloat && ptx.Width(to) < ptx.Width(from):
		round = ".rn"
	case fromFloat && !toFloat:
		round = ".rzi"
	}
	p.line("cvt%s.%s.%s %s, %s;", round, numberType(to, signed), numberType(from, signed), p.result(op), x)
}

func numberType(t ir.Type, signed bool) string {
	if f, ok := t.(*ir.FloatType); ok {
		return f.String()
	}
	if signed {
		return fmt.Sprintf("s%d", ptx.Width(t))
	}
	return fmt.Sprintf("u%d", ptx.Width(t))
}

func (p *printer) mma(op *ir.Op) {
	d := listed(p.inPlace(op.Result(0), op, 2))
	f := op.Attrs().Str("format")
	p.line("mma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32 %s, %s, %s, %s;", ptx.Depth(f), f, f, d, p.list(op.Operand(0)), p.list(op.Operand(1)), d)
}

func (p *printer) wgmma(op *ir.Op) {
	d := p.inPlace(op.Result(0), op, 2)
	f := op.Attrs().Str("format")
	a, majors := "", ""
	switch inRegisters := ptx.Registers(op.Operand(0).Type()) > 1; {
	case inRegisters && f != "tf32":
		majors = ", " + digit(op, "tb")
		fallthrough
	case inRegisters:
		a = p.list(op.Operand(0))
	case f != "tf32":
		majors = fmt.Sprintf(", %s, %s", digit(op, "ta"), digit(op, "tb"))
		fallthrough
	default:
		a = p.inRegister(op.Operand(0), 0)
	}
	p.line("wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s %s, %s, %s, %s, 1, 1%s;", 2*len(d), ptx.Depth(f), f, f,
		listed(d), a, p.inRegister(op.Operand(1), 0), p.operand(op.Operand(3)), majors)
}

func digit(op *ir.Op, name string) string {
	if op.Attrs().Bool(name) {
		return "1"
	}
	return "0"
}

// outerFMA goes through the rows there and back, so that of two neighbours' three operands one is the same register in the same
// place: the machine reads it once.
func (p *printer) outerFMA(op *ir.Op) {
	a, b := op.Operand(0), op.Operand(1)
	d, n := p.inPlace(op.Result(0), op, 2), ptx.Registers(b.Type())
	for i := range len(d) / n {
		for j := range n {
			if i%2 == 1 {
				j = n - 1 - j
			}
			p.line("fma.rn.f32 %s, %s, %s, %s;", d[i*n+j], p.operandAt(a, i), p.operandAt(b, j), d[i*n+j])
		}
	}
}

func (p *printer) addScaled(op *ir.Op) {
	x, words := op.Operand(1), op.Operands()[4:]
	d := p.inPlace(op.Result(0), op, 0)
	rows := []string{p.operand(op.Operand(2)), p.operand(op.Operand(3))}
	for column := range 4 * len(words) {
		bits, factor := p.temporary(words[0].Type()), p.temporary(ir.Elem(x.Type()))
		p.line("prmt.b32 %s, %s, 0, 0x%d444;", bits, p.operand(words[column/4]), column%4)
		p.line("mov.b32 %s, %s;", factor, bits)
		for half, row := range rows {
			i := column/2*4 + 2*half + column%2
			scaled := p.temporary(ir.Elem(x.Type()))
			p.line("mul.rn.f32 %s, %s, %s;", scaled, p.operandAt(x, i), factor)
			p.line("fma.rn.f32 %s, %s, %s, %s;", d[i], scaled, row, d[i])
		}
	}
}

func (p *printer) tmaLoad(op *ir.Op) {
	at := op.OperandGroup(3)
	multicast, mask := "", ""
	if m := op.OperandGroup(4); len(m) > 0 {
		multicast, mask = ".multicast::cluster", ", "+p.inRegister(m[0], 0)
	}
	p.line("cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes%s %s, %s, %s%s;", len(at), multicast,
		p.at(op, 1, "offset"), p.box(op.Operand(0), at), p.at(op, 2, "barrier_offset"), mask)
}

func (p *printer) tmaStore(op *ir.Op) {
	at := op.Operands()[2:]
	p.line("cp.async.bulk.tensor.%dd.global.shared::cta.bulk_group %s, %s;", len(at), p.box(op.Operand(0), at), p.at(op, 1, "offset"))
}

func (p *printer) box(m *ir.Value, at []*ir.Value) string {
	coordinates := make([]string, len(at))
	for i, v := range at {
		coordinates[i] = p.inRegister(v, 0)
	}
	return fmt.Sprintf("[%s, {%s}]", p.operand(m), strings.Join(coordinates, ", "))
}

func (p *printer) barrier(what string, op *ir.Op) {
	id := fmt.Sprint(op.Attrs().IntOr("id", 0))
	if op.NumOperands() > 0 {
		id = p.operand(op.Operand(0))
		if n := op.Attrs().IntOr("id", 0); n != 0 {
			sum := p.temporary(op.Operand(0).Type())
			p.line("add.s32 %s, %s, %d;", sum, id, n)
			id = sum
		}
	}
	if n := op.Attrs().IntOr("threads", 0); n > 0 {
		p.line("bar.%s %s, %d;", what, id, n)
	} else {
		p.line("bar.%s %s;", what, id)
	}
}
