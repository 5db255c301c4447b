// Package host is the dialect of kernels for CPUs: bytecode over cache-sized blocks. Each instruction works on whole blocks
// and corresponds to one routine of the CPU runtime; a block is a window of memory or a piece of the worker's scratch
// memory. Instructions write to blocks they are given (destination-passing): there are no values but blocks and indices.
//
// A block has two dimensions, rows and columns, with statically known maxima and actual extents that are operands, so that
// blocks at the edge of a tensor are smaller. An operand with one row, one column or both is repeated along the missing
// ones. Index arithmetic is arith's, loops are scf.for without carried values.
package host

import (
	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "host",
	Summary: "kernels for CPUs: bytecode over cache-sized blocks",
	Ops: []*ir.OpDef{
		Kernel, Scratch, Memory, Window, Unary, Binary, Fma, Adamw, Compare, Select, Cast, Fill, Iota, Copy, Transpose, Reduce,
		Inner, Dot, Gemm, Gather, Pick, ScatterAdd, Random, End,
	},
	Types: []ir.TypeDef{{Name: "block", Summary: "a block of at most the given rows and columns", Verify: func(t *ir.DialectType) error {
		if t.Elem == nil || len(t.Shape) != 2 || len(t.Params) > 0 {
			return errorf("wants rows, columns and element type, as in !host.block<64x768xf32>")
		}
		if rows, cols := t.Shape[0], t.Shape[1]; rows < 0 || cols < 0 || cols > 0 && rows > MaxElements/cols {
			return errorf("%d rows of %d columns", rows, cols)
		}
		return nil
	}}},
}

// Block is the type of blocks with at most that many rows and columns.
func Block(c *ir.Context, rows, cols int64, elem ir.Type) *ir.DialectType {
	return c.DialectType("host", "block", []int64{rows, cols}, elem)
}

var (
	block = ir.Constraint{Doc: "block", OK: func(t ir.Type) bool {
		d, ok := t.(*ir.DialectType)
		return ok && d.Dialect == "host" && d.Name == "block"
	}}
	index  = ir.Constraint{Doc: "index", OK: func(t ir.Type) bool { _, ok := t.(*ir.IndexType); return ok }}
	memRef = ir.Constraint{Doc: "memref", OK: func(t ir.Type) bool { _, ok := t.(*ir.MemRefType); return ok }}
)

// Kernel is one kernel.
var Kernel = ir.Define("host", ir.OpDef{
	Name:    "kernel",
	Summary: "a kernel: what is run for each grid point",
	Description: "Arguments of the body are references to memory (inputs, then `outs` outputs), then one index for each grid axis, which takes " +
		"the values 0, step, 2 step, ... below the extent. Grid points are independent of each other and run on any number of workers.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "the kernel's name"},
		{Name: "outs", Kind: ir.I64Kind, Doc: "number of references, from the end, that it writes"},
		{Name: "grid", Kind: ir.I64sKind, Doc: "extent of each axis"},
		{Name: "steps", Kind: ir.I64sKind, Doc: "step of each axis"},
		{Name: "scratch", Kind: ir.I64Kind, Doc: "bytes of scratch memory a worker needs"},
		{Name: "reference", Kind: ir.StringKind, Optional: true, Doc: "the function of reference.mlir it implements; its own name where absent"},
	},
	Regions: []ir.RegionDef{{Name: "body"}},
	Traits:  ir.Symbol | ir.Isolated,
	Verify:  verifyKernel,
})

// Scratch is a block in the worker's scratch memory.
var Scratch = ir.Define("host", ir.OpDef{
	Name:        "scratch",
	Summary:     "a block in scratch memory",
	Description: "Rows are as far apart as the type's columns. i1 elements take four bytes here, all bits set or none.",
	Operands:    []ir.OperandDef{{Name: "rows", Type: index}, {Name: "cols", Type: index}},
	Attrs:       []ir.AttrDef{{Name: "offset", Kind: ir.I64Kind, Doc: "bytes from the start of scratch memory, a multiple of 64"}},
	Results:     []ir.ResultDef{{Name: "block", Type: block}},
	Verify:      verifyScratch,
})

// Memory is a reference to scratch memory.
var Memory = ir.Define("host", ir.OpDef{
	Name:        "memory",
	Summary:     "a row-major reference to scratch memory",
	Description: "It belongs to the grid point and holds nothing of use at first.",
	Attrs:       []ir.AttrDef{{Name: "offset", Kind: ir.I64Kind, Doc: "bytes from the start of scratch memory, a multiple of 64"}},
	Results:     []ir.ResultDef{{Name: "ref", Type: memRef}},
	Verify:      verifyScratch,
})

