package ptx

import (
	"slices"

	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "ptx",
	Summary: "kernels for NVIDIA GPUs: PTX instructions on virtual registers",
	Ops: slices.Concat(
		[]*ir.OpDef{Kernel, Return, For, If, Yield},
		[]*ir.OpDef{Const, Undef, Fill, Copy, Special, SharedBase, Extract, Vector},
		arithmetic,
		[]*ir.OpDef{Convert, Pack, Bitcast, Join, Split},
		[]*ir.OpDef{Load, Store, LoadByte, StoreByte, ReduceMin, CopyAsync, CopyCommit, CopyWait},
		[]*ir.OpDef{LoadMatrix, StoreMatrix, MMA, WGMMA, WGMMAFence, WGMMACommit, WGMMAWait, OuterFMA, AddScaled},
		[]*ir.OpDef{BarrierInit, BarrierExpect, BarrierArrive, BarrierWait},
		[]*ir.OpDef{TMALoad, TMAStore, TMACommit, TMAWait, PrefetchBulk, TMAPrefetch},
		[]*ir.OpDef{Sync, Arrive, WarpSync, Fence, ClusterArrive, ClusterWait, MapShared},
		[]*ir.OpDef{Shuffle, Elect, SetMaxRegisters, GridWait, GridLaunch},
	),
	Types: []ir.TypeDef{{Name: "tensormap", Summary: "a kernel parameter that describes a tensor to the copy engine (128 bytes)"}},
}

func define(def ir.OpDef) *ir.OpDef { return ir.Define("ptx", def) }

// TensorMap is the type of tensor map parameters.
func TensorMap(c *ir.Context) *ir.DialectType { return c.DialectType("ptx", "tensormap", nil, nil) }

// IsTensorMap reports whether t is the type of tensor map parameters.
func IsTensorMap(t ir.Type) bool {
	d, ok := t.(*ir.DialectType)
	return ok && d.Dialect == "ptx" && d.Name == "tensormap"
}

// Width is the bits of a scalar register type: 1 for predicates, 0 for types that are no register.
func Width(t ir.Type) int {
	switch t := t.(type) {
	case *ir.IntegerType:
		if t.Sign == ir.Signless && slices.Contains([]int{1, 16, 32, 64}, t.Width) {
			return t.Width
		}
	case *ir.FloatType:
		switch t.Kind {
		case ir.F16, ir.BF16:
			return 16
		case ir.F32:
			return 32
		case ir.F64:
			return 64
		}
	}
	return 0
}

// Registers is how many registers a value of type t is, 0 for types that are none.
func Registers(t ir.Type) int {
	if v, ok := t.(*ir.VectorType); ok {
		if len(v.Shape) == 1 && v.Shape[0] > 0 && Width(v.Elem) > 1 {
			return int(v.Shape[0])
		}
		return 0
	}
	if Width(t) > 0 {
		return 1
	}
	return 0
}

func isInt(widths ...int) func(ir.Type) bool {
	return func(t ir.Type) bool {
		_, ok := t.(*ir.IntegerType)
		return ok && slices.Contains(widths, Width(t))
	}
}

func isFloat(kinds ...ir.FloatKind) func(ir.Type) bool {
	return func(t ir.Type) bool {
		f, ok := t.(*ir.FloatType)
		return ok && slices.Contains(kinds, f.Kind)
	}
}

// isVector accepts vectors whose elements are accepted, of one of the given lengths (any when none is given).
func isVector(elem func(ir.Type) bool, lengths ...int64) func(ir.Type) bool {
	return func(t ir.Type) bool {
		v, ok := t.(*ir.VectorType)
		return ok && Registers(t) > 0 && elem(v.Elem) && (len(lengths) == 0 || slices.Contains(lengths, v.Shape[0]))
	}
}

func either(fs ...func(ir.Type) bool) func(ir.Type) bool {
	return func(t ir.Type) bool {
		return slices.ContainsFunc(fs, func(f func(ir.Type) bool) bool { return f(t) })
	}
}

func lanesOf(f func(ir.Type) bool) func(ir.Type) bool { return either(f, isVector(f)) }

var (
	register  = ir.Constraint{Doc: "register or vector of registers", OK: func(t ir.Type) bool { return Registers(t) > 0 }}
	scalar    = ir.Constraint{Doc: "register", OK: func(t ir.Type) bool { return Width(t) > 0 }}
	vector    = ir.Constraint{Doc: "vector of registers", OK: isVector(func(t ir.Type) bool { return Width(t) > 1 })}
	carried   = ir.Constraint{Doc: "register or vector of registers", OK: register.OK}
	predicate = ir.Constraint{Doc: "predicate (i1)", OK: isInt(1)}
	word      = ir.Constraint{Doc: "i32", OK: isInt(32)}
	long      = ir.Constraint{Doc: "i64", OK: isInt(64)}
	half      = ir.Constraint{Doc: "i16", OK: isInt(16)}
	shared    = ir.Constraint{Doc: "shared address (i32)", OK: isInt(32)}
	global    = ir.Constraint{Doc: "global address (i64)", OK: isInt(64)}
	address   = ir.Constraint{Doc: "address (i32 in shared, i64 in global memory)", OK: isInt(32, 64)}
	single    = ir.Constraint{Doc: "f32", OK: isFloat(ir.F32)}
	mapParam  = ir.Constraint{Doc: "tensor map", OK: IsTensorMap}
	f32s      = ir.Constraint{Doc: "vector of f32", OK: isVector(isFloat(ir.F32))}
	words     = ir.Constraint{Doc: "vector of i32", OK: isVector(isInt(32))}
	shift     = ir.AttrDef{Name: "offset", Kind: ir.I64Kind, Optional: true, Default: int64(0), Doc: "bytes added to the address"}
)
