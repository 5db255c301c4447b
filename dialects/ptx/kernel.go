package ptx

import (
	"slices"
	"strings"

	"blutrain/ir"
)

// The targets kernels are made for.
const (
	SM80  = "sm_80"  // Ampere (A100)
	SM89  = "sm_89"  // Ada
	SM90A = "sm_90a" // Hopper with its own instructions: runs on compute capability 9.0 alone
)

// Targets lists them, oldest first.
var Targets = []string{SM80, SM89, SM90A}

// Kernel is an entry point.
var Kernel = define(ir.OpDef{
	Name:    "kernel",
	Summary: "an entry point",
	Description: "Arguments of the body are the parameters: i64 (pointers to global memory among them), i32, f32, and tensor maps. Dynamic shared memory " +
		"starts at ptx.shared_base. Launches must use exactly `threads` threads a block, and the cluster size where one is given.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "the name"},
		{Name: "target", Kind: ir.StringKind, Doc: "sm_80, sm_89 or sm_90a"},
		{Name: "threads", Kind: ir.I64Kind, Doc: "threads in a block"},
		{Name: "blocks_per_sm", Kind: ir.I64Kind, Optional: true, Doc: "least number of blocks on a multiprocessor: bounds the registers"},
		{Name: "cluster", Kind: ir.I64Kind, Optional: true, Default: int64(1), Doc: "blocks in a cluster, along x"},
		{Name: "shared", Kind: ir.I64Kind, Optional: true, Default: int64(0), Doc: "bytes of dynamic shared memory"},
	},
	Regions: []ir.RegionDef{{Name: "body"}},
	Traits:  ir.Symbol | ir.Isolated,
	Verify:  verifyKernel,
})

// Return ends a kernel.
var Return = define(ir.OpDef{Name: "return", Summary: "ends the kernel (ret)", Traits: ir.Terminator})

// For is a counted loop.
var For = define(ir.OpDef{
	Name:    "for",
	Summary: "a counted loop with values carried from one iteration to the next",
	Description: "As scf.for on i32, signed. A carried value keeps its registers from one iteration to the next; where the body works on them in " +
		"place, no register is copied.",
	Operands: []ir.OperandDef{
		{Name: "lower", Type: word}, {Name: "upper", Type: word}, {Name: "step", Type: word, Doc: "positive"},
		{Name: "inits", Type: carried, Arity: ir.Variadic},
	},
	Attrs: []ir.AttrDef{
		{Name: "uniform", Kind: ir.UnitKind, Optional: true, Doc: "all threads of a warp run the same iterations"},
		{Name: "unroll", Kind: ir.BoolKind, Optional: true, Default: false, Doc: "the assembler may unroll"},
	},
	Results: []ir.ResultDef{{Name: "results", Type: carried, Arity: ir.Variadic}},
	Regions: []ir.RegionDef{{Name: "body", Doc: "arguments: the index, carried values"}},
	Verify:  verifyFor,
})

// If is a branch.
var If = define(ir.OpDef{
	Name:     "if",
	Summary:  "runs one of two regions",
	Operands: []ir.OperandDef{{Name: "condition", Type: predicate}},
	Attrs:    []ir.AttrDef{{Name: "uniform", Kind: ir.UnitKind, Optional: true, Doc: "all threads of a warp take the same way"}},
	Results:  []ir.ResultDef{{Name: "results", Type: carried, Arity: ir.Variadic}},
	Regions:  []ir.RegionDef{{Name: "then"}, {Name: "else", Arity: ir.Variadic, Doc: "may be empty where there are no results"}},
	Verify:   verifyIf,
})

// Yield ends the body of a loop or branch.
var Yield = define(ir.OpDef{
	Name:     "yield",
	Summary:  "ends a body and gives its values to the operation around it",
	Operands: []ir.OperandDef{{Name: "values", Type: carried, Arity: ir.Variadic}},
	Traits:   ir.Terminator,
})

// needs is the least target of operations that sm_80 doesn't have.
var needs = map[*ir.OpDef]string{
	WGMMA: SM90A, WGMMAFence: SM90A, WGMMACommit: SM90A, WGMMAWait: SM90A, SetMaxRegisters: SM90A, StoreMatrix: SM90A,
	TMALoad: SM90A, TMAStore: SM90A, TMACommit: SM90A, TMAWait: SM90A, PrefetchBulk: SM90A, TMAPrefetch: SM90A, BarrierWait: SM90A, BarrierExpect: SM90A,
	ClusterArrive: SM90A, ClusterWait: SM90A, MapShared: SM90A, Elect: SM90A, GridWait: SM90A, GridLaunch: SM90A,
}