// Window is a block that is a window of a reference.
var Window = ir.Define("host", ir.OpDef{
	Name:    "window",
	Summary: "a block that is a window of memory",
	Description: "The element at `offsets` is the first; rows run along dimension `row` and columns along dimension `col`, -1 where there is one only. " +
		"Where the stride of `col` is not 1, only copy and transpose take the block.",
	Operands: []ir.OperandDef{
		{Name: "ref", Type: memRef}, {Name: "rows", Type: index}, {Name: "cols", Type: index},
		{Name: "offsets", Type: index, Arity: ir.Variadic, Doc: "one for each dimension of the reference"},
	},
	Attrs: []ir.AttrDef{
		{Name: "row", Kind: ir.I64Kind, Doc: "the dimension rows run along, or -1"},
		{Name: "col", Kind: ir.I64Kind, Doc: "the dimension columns run along, or -1"},
	},
	Results: []ir.ResultDef{{Name: "block", Type: block}},
	Verify:  verifyWindow,
})

// Unary applies a function to every element.
var Unary = ir.Define("host", ir.OpDef{
	Name:        "unary",
	Summary:     "dst = fn(x), element by element",
	Description: "`fn` is one of Unaries. f32, or i1 for not.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "dst", Type: block}},
	Attrs:       []ir.AttrDef{{Name: "fn", Kind: ir.StringKind, Doc: "the function"}},
	Verify:      verifyFn(Unaries),
})

// Binary applies a function of two operands to every element.
var Binary = ir.Define("host", ir.OpDef{
	Name:        "binary",
	Summary:     "dst = fn(x, y), element by element",
	Description: "`fn` is one of Binaries. f32, i32, or i1 for and, or.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "y", Type: block}, {Name: "dst", Type: block}},
	Attrs:       []ir.AttrDef{{Name: "fn", Kind: ir.StringKind, Doc: "the function"}},
	Verify:      verifyFn(Binaries),
})

// Fma multiplies and adds with one rounding.
var Fma = ir.Define("host", ir.OpDef{
	Name:        "fma",
	Summary:     "dst = x * y + z, rounded once",
	Description: "f32. x has the extents of dst. With `negate`, dst = z - x * y, and y has one column.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "y", Type: block}, {Name: "z", Type: block}, {Name: "dst", Type: block}},
	Attrs:       []ir.AttrDef{{Name: "negate", Kind: ir.BoolKind, Doc: "subtract the product from z"}},
	Verify:      verifyBlocks,
})

// Adamw is one step of the AdamW optimizer.
var Adamw = ir.Define("host", ir.OpDef{
	Name:    "adamw",
	Summary: "one step of AdamW for the elements of a block",
	Description: "With G = g * grad_scale: new_m = keep1 m + take1 G; new_v = keep2 v + take2 G^2; new_p = p - decay p - step new_m / (root sqrt(new_v) + eps), without the " +
		"second term where there is no `decay`. f32. The first four and the last three blocks have the same extents, the others one element. A new block may be the old one.",
	Operands: []ir.OperandDef{
		{Name: "p", Type: block}, {Name: "m", Type: block}, {Name: "v", Type: block}, {Name: "g", Type: block}, {Name: "grad_scale", Type: block},
		{Name: "keep1", Type: block}, {Name: "take1", Type: block}, {Name: "keep2", Type: block}, {Name: "take2", Type: block},
		{Name: "root", Type: block}, {Name: "eps", Type: block}, {Name: "step", Type: block}, {Name: "new_m", Type: block}, {Name: "new_v", Type: block},
		{Name: "new_p", Type: block}, {Name: "decay", Type: block, Arity: ir.Optional},
	},
	Verify: verifyAdamw,
})

// Compare compares element by element.
var Compare = ir.Define("host", ir.OpDef{
	Name:        "compare",
	Summary:     "dst = x predicate y, as truth values",
	Description: "f32 or i32 operands. Comparisons with NaN are false, except ne.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "y", Type: block}, {Name: "dst", Type: block}},
	Attrs:       []ir.AttrDef{{Name: "fn", Kind: ir.StringKind, Doc: "eq, ne, lt, le, gt or ge"}},
	Verify:      verifyFn(Predicates),
})

