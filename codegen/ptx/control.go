package ptx

import (
	"fmt"
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// parameters gives each parameter of the kernel its registers.
func (p *printer) parameters(kernel string, params []*ir.Value) error {
	for i, v := range params {
		if v.Unused() {
			continue
		}
		param := fmt.Sprintf("%s_%d", kernel, i)
		if ptx.IsTensorMap(v.Type()) {
			name := "%l" + p.suffix(v)
			p.decls = append(p.decls, declaration{".b64", name, 0})
			p.regs[v] = registers{[]string{name}, false}
			p.line("mov.b64 %s, %s;", name, param)
			p.line("cvta.param.u64 %s, %s;", name, name)
			continue
		}
		r := p.fresh(v)
		p.regs[v] = registers{r, false}
		p.line("ld.param%s %s, [%s];", storage(v.Type()), r[0], param)
	}
	return nil
}

// block writes the operations of a block, but not its ptx.yield.
func (p *printer) block(b *ir.Block) error {
	for op := range b.Ops() {
		if op.Is(ptx.Yield) {
			return nil
		}
		p.location(op.Loc())
		if err := p.op(op); err != nil {
			return err
		}
	}
	return nil
}

// location writes where the following instructions come from, when that changes.
func (p *printer) location(l *ir.Location) {
	s := l.Source()
	if s == nil || s == p.loc {
		return
	}
	p.loc = s
	p.line("// %s:%d:%d", s.File, s.Line, s.Col)
}

func branch(op *ir.Op) string {
	if op.Attrs().Bool("uniform") {
		return "bra.uni"
	}
	return "bra"
}

// loop writes a ptx.for with its test at the end, and one before it where the loop may run no iteration.
func (p *printer) loop(op *ir.Op) error {
	body := op.Body()
	for i := range op.NumResults() {
		p.carry(op, i)
	}
	index := p.fresh(body.Arg(0))[0]
	p.regs[body.Arg(0)] = registers{[]string{index}, false}
	lower, upper, step := op.Operand(0), op.Operand(1), op.Operand(2)
	p.line("mov.b32 %s, %s;", index, p.operand(lower))
	begin, end, test := p.newLabel("loop"), p.newLabel("end"), p.temporary(predicate)
	if l, ok := ptx.ConstInt(lower); !ok || !constLess(l, upper) {
		p.line("setp.ge.s32 %s, %s, %s;", test, index, p.operand(upper))
		p.line("@%s %s %s;", test, branch(op), end)
	}
	p.label(begin)
	if !op.Attrs().Bool("unroll") {
		p.line(`.pragma "nounroll";`)
	}
	p.indent++
	if err := p.block(body); err != nil {
		return err
	}
	p.yield(body.Last(), body.Args()[1:])
	p.indent--
	p.line("add.s32 %s, %s, %s;", index, index, p.operand(step))
	p.line("setp.lt.s32 %s, %s, %s;", test, index, p.operand(upper))
	p.line("@%s %s %s;", test, branch(op), begin)
	p.label(end)
	return nil
}

// predicate is a type for names only: it is of no context.
var predicate = &ir.IntegerType{Width: 1}

func constLess(l int64, upper *ir.Value) bool {
	u, ok := ptx.ConstInt(upper)
	return ok && l < u
}

// carry gives a carried value of a loop its registers: those of the initial value where that isn't used otherwise.
func (p *printer) carry(op *ir.Op, i int) {
	arg := op.Body().Arg(i + 1)
	from := op.Operand(i + 3)
	if r := p.regs[from]; r.owned && from.HasOneUse() && from.Block() == op.Block() {
		p.regs[arg] = r
	} else {
		names := p.fresh(arg)
		for j, n := range names {
			if !from.DefinedBy(ptx.Undef) {
				p.move(ir.Elem(arg.Type()), n, p.operandAt(from, j))
			}
		}
	}
	p.regs[op.Result(i)] = p.regs[arg]
}

// yield moves the values a body gives to where they are carried.
func (p *printer) yield(op *ir.Op, to []*ir.Value) {
	var moves []move
	for i, v := range to {
		for j, name := range p.regs[v].names {
			if from := p.operandAt(op.Operand(i), j); from != name {
				moves = append(moves, move{ir.Elem(v.Type()), name, from})
			}
		}
	}
	p.parallel(moves)
}

type move struct {
	typ      ir.Type
	to, from string
}

// parallel writes moves as if all were done at once: none overwrites a register that another still reads.
func (p *printer) parallel(moves []move) {
	for len(moves) > 0 {
		free := slices.IndexFunc(moves, func(m move) bool {
			return !slices.ContainsFunc(moves, func(o move) bool { return o.from == m.to })
		})
		if free < 0 { // only cycles are left: break one
			free = 0
			saved := p.temporary(moves[0].typ)
			p.move(moves[0].typ, saved, moves[0].to)
			for i := range moves {
				if moves[i].from == moves[0].to {
					moves[i].from = saved
				}
			}
		}
		p.move(moves[free].typ, moves[free].to, moves[free].from)
		moves = slices.Delete(moves, free, free+1)
	}
}

func (p *printer) branchOp(op *ir.Op) error {
	for _, r := range op.Results() {
		p.fresh(r)
	}
	condition := p.inRegister(op.Operand(0), 0)
	otherwise, end := p.newLabel("else"), p.newLabel("endif")
	p.line("@!%s %s %s;", condition, branch(op), otherwise)
	p.indent++
	if err := p.arm(op, op.Region(0).First()); err != nil {
		return err
	}
	second := op.Region(1).First()
	if second != nil {
		p.line("bra%s %s;", map[bool]string{true: ".uni"}[op.Attrs().Bool("uniform")], end)
	}
	p.indent--
	p.label(otherwise)
	if second == nil {
		return nil
	}
	p.indent++
	if err := p.arm(op, second); err != nil {
		return err
	}
	p.indent--
	p.label(end)
	return nil
}

func (p *printer) arm(op *ir.Op, b *ir.Block) error {
	if err := p.block(b); err != nil {
		return err
	}
	p.yield(b.Last(), op.Results())
	return nil
}