func verifyKernel(op *ir.Op) error {
	target := op.Attrs().Str("target")
	at := slices.Index(Targets, target)
	if at < 0 {
		return op.Errorf("ptx.kernel: no target %q; there are %v", target, Targets)
	}
	if n, _ := op.Attrs().Int("threads"); n < 1 || n > 1024 {
		return op.Errorf("ptx.kernel: %d threads; a block has 1 to 1024", n)
	}
	if n := op.Attrs().IntOr("cluster", 1); n < 1 || n > 8 || n > 1 && target != SM90A {
		return op.Errorf("ptx.kernel: a cluster of %d blocks; there can be 8 on sm_90a, 1 on others", n)
	}
	if n := op.Attrs().IntOr("shared", 0); n < 0 || n > SharedLimit(target) {
		return op.Errorf("ptx.kernel: %d bytes of shared memory; a block on %s has %d", n, target, SharedLimit(target))
	}
	for i, a := range op.Body().Args() {
		if t := a.Type(); !IsTensorMap(t) && !isInt(32, 64)(t) && !isFloat(ir.F32)(t) {
			return op.Errorf("ptx.kernel: parameter %d has type %s; expected i64, i32, f32 or a tensor map", i, t)
		}
	}
	var fault error
	ir.Walk(op, func(o *ir.Op) ir.WalkResult {
		if least := needs[o.Def()]; least != "" && slices.Index(Targets, least) > at {
			fault = o.Errorf("%s: needs %s, the kernel is for %s", o.Name(), least, target)
			return ir.Stop
		}
		return ir.Advance
	})
	return fault
}

// EntryName is a kernel's name in PTX, where a dot can't be part of one.
func EntryName(kernel *ir.Op) string { return strings.ReplaceAll(ir.SymName(kernel), ".", "$") }

// SharedLimit is the shared memory a block can have on a target, in bytes.
func SharedLimit(target string) int64 {
	return map[string]int64{SM80: 166912, SM89: 101376, SM90A: 232448}[target]
}

func verifyFor(op *ir.Op) error {
	inits, body := op.Operands()[3:], op.Body()
	if len(inits) != op.NumResults() || len(inits)+1 != len(body.Args()) {
		return op.Errorf("ptx.for: %d carried values, %d results, %d arguments of the body besides the first", len(inits), op.NumResults(), len(body.Args())-1)
	}
	if t := body.Arg(0).Type(); !word.OK(t) {
		return op.Errorf("ptx.for: the index has type %s, expected i32", t)
	}
	for i, v := range inits {
		if body.Arg(i+1).Type() != v.Type() || op.Result(i).Type() != v.Type() {
			return op.Errorf("ptx.for: carried value %d has type %s before the loop, %s in the body, %s after it", i, v.Type(), body.Arg(i+1).Type(), op.Result(i).Type())
		}
	}
	return verifyYield(op, body)
}

func verifyIf(op *ir.Op) error {
	for i, r := range op.Regions() {
		switch b := r.First(); {
		case len(r.Blocks()) > 1:
			return op.Errorf("ptx.if: region %d has %d blocks, expected one", i, len(r.Blocks()))
		case b == nil && (i == 0 || op.NumResults() > 0):
			return op.Errorf("ptx.if: region %d is empty", i)
		case b == nil:
		case len(b.Args()) > 0:
			return op.Errorf("ptx.if: region %d has arguments", i)
		default:
			if err := verifyYield(op, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyYield checks that a block ends by giving op's results.
func verifyYield(op *ir.Op, b *ir.Block) error {
	y := b.Last()
	if !y.Is(Yield) {
		return y.Errorf("%s: expected ptx.yield at the end of its body", op.Name())
	}
	if y.NumOperands() != op.NumResults() {
		return y.Errorf("ptx.yield: gives %d values, %s has %d results", y.NumOperands(), op.Name(), op.NumResults())
	}
	for i := range y.NumOperands() {
		if got, want := y.Operand(i).Type(), op.Result(i).Type(); got != want {
			return y.Errorf("ptx.yield: value %d has type %s, result %d of %s has %s", i, got, i, op.Name(), want)
		}
	}
	return nil
}
