package ptx

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// LoadMatrix reads 8x8 matrices of 16-bit elements.
var LoadMatrix = define(ir.OpDef{
	Name:    "ldmatrix",
	Summary: "reads 8x8 matrices of 16-bit elements into the layout of matrix fragments",
	Description: "Lanes 8i to 8i+7 give the addresses of the rows of matrix i, 16 bytes each. Register i of lane l holds elements 2*(l%4) and the next " +
		"of row l/4 of matrix i; of column l/4 with `trans`.",
	Operands: []ir.OperandDef{{Name: "address", Type: shared}},
	Attrs:    []ir.AttrDef{{Name: "trans", Kind: ir.UnitKind, Optional: true, Doc: "transpose each matrix"}, shift},
	Results:  []ir.ResultDef{{Name: "y", Type: ir.Constraint{Doc: "vector of 1, 2 or 4 i32", OK: isVector(isInt(32), 1, 2, 4)}}},
})

// StoreMatrix is the inverse of LoadMatrix.
var StoreMatrix = define(ir.OpDef{
	Name:        "stmatrix",
	Summary:     "writes 8x8 matrices of 16-bit elements from the layout of matrix fragments",
	Description: "The inverse of ptx.ldmatrix.",
	Operands: []ir.OperandDef{{Name: "address", Type: shared},
		{Name: "x", Type: ir.Constraint{Doc: "vector of 1, 2 or 4 i32", OK: isVector(isInt(32), 1, 2, 4)}}},
	Attrs: []ir.AttrDef{{Name: "trans", Kind: ir.UnitKind, Optional: true, Doc: "transpose each matrix"}, shift},
})

// Formats of matrix operands: depth of one instruction (k) by format, 32 bytes of each row.
var depths = map[string]int64{"bf16": 16, "f16": 16, "tf32": 8}

// Depth is how much of k one matrix instruction takes, by the format of the operands: bf16, f16 or tf32.
func Depth(format string) int64 { return depths[format] }

var format = ir.AttrDef{Name: "format", Kind: ir.StringKind, Doc: "bf16, f16 or tf32"}

// MMA multiplies matrices held by one warp.
var MMA = define(ir.OpDef{
	Name:    "mma",
	Summary: "d = a b + c with the matrices in a warp's registers: m16 n8, k16 (bf16, f16) or k8 (tf32)",
	Description: "Lane l, g = l/4, t = l%4. c and d: (g; 2t, 2t+1), (g+8; 2t, 2t+1). 16-bit a: (g; 2t, 2t+1), (g+8; same), (g; 2t+8, 2t+9), (g+8; same); " +
		"b: (k = 2t, 2t+1; g), (k = 2t+8, 2t+9; g). tf32 a: (g, t), (g+8, t), (g, t+4), (g+8, t+4); b: (t; g), (t+4; g). c is tied to d.",
	Operands: []ir.OperandDef{
		{Name: "a", Type: ir.Constraint{Doc: "vector<4xi32>", OK: isVector(isInt(32), 4)}},
		{Name: "b", Type: ir.Constraint{Doc: "vector<2xi32>", OK: isVector(isInt(32), 2)}},
		{Name: "c", Type: ir.Constraint{Doc: "vector<4xf32>", OK: isVector(isFloat(ir.F32), 4)}},
	},
	Attrs:   []ir.AttrDef{format},
	Results: []ir.ResultDef{{Name: "d", Type: f32s}},
	Traits:  ir.Pure,
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		if depths[in.Attrs.Str("format")] == 0 {
			return nil, fmt.Errorf("no format %q; there are bf16, f16 and tf32", in.Attrs.Str("format"))
		}
		return []ir.Type{in.Operands[2].Type()}, nil
	},
})

// WGMMA multiplies matrices in shared memory, a warpgroup at a time.
var WGMMA = define(ir.OpDef{
	Name:    "wgmma",
	Summary: "d = a b, or a b + c where `add` holds: m64 n, k16 (bf16, f16) or k8 (tf32), begun by a warpgroup and finished in the background",
	Description: "a and b are matrix descriptors. Warp w of the warpgroup, lane l, g = l/4, t = l%4: registers 4j, 4j+1 of d are row 16w+g, columns 8j+2t and the next; " +
		"4j+2, 4j+3 row 16w+g+8. c is tied to d and must not be used elsewhere; d is complete after a ptx.wgmma_wait of it. a may be in registers instead, each " +
		"warp's 16 rows as ptx.mma has them, which must stay as they are until then.",
	Operands: []ir.OperandDef{
		{Name: "a", Type: ir.Constraint{Doc: "i64 or vector<4xi32>", OK: either(isInt(64), isVector(isInt(32), 4))}}, {Name: "b", Type: long}, {Name: "c", Type: f32s}, {Name: "add", Type: predicate},
	},
	Attrs: []ir.AttrDef{format,
		{Name: "ta", Kind: ir.UnitKind, Optional: true, Doc: "a is M-major (16-bit formats)"},
		{Name: "tb", Kind: ir.UnitKind, Optional: true, Doc: "b is N-major (16-bit formats)"},
	},
	Results: []ir.ResultDef{{Name: "d", Type: f32s}},
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		return []ir.Type{in.Operands[2].Type()}, nil
	},
	Verify: verifyWGMMA,
})

