// Code generated from the table of the arith dialect; DO NOT EDIT.

package arith

import "blutrain/ir"

// Builder makes operations of the arith dialect at an insertion point. Operands that don't fit are a programming error
// and panic; TryCreate says why instead.
type Builder struct{ *ir.Builder }

// ConstantOp is a arith.constant: a constant.
type ConstantOp struct{ *ir.Op }

// Value is the attribute "value": the value, whose type is the result's.
func (op ConstantOp) Value() ir.Attr {
	return op.Attr("value")
}

// ResultResult is the result "result".
func (op ConstantOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Constant makes a arith.constant: a constant.
func (b *Builder) Constant(value ir.Attr) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "value", Value: value},
	}
	op := b.Create(Constant, nil, attrs...)
	return op.Result(0)
}

// SelectOp is a arith.select: chooses between two values.
type SelectOp struct{ *ir.Op }

// Condition is the operand "condition".
func (op SelectOp) Condition() *ir.Value {
	return op.Operand(0)
}

// TrueValue is the operand "true_value".
func (op SelectOp) TrueValue() *ir.Value {
	return op.Operand(1)
}

// FalseValue is the operand "false_value".
func (op SelectOp) FalseValue() *ir.Value {
	return op.Operand(2)
}

// ResultResult is the result "result".
func (op SelectOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Select makes a arith.select: chooses between two values.
func (b *Builder) Select(condition, trueValue, falseValue *ir.Value) *ir.Value {
	op := b.Create(Select, []*ir.Value{condition, trueValue, falseValue}, nil...)
	return op.Result(0)
}

// AddiOp is a arith.addi: sum of integers.
type AddiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op AddiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op AddiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op AddiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Addi makes a arith.addi: sum of integers.
func (b *Builder) Addi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Addi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// SubiOp is a arith.subi: difference of integers.
type SubiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op SubiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op SubiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op SubiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Subi makes a arith.subi: difference of integers.
func (b *Builder) Subi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Subi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// MuliOp is a arith.muli: product of integers.
type MuliOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op MuliOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op MuliOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op MuliOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Muli makes a arith.muli: product of integers.
func (b *Builder) Muli(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Muli, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// DivsiOp is a arith.divsi: quotient of signed integers, rounded towards zero.
type DivsiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op DivsiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op DivsiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op DivsiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Divsi makes a arith.divsi: quotient of signed integers, rounded towards zero.
func (b *Builder) Divsi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Divsi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// RemsiOp is a arith.remsi: remainder of divsi, with the sign of the first operand.
type RemsiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op RemsiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op RemsiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op RemsiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Remsi makes a arith.remsi: remainder of divsi, with the sign of the first operand.
func (b *Builder) Remsi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Remsi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// CeildivsiOp is a arith.ceildivsi: quotient of signed integers, rounded up.
type CeildivsiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op CeildivsiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op CeildivsiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op CeildivsiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Ceildivsi makes a arith.ceildivsi: quotient of signed integers, rounded up.
func (b *Builder) Ceildivsi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Ceildivsi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// FloordivsiOp is a arith.floordivsi: quotient of signed integers, rounded down.
type FloordivsiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op FloordivsiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op FloordivsiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op FloordivsiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Floordivsi makes a arith.floordivsi: quotient of signed integers, rounded down.
func (b *Builder) Floordivsi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Floordivsi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// MinsiOp is a arith.minsi: smaller of two signed integers.
type MinsiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op MinsiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op MinsiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op MinsiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Minsi makes a arith.minsi: smaller of two signed integers.
func (b *Builder) Minsi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Minsi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// MaxsiOp is a arith.maxsi: larger of two signed integers.
type MaxsiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op MaxsiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op MaxsiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op MaxsiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Maxsi makes a arith.maxsi: larger of two signed integers.
func (b *Builder) Maxsi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Maxsi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// AndiOp is a arith.andi: bitwise and.
type AndiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op AndiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op AndiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op AndiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Andi makes a arith.andi: bitwise and.
func (b *Builder) Andi(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Andi, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// OriOp is a arith.ori: bitwise or.
type OriOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op OriOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op OriOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op OriOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Ori makes a arith.ori: bitwise or.
func (b *Builder) Ori(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Ori, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// XoriOp is a arith.xori: bitwise exclusive or.
type XoriOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op XoriOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op XoriOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op XoriOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Xori makes a arith.xori: bitwise exclusive or.
func (b *Builder) Xori(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Xori, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// CmpiOp is a arith.cmpi: compares signed integers.
type CmpiOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op CmpiOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op CmpiOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// Predicate is the attribute "predicate".
func (op CmpiOp) Predicate() int64 {
	return op.Attr("predicate").(*ir.IntegerAttr).Value
}

// ResultResult is the result "result".
func (op CmpiOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Cmpi makes a arith.cmpi: compares signed integers.
func (b *Builder) Cmpi(lhs, rhs *ir.Value, predicate int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "predicate", Value: b.Ctx.Int64(predicate)},
	}
	op := b.Create(Cmpi, []*ir.Value{lhs, rhs}, attrs...)
	return op.Result(0)
}

// AddfOp is a arith.addf: sum.
type AddfOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op AddfOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op AddfOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op AddfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Addf makes a arith.addf: sum.
func (b *Builder) Addf(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Addf, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// SubfOp is a arith.subf: difference.
type SubfOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op SubfOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op SubfOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op SubfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Subf makes a arith.subf: difference.
func (b *Builder) Subf(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Subf, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// MulfOp is a arith.mulf: product.
type MulfOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op MulfOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op MulfOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op MulfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Mulf makes a arith.mulf: product.
func (b *Builder) Mulf(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Mulf, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// DivfOp is a arith.divf: quotient.
type DivfOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op DivfOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op DivfOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op DivfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Divf makes a arith.divf: quotient.
func (b *Builder) Divf(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Divf, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// MaximumfOp is a arith.maximumf: larger number, NaN if either is.
type MaximumfOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op MaximumfOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op MaximumfOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op MaximumfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Maximumf makes a arith.maximumf: larger number, NaN if either is.
func (b *Builder) Maximumf(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Maximumf, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// MinimumfOp is a arith.minimumf: smaller number, NaN if either is.
type MinimumfOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op MinimumfOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op MinimumfOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// ResultResult is the result "result".
func (op MinimumfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Minimumf makes a arith.minimumf: smaller number, NaN if either is.
func (b *Builder) Minimumf(lhs, rhs *ir.Value) *ir.Value {
	op := b.Create(Minimumf, []*ir.Value{lhs, rhs}, nil...)
	return op.Result(0)
}

// NegfOp is a arith.negf: opposite sign.
type NegfOp struct{ *ir.Op }

// OperandValue is the operand "operand".
func (op NegfOp) OperandValue() *ir.Value {
	return op.Operand(0)
}

// ResultResult is the result "result".
func (op NegfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Negf makes a arith.negf: opposite sign.
func (b *Builder) Negf(operand *ir.Value) *ir.Value {
	op := b.Create(Negf, []*ir.Value{operand}, nil...)
	return op.Result(0)
}

// CmpfOp is a arith.cmpf: compares floating-point numbers.
type CmpfOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op CmpfOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op CmpfOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// Predicate is the attribute "predicate".
func (op CmpfOp) Predicate() int64 {
	return op.Attr("predicate").(*ir.IntegerAttr).Value
}

// ResultResult is the result "result".
func (op CmpfOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Cmpf makes a arith.cmpf: compares floating-point numbers.
func (b *Builder) Cmpf(lhs, rhs *ir.Value, predicate int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "predicate", Value: b.Ctx.Int64(predicate)},
	}
	op := b.Create(Cmpf, []*ir.Value{lhs, rhs}, attrs...)
	return op.Result(0)
}

// IndexCastOp is a arith.index_cast: index to integer or integer to index: sign-extends or drops high bits.
type IndexCastOp struct{ *ir.Op }

// In is the operand "in".
func (op IndexCastOp) In() *ir.Value {
	return op.Operand(0)
}

// Out is the result "out".
func (op IndexCastOp) Out() *ir.Value {
	return op.Result(0)
}

// IndexCast makes a arith.index_cast: index to integer or integer to index: sign-extends or drops high bits.
func (b *Builder) IndexCast(in *ir.Value, outType ir.Type) *ir.Value {
	op := b.CreateState(IndexCast, ir.OpState{Operands: []*ir.Value{in}, Attrs: nil, Results: []ir.Type{outType}, Regions: 0})
	return op.Result(0)
}

// ExtsiOp is a arith.extsi: wider integer with the same sign.
type ExtsiOp struct{ *ir.Op }

// In is the operand "in".
func (op ExtsiOp) In() *ir.Value {
	return op.Operand(0)
}

// Out is the result "out".
func (op ExtsiOp) Out() *ir.Value {
	return op.Result(0)
}

// Extsi makes a arith.extsi: wider integer with the same sign.
func (b *Builder) Extsi(in *ir.Value, outType ir.Type) *ir.Value {
	op := b.CreateState(Extsi, ir.OpState{Operands: []*ir.Value{in}, Attrs: nil, Results: []ir.Type{outType}, Regions: 0})
	return op.Result(0)
}

// TrunciOp is a arith.trunci: narrower integer: drops high bits.
type TrunciOp struct{ *ir.Op }

// In is the operand "in".
func (op TrunciOp) In() *ir.Value {
	return op.Operand(0)
}

// Out is the result "out".
func (op TrunciOp) Out() *ir.Value {
	return op.Result(0)
}

// Trunci makes a arith.trunci: narrower integer: drops high bits.
func (b *Builder) Trunci(in *ir.Value, outType ir.Type) *ir.Value {
	op := b.CreateState(Trunci, ir.OpState{Operands: []*ir.Value{in}, Attrs: nil, Results: []ir.Type{outType}, Regions: 0})
	return op.Result(0)
}

// ExtfOp is a arith.extf: wider floating-point number.
type ExtfOp struct{ *ir.Op }

// In is the operand "in".
func (op ExtfOp) In() *ir.Value {
	return op.Operand(0)
}

// Out is the result "out".
func (op ExtfOp) Out() *ir.Value {
	return op.Result(0)
}

// Extf makes a arith.extf: wider floating-point number.
func (b *Builder) Extf(in *ir.Value, outType ir.Type) *ir.Value {
	op := b.CreateState(Extf, ir.OpState{Operands: []*ir.Value{in}, Attrs: nil, Results: []ir.Type{outType}, Regions: 0})
	return op.Result(0)
}

// TruncfOp is a arith.truncf: narrower floating-point number, rounded to nearest even.
type TruncfOp struct{ *ir.Op }

// In is the operand "in".
func (op TruncfOp) In() *ir.Value {
	return op.Operand(0)
}

// Out is the result "out".
func (op TruncfOp) Out() *ir.Value {
	return op.Result(0)
}

// Truncf makes a arith.truncf: narrower floating-point number, rounded to nearest even.
func (b *Builder) Truncf(in *ir.Value, outType ir.Type) *ir.Value {
	op := b.CreateState(Truncf, ir.OpState{Operands: []*ir.Value{in}, Attrs: nil, Results: []ir.Type{outType}, Regions: 0})
	return op.Result(0)
}

// SitofpOp is a arith.sitofp: signed integer to floating-point number, rounded to nearest even.
type SitofpOp struct{ *ir.Op }

// In is the operand "in".
func (op SitofpOp) In() *ir.Value {
	return op.Operand(0)
}

// Out is the result "out".
func (op SitofpOp) Out() *ir.Value {
	return op.Result(0)
}

// Sitofp makes a arith.sitofp: signed integer to floating-point number, rounded to nearest even.
func (b *Builder) Sitofp(in *ir.Value, outType ir.Type) *ir.Value {
	op := b.CreateState(Sitofp, ir.OpState{Operands: []*ir.Value{in}, Attrs: nil, Results: []ir.Type{outType}, Regions: 0})
	return op.Result(0)
}

// FptosiOp is a arith.fptosi: floating-point number to signed integer, rounded towards zero.
type FptosiOp struct{ *ir.Op }

// In is the operand "in".
func (op FptosiOp) In() *ir.Value {
	return op.Operand(0)
}

// Out is the result "out".
func (op FptosiOp) Out() *ir.Value {
	return op.Result(0)
}

// Fptosi makes a arith.fptosi: floating-point number to signed integer, rounded towards zero.
func (b *Builder) Fptosi(in *ir.Value, outType ir.Type) *ir.Value {
	op := b.CreateState(Fptosi, ir.OpState{Operands: []*ir.Value{in}, Attrs: nil, Results: []ir.Type{outType}, Regions: 0})
	return op.Result(0)
}
