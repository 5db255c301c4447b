// Code generated from the table of the scf dialect; DO NOT EDIT.

package scf

import "blutrain/ir"

// Builder makes operations of the scf dialect at an insertion point. Operands that don't fit are a programming error
// and panic; TryCreate says why instead.
type Builder struct{ *ir.Builder }

// ForOp is a scf.for: a counted loop with values carried from one iteration to the next.
type ForOp struct{ *ir.Op }

// Lower is the operand "lower".
func (op ForOp) Lower() *ir.Value {
	return op.Operand(0)
}

// Upper is the operand "upper".
func (op ForOp) Upper() *ir.Value {
	return op.Operand(1)
}

// Step is the operand "step".
func (op ForOp) Step() *ir.Value {
	return op.Operand(2)
}

// Inits is the operand "inits".
func (op ForOp) Inits() []*ir.Value {
	return op.OperandGroup(3)
}

// ResultsResult is the result "results".
func (op ForOp) ResultsResult() []*ir.Value {
	return op.ResultGroup(0)
}

// For makes a scf.for: a counted loop with values carried from one iteration to the next.
func (b *Builder) For(lower, upper, step *ir.Value, inits []*ir.Value, resultsResultTypes []ir.Type) ForOp {
	var operands []*ir.Value
	operands = append(operands, lower)
	operands = append(operands, upper)
	operands = append(operands, step)
	operands = append(operands, inits...)
	op := b.CreateState(For, ir.OpState{Operands: operands, Attrs: nil, Results: resultsResultTypes, Regions: 1})
	return ForOp{op}
}

// IfOp is a scf.if: runs one of two regions.
type IfOp struct{ *ir.Op }

// Condition is the operand "condition".
func (op IfOp) Condition() *ir.Value {
	return op.Operand(0)
}

// ResultsResult is the result "results".
func (op IfOp) ResultsResult() []*ir.Value {
	return op.ResultGroup(0)
}

// If makes a scf.if: runs one of two regions.
func (b *Builder) If(condition *ir.Value, resultsResultTypes []ir.Type) IfOp {
	op := b.CreateState(If, ir.OpState{Operands: []*ir.Value{condition}, Attrs: nil, Results: resultsResultTypes, Regions: 2})
	return IfOp{op}
}

// YieldOp is a scf.yield: ends a body and gives its values to the operation around it.
type YieldOp struct{ *ir.Op }

// ResultsValue is the operand "results".
func (op YieldOp) ResultsValue() []*ir.Value {
	return op.OperandGroup(0)
}

// Yield makes a scf.yield: ends a body and gives its values to the operation around it.
func (b *Builder) Yield(resultsValue []*ir.Value) YieldOp {
	op := b.CreateState(Yield, ir.OpState{Operands: resultsValue, Attrs: nil, Regions: 0})
	return YieldOp{op}
}