// Select chooses element by element.
var Select = ir.Define("host", ir.OpDef{
	Name:        "select",
	Summary:     "dst = mask ? x : y",
	Description: "x and y are f32 or i32.",
	Operands:    []ir.OperandDef{{Name: "mask", Type: block}, {Name: "x", Type: block}, {Name: "y", Type: block}, {Name: "dst", Type: block}},
	Verify:      verifyBlocks,
})

// Cast converts between element types.
var Cast = ir.Define("host", ir.OpDef{
	Name:        "cast",
	Summary:     "dst = x in another element type",
	Description: "Between f32 and each of bf16, f16, i32, i64 and i1, and between i32 and each of i64 and i1.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "dst", Type: block}},
	Verify:      verifyBlocks,
})

// Fill sets every element.
var Fill = ir.Define("host", ir.OpDef{
	Name:        "fill",
	Summary:     "dst = value everywhere",
	Description: "f32, i32 or i1.",
	Operands:    []ir.OperandDef{{Name: "dst", Type: block}},
	Attrs:       []ir.AttrDef{{Name: "value", Kind: ir.F64Kind, Doc: "the value"}},
})

// Iota counts along an axis.
var Iota = ir.Define("host", ir.OpDef{
	Name:        "iota",
	Summary:     "dst = start + position along an axis",
	Description: "i32 or f32. Axis 0 counts rows, axis 1 columns.",
	Operands:    []ir.OperandDef{{Name: "start", Type: index}, {Name: "dst", Type: block}},
	Attrs:       []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "0 or 1"}},
})

// Copy copies a block.
var Copy = ir.Define("host", ir.OpDef{
	Name:        "copy",
	Summary:     "dst = x",
	Description: "Any element type and any strides. From a window of i1 bytes to scratch, and back, it converts to masks.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "dst", Type: block}},
	Verify:      verifyBlocks,
})

// Transpose exchanges rows and columns.
var Transpose = ir.Define("host", ir.OpDef{
	Name:        "transpose",
	Summary:     "dst[c, r] = x[r, c]",
	Description: "Elements of four bytes.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "dst", Type: block}},
})

// Reduce reduces rows or columns.
var Reduce = ir.Define("host", ir.OpDef{
	Name:    "reduce",
	Summary: "dst = x reduced along an axis",
	Description: "`fn` is sum, max or min. Axis 1 leaves one column, axis 0 one row. Sums are kept in float64 between the float32 lanes of a row and " +
		"between rows.",
	Operands: []ir.OperandDef{{Name: "x", Type: block}, {Name: "dst", Type: block}},
	Attrs: []ir.AttrDef{
		{Name: "fn", Kind: ir.StringKind, Doc: "sum, max, min, argmax"},
		{Name: "axis", Kind: ir.I64Kind, Doc: "0 or 1"},
	},
	Verify: verifyFn(Reductions),
})

// Inner multiplies and adds up along an axis.
var Inner = ir.Define("host", ir.OpDef{
	Name:        "inner",
	Summary:     "dst = sum of x * y along an axis",
	Description: "f32, x and y of the same extents. Along axis 1 dst has one column, along axis 0 one row.",
	Operands:    []ir.OperandDef{{Name: "x", Type: block}, {Name: "y", Type: block}, {Name: "dst", Type: block}},
	Attrs:       []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "0 or 1"}},
	Verify:      verifyBlocks,
})

// Dot multiplies small matrices.
var Dot = ir.Define("host", ir.OpDef{
	Name:        "dot",
	Summary:     "dst = (dst +) op(a) op(b)",
	Description: "f32; at most one operand is transposed. Operands are meant to lie in the first- or second-level cache.",
	Operands:    []ir.OperandDef{{Name: "a", Type: block}, {Name: "b", Type: block}, {Name: "dst", Type: block}},
	Attrs: []ir.AttrDef{
		{Name: "ta", Kind: ir.BoolKind, Doc: "a is transposed"}, {Name: "tb", Kind: ir.BoolKind, Doc: "b is transposed"},
		{Name: "accumulate", Kind: ir.BoolKind, Doc: "add to dst"},
	},
})

