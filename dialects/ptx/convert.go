package ptx

import (
	"fmt"

	"blutrain/ir"
)

// Convert changes the type of a number.
var Convert = define(ir.OpDef{
	Name:    "cvt",
	Summary: "converts a number",
	Description: "To a narrower floating-point type: rounded to nearest even. Integers are unsigned unless `signed`. " +
		"With `tf32` f32 is rounded to 10 bits (nearest, ties away) and stays an f32. From floating point to integer: rounded toward zero.",
	Operands: []ir.OperandDef{{Name: "x", Type: scalarOf}},
	Attrs: []ir.AttrDef{
		{Name: "signed", Kind: ir.UnitKind, Optional: true, Doc: "the integer is signed"},
		{Name: "tf32", Kind: ir.UnitKind, Optional: true, Doc: "round f32 to tf32"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: scalarOf}},
	Traits:  ir.Pure,
	Verify: func(op *ir.Op) error {
		if op.Attrs().Bool("tf32") && (!single.OK(op.Operand(0).Type()) || !single.OK(op.Result(0).Type())) {
			return op.Errorf("ptx.cvt: tf32 is for f32")
		}
		return nil
	},
})

// Pack rounds two f32 into one register.
var Pack = define(ir.OpDef{
	Name:     "pack",
	Summary:  "rounds two f32 to 16 bits each, in one register",
	Operands: []ir.OperandDef{{Name: "low", Type: single}, {Name: "high", Type: single}},
	Attrs:    []ir.AttrDef{{Name: "format", Kind: ir.StringKind, Doc: "bf16 or f16"}},
	Results:  []ir.ResultDef{{Name: "y", Type: word}},
	Traits:   ir.Pure,
	Infer: func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		if f := in.Attrs.Str("format"); f != "bf16" && f != "f16" {
			return nil, fmt.Errorf("no format %q; there are bf16 and f16", f)
		}
		return []ir.Type{c.I32()}, nil
	},
})

// Bitcast keeps the bits and changes the type.
var Bitcast = define(ir.OpDef{
	Name:     "bitcast",
	Summary:  "the same bits as another type (mov)",
	Operands: []ir.OperandDef{{Name: "x", Type: scalarOf}},
	Results:  []ir.ResultDef{{Name: "y", Type: scalarOf}},
	Traits:   ir.Pure,
	Verify: func(op *ir.Op) error {
		if x, y := Width(op.Operand(0).Type()), Width(op.Result(0).Type()); x != y {
			return op.Errorf("ptx.bitcast: from %d to %d bits", x, y)
		}
		return nil
	},
})

// Join makes a register of two halves.
var Join = define(ir.OpDef{
	Name:     "join",
	Summary:  "a register of twice the width: low half, high half (mov)",
	Operands: []ir.OperandDef{{Name: "low", Type: scalarOf}, {Name: "high", Type: scalarOf}},
	Results:  []ir.ResultDef{{Name: "y", Type: scalarOf}},
	Traits:   ir.Pure,
	Infer: func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		w := Width(in.Operands[0].Type())
		if w != Width(in.Operands[1].Type()) || w > 32 {
			return nil, fmt.Errorf("joins %s and %s", in.Operands[0].Type(), in.Operands[1].Type())
		}
		return []ir.Type{c.Int(2 * w)}, nil
	},
})

// Split takes a register apart.
var Split = define(ir.OpDef{
	Name:     "split",
	Summary:  "the low and the high half of a register (mov)",
	Operands: []ir.OperandDef{{Name: "x", Type: ir.Constraint{Doc: "i32 or i64", OK: isInt(32, 64)}}},
	Results:  []ir.ResultDef{{Name: "low", Type: scalarOf}, {Name: "high", Type: scalarOf}},
	Traits:   ir.Pure,
	Verify: func(op *ir.Op) error {
		w := Width(op.Operand(0).Type()) / 2
		if Width(op.Result(0).Type()) != w || Width(op.Result(1).Type()) != w {
			return op.Errorf("ptx.split: halves of %s have %d bits", op.Operand(0).Type(), w)
		}
		return nil
	},
})
