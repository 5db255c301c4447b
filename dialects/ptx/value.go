package ptx

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// Const is an immediate.
var Const = define(ir.OpDef{
	Name:        "const",
	Summary:     "an immediate operand",
	Description: "No instruction of its own where its user can hold an immediate.",
	Attrs:       []ir.AttrDef{{Name: "value", Kind: ir.AnyAttr, Doc: "integer or floating-point number"}},
	Results:     []ir.ResultDef{{Name: "y", Type: scalar}},
	Traits:      ir.Pure | ir.ConstantLike,
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		t := ir.AttrType(in.Attrs.Get("value"))
		if t == nil {
			return nil, fmt.Errorf("value must be a number")
		}
		return []ir.Type{t}, nil
	},
})

// Undef is registers that hold nothing yet.
var Undef = define(ir.OpDef{
	Name:        "undef",
	Summary:     "registers that hold nothing yet",
	Description: "What an accumulator is before the first product, which doesn't read it.",
	Results:     []ir.ResultDef{{Name: "y", Type: register}},
})

// specials is the special registers that can be read, with their widths.
var specials = map[string]int{
	"tid.x": 32, "tid.y": 32, "ntid.x": 32, "ctaid.x": 32, "ctaid.y": 32, "ctaid.z": 32, "nctaid.x": 32, "laneid": 32, "smid": 32,
	"cluster_ctarank": 32, "clusterid.x": 32, "nclusterid.x": 32, "clock64": 64, "globaltimer": 64,
}

// Special reads a special register.
var Special = define(ir.OpDef{
	Name:    "special",
	Summary: "reads a special register",
	Attrs:   []ir.AttrDef{{Name: "register", Kind: ir.StringKind, Doc: "its name without the percent sign"}},
	Results: []ir.ResultDef{{Name: "y", Type: scalar}},
	Infer: func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		w := specials[in.Attrs.Str("register")]
		if w == 0 {
			return nil, fmt.Errorf("no special register %q", in.Attrs.Str("register"))
		}
		return []ir.Type{c.Int(w)}, nil
	},
})

// SharedBase is where dynamic shared memory starts.
var SharedBase = define(ir.OpDef{
	Name:        "shared_base",
	Summary:     "the address of the block's dynamic shared memory",
	Description: "A multiple of 1024.",
	Results:     []ir.ResultDef{{Name: "address", Type: shared}},
	Traits:      ir.Pure,
	Infer:       func(c *ir.Context, _ ir.InferInput) ([]ir.Type, error) { return []ir.Type{c.I32()}, nil },
})

// Extract is one register of a vector.
var Extract = define(ir.OpDef{
	Name:        "extract",
	Summary:     "one register of a vector",
	Description: "No instruction: another name.",
	Operands:    []ir.OperandDef{{Name: "x", Type: vector}},
	Attrs:       []ir.AttrDef{{Name: "index", Kind: ir.I64Kind}},
	Results:     []ir.ResultDef{{Name: "y", Type: scalar}},
	Traits:      ir.Pure,
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		x := in.Operands[0]
		i := in.Attrs.IntOr("index", -1)
		if n := int64(Registers(x.Type())); i < 0 || i >= n {
			return nil, fmt.Errorf("index %d in a vector of %d", i, n)
		}
		return []ir.Type{x.Elem()}, nil
	},
})

// Vector names registers together.
var Vector = define(ir.OpDef{
	Name:        "vector",
	Summary:     "registers taken together as a vector",
	Description: "No instruction: another name.",
	Operands:    []ir.OperandDef{{Name: "xs", Type: scalar, Arity: ir.Variadic}},
	Results:     []ir.ResultDef{{Name: "y", Type: vector}},
	Traits:      ir.Pure,
	Infer: func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		if len(in.Operands) == 0 {
			return nil, fmt.Errorf("a vector has at least one register")
		}
		t := in.Operands[0].Type()
		if slices.ContainsFunc(in.Operands, func(v *ir.Value) bool { return v.Type() != t }) {
			return nil, fmt.Errorf("registers of different types")
		}
		return []ir.Type{c.Vector([]int64{int64(len(in.Operands))}, t)}, nil
	},
})

// Copy gives numbers registers of their own.
var Copy = define(ir.OpDef{
	Name: "copy", Summary: "the same numbers in registers of their own (mov), which an accumulator's can be",
	Operands: []ir.OperandDef{{Name: "x", Type: vector}}, Results: []ir.ResultDef{{Name: "y", Type: vector}}, Traits: ir.Pure, Infer: likeFirst,
})

// Fill is a vector of equal numbers.
var Fill = define(ir.OpDef{
	Name:     "fill",
	Summary:  "a vector of equal numbers (mov)",
	Operands: []ir.OperandDef{{Name: "x", Type: scalar}},
	Attrs:    []ir.AttrDef{{Name: "count", Kind: ir.I64Kind}},
	Results:  []ir.ResultDef{{Name: "y", Type: vector}},
	Infer: func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		n := in.Attrs.IntOr("count", 0)
		if n < 2 {
			return nil, fmt.Errorf("a vector of %d", n)
		}
		return []ir.Type{c.Vector([]int64{n}, in.Operands[0].Type())}, nil
	},
})