// Gemm is a whole matrix product with an epilogue.
var Gemm = ir.Define("host", ir.OpDef{
	Name:    "gemm",
	Summary: "c = op(a) op(b), blocked, on all workers, with an epilogue for each finished block",
	Description: "For every grid point of the batch axes: a [m, k], b [k, n] (or transposed) and c [m, n] windows of f32. Blocks of c are finished in " +
		"any order, but of a size that depends on the problem alone. The epilogue region runs for pieces of each, while it is in cache; its arguments are the " +
		"row and column of a piece's first element and the piece's rows and columns, of which there are at most `piece`. With a `beta` block (1x1, i1), c is added to where it is true.",
	Operands: []ir.OperandDef{
		{Name: "a", Type: block}, {Name: "b", Type: block}, {Name: "c", Type: block},
		{Name: "beta", Type: block, Arity: ir.Optional},
	},
	Attrs: []ir.AttrDef{
		{Name: "ta", Kind: ir.BoolKind, Doc: "a is stored [k, m]"}, {Name: "tb", Kind: ir.BoolKind, Doc: "b is stored [n, k]"},
		{Name: "piece", Kind: ir.I64sKind, Doc: "rows and columns the epilogue works on at a time, at most"},
	},
	Regions: []ir.RegionDef{{Name: "epilogue"}},
})

// Gather copies rows of a table.
var Gather = ir.Define("host", ir.OpDef{
	Name:        "gather",
	Summary:     "dst[r, c] = table[index[r], col + c]",
	Description: "An index out of range stops the program with its position, at + r, and its value.",
	Operands: []ir.OperandDef{
		{Name: "table", Type: memRef}, {Name: "index", Type: block, Doc: "i32, one a row of dst"}, {Name: "at", Type: index}, {Name: "col", Type: index},
		{Name: "dst", Type: block},
	},
})

// Pick reads one element of each row.
var Pick = ir.Define("host", ir.OpDef{
	Name:        "pick",
	Summary:     "dst[r, 0] = ref[offsets, plus r in the last dimension but one, index[r] in the last]",
	Description: "0 where index[r] is `ignore`. Any other index out of range stops the program with its position, at + r, and its value.",
	Operands: []ir.OperandDef{
		{Name: "ref", Type: memRef}, {Name: "index", Type: block}, {Name: "at", Type: index},
		{Name: "offsets_and_dst", Type: ir.Constraint{Doc: "index or block", OK: func(t ir.Type) bool { return index.OK(t) || block.OK(t) }}, Arity: ir.Variadic,
			Doc: "offsets in all dimensions but the last, then the destination"},
	},
	Attrs: []ir.AttrDef{{Name: "ignore", Kind: ir.I64Kind, Optional: true, Doc: "the index that picks nothing"}},
})

// ScatterAdd adds rows to rows of a table.
var ScatterAdd = ir.Define("host", ir.OpDef{
	Name:    "scatter_add",
	Summary: "out = init (or 0), then out[index[r]] += x[r], in order of r",
	Description: "For `cols` columns from `col` on, clipped at the last. An index out of range stops the program with its position and value. init and out may " +
		"be the same memory.",
	Operands: []ir.OperandDef{
		{Name: "x", Type: memRef}, {Name: "index", Type: memRef}, {Name: "col", Type: index}, {Name: "out", Type: memRef},
		{Name: "init", Type: memRef, Arity: ir.Optional},
	},
	Attrs: []ir.AttrDef{{Name: "cols", Kind: ir.I64Kind, Doc: "columns of the table"}},
})

// Random fills a block with random numbers.
var Random = ir.Define("host", ir.OpDef{
	Name:        "random",
	Summary:     "dst = random numbers by position",
	Description: "Philox4x32-10 keyed by seed and stream; the element at row r and column c has the number start + r*pitch + c.",
	Operands: []ir.OperandDef{
		{Name: "seed", Type: block, Doc: "1x1 i64"}, {Name: "start", Type: index}, {Name: "dst", Type: block},
	},
	Attrs: []ir.AttrDef{
		{Name: "fn", Kind: ir.StringKind, Doc: "uniform or normal"}, {Name: "stream", Kind: ir.I64Kind, Doc: "keeps draws apart"},
		{Name: "pitch", Kind: ir.I64Kind, Doc: "numbers from row to row"},
		{Name: "mean", Kind: ir.F64Kind, Optional: true}, {Name: "std", Kind: ir.F64Kind, Optional: true},
	},
	Verify: verifyFn([]string{"uniform", "normal"}),
})

// End ends a kernel or an epilogue.
var End = ir.Define("host", ir.OpDef{
	Name:        "end",
	Summary:     "ends a body",
	Description: "Nothing follows.",
	Traits:      ir.Terminator,
})
