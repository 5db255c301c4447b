package ptx

import (
	"fmt"
	"strings"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// op writes one operation.
func (p *printer) op(op *ir.Op) error {
	switch {
	case writers[op.Def()] != nil:
		writers[op.Def()](p, op)
		return nil
	case mnemonics[op.Def()] != nil:
		return p.arithmetic(op)
	case op.Is(ptx.For):
		return p.loop(op)
	case op.Is(ptx.If):
		return p.branchOp(op)
	}
	return op.Errorf("%s: not an operation that PTX can be printed for", op.Name())
}

// mnemonics gives the instruction of an arithmetic operation by the kind of number it works on: i integers, f
// floating-point numbers, p predicates; # stands for the width.
var mnemonics = map[*ir.OpDef]map[byte]string{
	ptx.Add: {'i': "add.s#", 'f': "add.rn.f#"}, ptx.Sub: {'i': "sub.s#", 'f': "sub.rn.f#"}, ptx.Mul: {'i': "mul.lo.s#", 'f': "mul.rn.f#"},
	ptx.Min: {'i': "min.s#", 'f': "min.NaN.f#"}, ptx.Max: {'i': "max.s#", 'f': "max.NaN.f#"},
	ptx.Div: {'i': "div.u#", 'f': "div.rn.f#"}, ptx.Rem: {'i': "rem.u#"},
	ptx.And: {'i': "and.b#", 'p': "and.pred"}, ptx.Or: {'i': "or.b#", 'p': "or.pred"}, ptx.Xor: {'i': "xor.b#", 'p': "xor.pred"},
	ptx.Neg: {'i': "neg.s#", 'f': "neg.f#"}, ptx.Abs: {'i': "abs.s#", 'f': "abs.f#"}, ptx.Not: {'i': "not.b#", 'p': "not.pred"},
	ptx.Sqrt: {'f': "sqrt.rn.f#"}, ptx.Rcp: {'f': "rcp.approx.f#"},
	ptx.Exp2: {'f': "ex2.approx.f#"}, ptx.Log2: {'f': "lg2.approx.f#"}, ptx.Rsqrt: {'f': "rsqrt.approx.f#"},
	ptx.Tanh: {'f': "tanh.approx.f#"}, ptx.Sin: {'f': "sin.approx.f#"}, ptx.Cos: {'f': "cos.approx.f#"},
	ptx.RcpFlushed: {'f': "rcp.approx.ftz.f#"}, ptx.Exp2Flushed: {'f': "ex2.approx.ftz.f#"},
	ptx.FMASaturated: {'f': "fma.rn.sat.f#"},
	ptx.FMA:          {'i': "mad.lo.s#", 'f': "fma.rn.f#"}, ptx.Shl: {'i': "shl.b#"}, ptx.Shr: {'i': "shr.u#"},
}

// arithmetic writes an operation register by register; vectors are worked on in place.
func (p *printer) arithmetic(op *ir.Op) error {
	t := ir.Elem(op.Result(0).Type())
	kind := byte('i')
	switch {
	case ir.IsFloat(t):
		kind = 'f'
	case ptx.Width(t) == 1:
		kind = 'p'
	}
	m, ok := mnemonics[op.Def()][kind]
	if !ok {
		return op.Errorf("%s: no instruction for %s", op.Name(), t)
	}
	m = strings.ReplaceAll(m, "#", fmt.Sprint(ptx.Width(t)))
	var names []string
	if ptx.Registers(op.Result(0).Type()) > 1 {
		names = p.inPlace(op.Result(0), op, 0)
	} else {
		names = p.fresh(op.Result(0))
	}
	for i, n := range names {
		line := m + " " + n
		for j := range op.NumOperands() {
			line += ", " + p.operandOrOwn(op, j, i, names)
		}
		p.line("%s;", line)
	}
	return nil
}

// operandOrOwn is register i of operand j, which is the result's own where operand 0 was copied.
func (p *printer) operandOrOwn(op *ir.Op, j, i int, own []string) string {
	if j == 0 && len(own) > 1 {
		return own[i]
	}
	return p.operandAt(op.Operand(j), i)
}

// writers writes the other operations that hold no others.
var writers = map[*ir.OpDef]func(p *printer, op *ir.Op){
	ptx.Const: func(*printer, *ir.Op) {},
	ptx.Undef: func(p *printer, op *ir.Op) { p.fresh(op.Result(0)) },
	ptx.Fill: func(p *printer, op *ir.Op) {
		x := op.Operand(0)
		for _, n := range p.fresh(op.Result(0)) {
			p.move(x.Type(), n, p.operand(x))
		}
	},
	ptx.Copy: func(p *printer, op *ir.Op) {
		x := op.Operand(0)
		for i, n := range p.fresh(op.Result(0)) {
			p.move(ir.Elem(x.Type()), n, p.operandAt(x, i))
		}
	},
	ptx.Return: func(p *printer, _ *ir.Op) { p.line("ret;") },
	ptx.Special: func(p *printer, op *ir.Op) {
		class, _ := class(op.Result(0).Type())
		p.line("mov%s %s, %%%s;", strings.Replace(class, "b", "u", 1), p.result(op), op.Attrs().Str("register"))
	},
	ptx.SharedBase: func(p *printer, op *ir.Op) { p.line("mov.u32 %s, %s;", p.result(op), sharedName) },
	ptx.Extract: func(p *printer, op *ir.Op) {
		i, _ := op.Attrs().Int("index")
		p.regs[op.Result(0)] = registers{[]string{p.operandAt(op.Operand(0), int(i))}, false}
	},
	ptx.Vector: func(p *printer, op *ir.Op) {
		names := make([]string, op.NumOperands())
		for i := range names {
			names[i] = p.inRegister(op.Operand(i), 0)
		}
		p.regs[op.Result(0)] = registers{names, false}
	},
	ptx.MulWide: func(p *printer, op *ir.Op) {
		line := "mul.wide.u32 %s, %s, %s"
		args := []any{p.result(op), p.operand(op.Operand(0)), p.operand(op.Operand(1))}
		if op.NumOperands() == 3 {
			line = "mad.wide.u32 %s, %s, %s, %s"
			args = append(args, p.operand(op.Operand(2)))
		}
		p.line(line+";", args...)
	},
	ptx.Compare: func(p *printer, op *ir.Op) { p.compare(op) },
	ptx.Select: func(p *printer, op *ir.Op) {
		class, _ := class(op.Result(0).Type())
		r, pred := p.result(op), p.inRegister(op.Operand(0), 0)
		p.line("selp%s %s, %s, %s, %s;", class, r, p.operand(op.Operand(1)), p.operand(op.Operand(2)), pred)
	},
	ptx.Convert: func(p *printer, op *ir.Op) { p.convert(op) },
	ptx.Pack: func(p *printer, op *ir.Op) {
		p.line("cvt.rn.%sx2.f32 %s, %s, %s;", op.Attrs().Str("format"), p.result(op), p.operand(op.Operand(1)), p.operand(op.Operand(0)))
	},
	ptx.Bitcast: func(p *printer, op *ir.Op) {
		p.line("mov.b%d %s, %s;", ptx.Width(op.Result(0).Type()), p.result(op), p.operand(op.Operand(0)))
	},
	ptx.Join: func(p *printer, op *ir.Op) {
		low, high := p.inRegister(op.Operand(0), 0), p.inRegister(op.Operand(1), 0)
		p.line("mov.b%d %s, {%s, %s};", ptx.Width(op.Result(0).Type()), p.result(op), low, high)
	},
	ptx.Split: func(p *printer, op *ir.Op) {
		x := p.inRegister(op.Operand(0), 0)
		p.line("mov.b%d {%s, %s}, %s;", ptx.Width(op.Operand(0).Type()), p.fresh(op.Result(0))[0], p.fresh(op.Result(1))[0], x)
	},
	ptx.Load: func(p *printer, op *ir.Op) { p.load(op) },
	ptx.Store: func(p *printer, op *ir.Op) {
		vec, t := accessType(op.Operand(1))
		p.line("%sst.%s%s%s%s %s, %s;", p.guard(op, 2), op.Attrs().Str("space"), dotted(op.Attrs().Str("cache")), vec, t, p.at(op, 0, "offset"), p.braced(op.Operand(1)))
	},
	ptx.LoadByte: func(p *printer, op *ir.Op) {
		r := p.result(op)
		if op.NumOperands() > 1 {
			p.line("mov.b32 %s, 0;", r)
		}
		p.line("%sld.global.u8 %s, %s;", p.guard(op, 1), r, p.at(op, 0, "offset"))
	},
	ptx.StoreByte: func(p *printer, op *ir.Op) {
		p.line("%sst.global.u8 %s, %s;", p.guard(op, 2), p.at(op, 0, "offset"), p.inRegister(op.Operand(1), 0))
	},
	ptx.ReduceMin: func(p *printer, op *ir.Op) {
		p.line("%sred.global.min.u64 %s, %s;", p.guard(op, 2), p.at(op, 0, "offset"), p.inRegister(op.Operand(1), 0))
	},
	ptx.CopyAsync: func(p *printer, op *ir.Op) {
		n, _ := op.Attrs().Int("bytes")
		cache, count := "ca", ""
		if n == 16 {
			cache = "cg"
		}
		if op.NumOperands() == 3 {
			count = ", " + p.operand(op.Operand(2))
		}
		p.line("cp.async.%s.shared.global %s, %s, %d%s;", cache, p.at(op, 0, "offset"), p.at(op, 1, "from_offset"), n, count)
	},
	ptx.CopyCommit: func(p *printer, _ *ir.Op) { p.line("cp.async.commit_group;") },
	ptx.CopyWait:   func(p *printer, op *ir.Op) { p.line("cp.async.wait_group %d;", op.Attrs().IntOr("pending", 0)) },
	ptx.LoadMatrix: func(p *printer, op *ir.Op) {
		p.line("ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, %s;", ptx.Registers(op.Result(0).Type()), option(op, "trans", ".trans"),
			listed(p.fresh(op.Result(0))), p.at(op, 0, "offset"))
	},
	ptx.StoreMatrix: func(p *printer, op *ir.Op) {
		x := op.Operand(1)
		p.line("stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, %s;", ptx.Registers(x.Type()), option(op, "trans", ".trans"), p.at(op, 0, "offset"), p.list(x))
	},
	ptx.MMA:         func(p *printer, op *ir.Op) { p.mma(op) },
	ptx.WGMMA:       func(p *printer, op *ir.Op) { p.wgmma(op) },
	ptx.WGMMAFence:  func(p *printer, _ *ir.Op) { p.line("wgmma.fence.sync.aligned;") },
	ptx.WGMMACommit: func(p *printer, _ *ir.Op) { p.line("wgmma.commit_group.sync.aligned;") },
	ptx.WGMMAWait: func(p *printer, op *ir.Op) {
		for i, r := range op.Results() {
			p.inPlace(r, op, i)
		}
		p.line("wgmma.wait_group.sync.aligned %d;", op.Attrs().IntOr("pending", 0))
	},
	ptx.OuterFMA:  func(p *printer, op *ir.Op) { p.outerFMA(op) },
	ptx.AddScaled: func(p *printer, op *ir.Op) { p.addScaled(op) },
	ptx.BarrierInit: func(p *printer, op *ir.Op) {
		p.line("mbarrier.init.shared::cta.b64 %s, %d;", p.at(op, 0, "offset"), op.Attrs().IntOr("count", 0))
	},
	ptx.BarrierExpect: func(p *printer, op *ir.Op) {
		p.line("mbarrier.arrive.expect_tx.shared::cta.b64 _, %s, %d;", p.at(op, 0, "offset"), op.Attrs().IntOr("bytes", 0))
	},
	ptx.BarrierArrive: func(p *printer, op *ir.Op) {
		where := "shared::cta"
		if op.Attrs().Bool("cluster") {
			where = "shared::cluster"
		}
		p.line("%smbarrier.arrive.%s.b64 _, %s;", p.guard(op, 1), where, p.at(op, 0, "offset"))
	},
	ptx.BarrierWait: func(p *printer, op *ir.Op) {
		again, done := p.newLabel("wait"), p.temporary(predicate)
		p.label(again)
		p.line("mbarrier.try_wait.parity.shared::cta.b64 %s, %s, %s;", done, p.at(op, 0, "offset"), p.operand(op.Operand(1)))
		p.line("@!%s bra %s;", done, again)
	},
	ptx.TMALoad:   func(p *printer, op *ir.Op) { p.tmaLoad(op) },
	ptx.TMAStore:  func(p *printer, op *ir.Op) { p.tmaStore(op) },
	ptx.TMACommit: func(p *printer, _ *ir.Op) { p.line("cp.async.bulk.commit_group;") },
	ptx.TMAWait: func(p *printer, op *ir.Op) {
		p.line("cp.async.bulk.wait_group%s %d;", option(op, "read", ".read"), op.Attrs().IntOr("pending", 0))
	},
	ptx.PrefetchBulk: func(p *printer, op *ir.Op) {
		p.line("%scp.async.bulk.prefetch.L2.global [%s], %s;", p.guard(op, 2), p.inRegister(op.Operand(0), 0), p.operand(op.Operand(1)))
	},
	ptx.TMAPrefetch: func(p *printer, op *ir.Op) { p.line("prefetch.tensormap [%s];", p.operand(op.Operand(0))) },
	ptx.Sync:        func(p *printer, op *ir.Op) { p.barrier("sync", op) },
	ptx.Arrive:      func(p *printer, op *ir.Op) { p.barrier("arrive", op) },
	ptx.WarpSync:    func(p *printer, _ *ir.Op) { p.line("bar.warp.sync 0xffffffff;") },
	ptx.Fence: func(p *printer, op *ir.Op) {
		p.line("%s;", map[string]string{
			"mbarrier_init": "fence.mbarrier_init.release.cluster", "async": "fence.proxy.async.shared::cta",
			"block": "fence.acq_rel.cta", "device": "fence.acq_rel.gpu",
		}[op.Attrs().Str("kind")])
	},
	ptx.ClusterArrive: func(p *printer, _ *ir.Op) { p.line("barrier.cluster.arrive.release.aligned;") },
	ptx.ClusterWait:   func(p *printer, _ *ir.Op) { p.line("barrier.cluster.wait.acquire.aligned;") },
	ptx.MapShared: func(p *printer, op *ir.Op) {
		p.line("mapa.shared::cluster.u32 %s, %s, %s;", p.result(op), p.operand(op.Operand(0)), p.operand(op.Operand(1)))
	},
	ptx.Shuffle: func(p *printer, op *ir.Op) {
		mode := op.Attrs().Str("mode")
		clamp := map[string]string{"up": "0"}[mode]
		if clamp == "" {
			clamp = "31"
		}
		p.line("shfl.sync.%s.b32 %s, %s, %s, %s, 0xffffffff;", mode, p.result(op), p.inRegister(op.Operand(0), 0), p.operand(op.Operand(1)), clamp)
	},
	ptx.Elect: func(p *printer, op *ir.Op) { p.line("elect.sync _|%s, 0xffffffff;", p.result(op)) },
	ptx.SetMaxRegisters: func(p *printer, op *ir.Op) {
		way := "dec"
		if op.Attrs().Bool("inc") {
			way = "inc"
		}
		p.line("setmaxnreg.%s.sync.aligned.u32 %d;", way, op.Attrs().IntOr("count", 0))
	},
	ptx.GridWait:   func(p *printer, _ *ir.Op) { p.line("griddepcontrol.wait;") },
	ptx.GridLaunch: func(p *printer, _ *ir.Op) { p.line("griddepcontrol.launch_dependents;") },
}