func verifyWGMMA(op *ir.Op) error {
	f := op.Attrs().Str("format")
	if depths[f] == 0 {
		return op.Errorf("ptx.wgmma: no format %q; there are bf16, f16 and tf32", f)
	}
	if f == "tf32" && (op.Attrs().Bool("ta") || op.Attrs().Bool("tb")) {
		return op.Errorf("ptx.wgmma: tf32 operands are K-major")
	}
	if Registers(op.Operand(0).Type()) > 1 && op.Attrs().Bool("ta") {
		return op.Errorf("ptx.wgmma: a is in registers, so it is not M-major")
	}
	if n := 2 * Registers(op.Operand(2).Type()); n%8 != 0 || n > 256 {
		return op.Errorf("ptx.wgmma: %d columns; a multiple of 8, at most 256", n)
	}
	return verifyTied(op, 2)
}

// verifyTied checks that an operand whose registers are overwritten in the background is used here alone.
func verifyTied(op *ir.Op, i int) error {
	v := op.Operand(i)
	if !v.HasOneUse() || v.Block() != op.Block() {
		return op.Errorf("%s: operand %d is tied to the result, so it must be made in this block and used once", op.Name(), i)
	}
	if v.DefinedBy(Vector) || v.DefinedBy(Const) {
		return op.Errorf("%s: operand %d is tied to the result, but has no registers of its own", op.Name(), i)
	}
	return nil
}

// WGMMAFence orders register accesses before products.
var WGMMAFence = define(ir.OpDef{Name: "wgmma_fence", Summary: "orders what was done to accumulators before the products that follow"})

// WGMMACommit closes a group of products.
var WGMMACommit = define(ir.OpDef{Name: "wgmma_commit", Summary: "makes the products so far a group"})

// WGMMAWait waits for groups of products.
var WGMMAWait = define(ir.OpDef{
	Name:        "wgmma_wait",
	Summary:     "waits until at most `pending` groups of products are unfinished",
	Description: "Results are the operands, which are tied to them: what reads an accumulator comes after the wait for it.",
	Operands:    []ir.OperandDef{{Name: "accumulators", Type: f32s, Arity: ir.Variadic}},
	Attrs:       []ir.AttrDef{pending},
	Results:     []ir.ResultDef{{Name: "ready", Type: f32s, Arity: ir.Variadic}},
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		var ts []ir.Type
		for _, v := range in.Operands {
			ts = append(ts, v.Type())
		}
		return ts, nil
	},
	Verify: func(op *ir.Op) error {
		for i := range op.NumOperands() {
			if err := verifyTied(op, i); err != nil {
				return err
			}
		}
		return nil
	},
})

// OuterFMA adds an outer product.
var OuterFMA = define(ir.OpDef{
	Name:        "outer_fma",
	Summary:     "adds an outer product: c[i*n + j] + a[i]*b[j], each rounded once",
	Description: "One fma.rn.f32 for each register of c, which is tied to the result.",
	Operands:    []ir.OperandDef{{Name: "a", Type: f32s}, {Name: "b", Type: f32s}, {Name: "c", Type: f32s}},
	Results:     []ir.ResultDef{{Name: "d", Type: f32s}},
	Traits:      ir.Pure,
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		sizes := []int{Registers(in.Operands[0].Type()), Registers(in.Operands[1].Type()), Registers(in.Operands[2].Type())}
		if slices.Contains(sizes, 0) || sizes[0]*sizes[1] != sizes[2] {
			return nil, fmt.Errorf("%d times %d products, %d accumulators", sizes[0], sizes[1], sizes[2])
		}
		return []ir.Type{in.Operands[2].Type()}, nil
	},
})

// AddScaled adds what a warpgroup's product came to, with a factor for each row and each column.
var AddScaled = define(ir.OpDef{
	Name:    "add_scaled",
	Summary: "sum + (x*c)*r, rounded after each multiplication but the last",
	Description: "Registers lie as wgmma's accumulators do: registers 4i and 4i+1 are of the thread's first row, the two after them of its second, all four of its " +
		"columns 2i and 2i+1. r is r0 or r1, by the row; c has the column's byte of `columns`, the lowest of the first word first, as its highest byte, and zeros below: a power of " +
		"four. sum is tied to the result.",
	Operands: []ir.OperandDef{{Name: "sum", Type: f32s}, {Name: "x", Type: f32s}, {Name: "r0", Type: single}, {Name: "r1", Type: single}, {Name: "columns", Type: word, Arity: ir.Variadic}},
	Results:  []ir.ResultDef{{Name: "r", Type: f32s}},
	Traits:   ir.Pure,
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		t, words := in.Operands[0].Type(), len(in.Operands)-4
		if in.Operands[1].Type() != t || Registers(t) != 8*words {
			return nil, fmt.Errorf("adds %s with %d words of columns' factors to %s", in.Operands[1].Type(), words, t)
		}
		return []ir.Type{t}, nil
	},
})
