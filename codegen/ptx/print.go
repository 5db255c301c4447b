// Package ptx prints kernels of the ptx dialect as PTX text. It assigns registers and labels and writes one instruction
// for each operation; it decides nothing else, so that the text reads beside the kernel's dump: value %12 is register
// %r12 (%v12_0 and on for a vector), argument %arg3 is %ra3, unless the value shares the registers of the one it was
// made from in place. Where regions side by side use a number twice, the later register is %r12n1.
//
// The text is the same for the same kernel. The room knows nothing of how kernels are made or run.
package ptx

import (
	"bytes"
	"fmt"
	"strings"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Version is the PTX version that is written: the first with all that is used.
const Version = "8.0"

// Print writes a kernel, which must verify, as a PTX module of its own.
func Print(kernel *ir.Op) ([]byte, error) {
	if !kernel.Is(ptx.Kernel) {
		return nil, kernel.Errorf("%s is no ptx.kernel", kernel.Name())
	}
	p := &printer{regs: map[*ir.Value]registers{}, valueName: ir.Names(kernel), taken: map[string]int{}, indent: 1}
	name := ptx.EntryName(kernel)
	if err := p.parameters(name, kernel.Body().Args()); err != nil {
		return nil, err
	}
	if err := p.block(kernel.Body()); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	attrs := kernel.Attrs()
	fmt.Fprintf(&out, ".version %s\n.target %s\n.address_size 64\n\n", Version, attrs.Str("target"))
	if attrs.IntOr("shared", 0) > 0 {
		fmt.Fprintf(&out, ".extern .shared .align 1024 .b8 %s[];\n\n", sharedName)
	}
	fmt.Fprintf(&out, ".visible .entry %s(%s)\n", name, signature(name, kernel.Body().Args()))
	threads, _ := attrs.Int("threads")
	fmt.Fprintf(&out, ".maxntid %d, 1, 1\n", threads)
	if n := attrs.IntOr("blocks_per_sm", 0); n > 0 {
		fmt.Fprintf(&out, ".minnctapersm %d\n", n)
	}
	if n := attrs.IntOr("cluster", 1); n > 1 {
		fmt.Fprintf(&out, ".reqnctapercluster %d, 1, 1\n", n)
	}
	out.WriteString("{\n")
	p.declare(&out)
	out.Write(p.out.Bytes())
	out.WriteString("}\n")
	return out.Bytes(), nil
}

const sharedName = "shared_memory"

func signature(name string, params []*ir.Value) string {
	var lines []string
	for i, v := range params {
		typ := ".param " + storage(v.Type())
		if ptx.IsTensorMap(v.Type()) {
			typ = ".param .align 64 .b8"
		}
		line := fmt.Sprintf("\n    %s %s_%d", typ, name, i)
		if ptx.IsTensorMap(v.Type()) {
			line += "[128]"
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, ",") + "\n"
}

// storage is the type a parameter is declared with.
func storage(t ir.Type) string {
	if ir.IsFloat(t) {
		return ".f32"
	}
	return fmt.Sprintf(".u%d", ptx.Width(t))
}

// registers are the names of a value's registers. Owned ones belong to that value alone, so that an instruction may
// work on them in place.
type registers struct {
	names []string
	owned bool
}

type printer struct {
	out       bytes.Buffer
	indent    int
	regs      map[*ir.Value]registers
	valueName func(*ir.Value) string
	taken     map[string]int // how often a name was asked for: regions side by side number their values alike
	decls     []declaration
	labels    int
	temps     int
	loc       *ir.Location
}

// declaration is one register, or n of them under names with numbers.
type declaration struct {
	class, name string
	n           int
}

func (p *printer) line(format string, args ...any) {
	for range p.indent {
		p.out.WriteString("    ")
	}
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

func (p *printer) label(name string) { fmt.Fprintf(&p.out, "%s:\n", name) }

func (p *printer) newLabel(what string) string {
	p.labels++
	return fmt.Sprintf("$%s_%d", what, p.labels)
}

// declare writes the declarations of all registers, those of one class together.
func (p *printer) declare(out *bytes.Buffer) {
	for _, class := range []string{".pred", ".b16", ".b32", ".b64", ".f32", ".f64"} {
		var names []string
		flush := func() {
			if len(names) > 0 {
				fmt.Fprintf(out, "    .reg %s %s;\n", class, strings.Join(names, ", "))
			}
			names = nil
		}
		for _, d := range p.decls {
			if d.class != class {
				continue
			}
			name := d.name
			if d.n > 0 {
				name = fmt.Sprintf("%s<%d>", d.name, d.n)
			}
			if names = append(names, name); len(names) == 12 {
				flush()
			}
		}
		flush()
	}
}

// class is the PTX class of a scalar register and the letter its names start with.
func class(t ir.Type) (class, letter string) {
	if f, ok := t.(*ir.FloatType); ok {
		switch f.Kind {
		case ir.F32:
			return ".f32", "f"
		case ir.F64:
			return ".f64", "d"
		}
		return ".b16", "h"
	}
	switch ptx.Width(t) {
	case 1:
		return ".pred", "p"
	case 16:
		return ".b16", "h"
	case 32:
		return ".b32", "r"
	}
	return ".b64", "l"
}

// suffix is what distinguishes a value in names: 12 for %12, 5_1 for %5#1, a3 for %arg3.
func (p *printer) suffix(v *ir.Value) string {
	s := strings.TrimPrefix(p.valueName(v), "%")
	if rest, ok := strings.CutPrefix(s, "arg"); ok {
		return "a" + rest
	}
	return strings.ReplaceAll(s, "#", "_")
}

// fresh gives a value registers of its own.
func (p *printer) fresh(v *ir.Value) []string {
	t := v.Type()
	names := p.named(t, p.suffix(v))
	p.regs[v] = registers{names, true}
	return names
}

func (p *printer) named(t ir.Type, suffix string) []string {
	class, letter := class(ir.Elem(t))
	vec, ok := t.(*ir.VectorType)
	if ok {
		letter = "v"
	}
	if n := p.taken[letter+suffix]; n > 0 {
		p.taken[letter+suffix]++
		suffix += fmt.Sprintf("n%d", n)
	}
	p.taken[letter+suffix] = 1
	if !ok {
		name := "%" + letter + suffix
		p.decls = append(p.decls, declaration{class, name, 0})
		return []string{name}
	}
	base := "%v" + suffix + "_"
	p.decls = append(p.decls, declaration{class, base, int(vec.Shape[0])})
	names := make([]string, vec.Shape[0])
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", base, i)
	}
	return names
}

// temporary is a register that no value has.
func (p *printer) temporary(t ir.Type) string {
	p.temps++
	return p.named(t, fmt.Sprintf("t%d", p.temps))[0]
}

// inPlace gives v the registers of operand i of its operation, or copies of them where they may be needed afterwards.
func (p *printer) inPlace(v *ir.Value, op *ir.Op, i int) []string {
	from := op.Operand(i)
	r := p.regs[from]
	if r.owned && from.HasOneUse() && from.Block() == op.Block() {
		p.regs[v] = r
		return r.names
	}
	names := p.fresh(v)
	if from.DefinedBy(ptx.Undef) {
		return names
	}
	for j, n := range names {
		p.move(ir.Elem(v.Type()), n, p.operandAt(from, j))
	}
	return names
}

func (p *printer) move(t ir.Type, to, from string) {
	class, _ := class(t)
	switch {
	case class == ".pred" && (from == "0" || from == "1"):
		p.line("setp.ne.s32 %s, %s, 0;", to, from)
	case class == ".pred":
		p.line("mov.pred %s, %s;", to, from)
	default:
		p.line("mov%s %s, %s;", class, to, from)
	}
}

// operand is a scalar operand: a register or an immediate.
func (p *printer) operand(v *ir.Value) string { return p.operandAt(v, 0) }

func (p *printer) operandAt(v *ir.Value, i int) string {
	if v.DefinedBy(ptx.Const) {
		return immediate(v.Op().Attr("value"))
	}
	return p.regs[v].names[i]
}

// immediate writes integers in decimal and floating-point numbers by their bits.
func immediate(a ir.Attr) string {
	switch a := a.(type) {
	case *ir.IntegerAttr:
		if ptx.Width(a.Type) == 1 {
			return fmt.Sprint(a.Value & 1)
		}
		return fmt.Sprint(a.Value)
	case *ir.FloatAttr:
		raw := ir.EncodeElement(nil, a.Type, a.Value)
		prefix := map[int]string{2: "0x", 4: "0f", 8: "0d"}[len(raw)]
		s := prefix
		for i := len(raw) - 1; i >= 0; i-- {
			s += fmt.Sprintf("%02X", raw[i])
		}
		return s
	}
	panic("ptx: immediate " + a.String())
}

// inRegister is a scalar operand for places where no immediate may stand.
func (p *printer) inRegister(v *ir.Value, i int) string {
	if !v.DefinedBy(ptx.Const) {
		return p.regs[v].names[i]
	}
	t := p.temporary(v.Type())
	p.move(v.Type(), t, p.operand(v))
	return t
}

// braced is a vector operand: {%v3_0, %v3_1}, or the register alone for a scalar.
func (p *printer) braced(v *ir.Value) string {
	names := make([]string, ptx.Registers(v.Type()))
	for i := range names {
		names[i] = p.inRegister(v, i)
	}
	return braces(names)
}

func braces(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return "{" + strings.Join(names, ", ") + "}"
}
