// Code generated from the table of the dtms dialect; DO NOT EDIT.

package dtms

import "blutrain/ir"

// Builder makes operations of the dtms dialect at an insertion point. Operands that don't fit are a programming error
// and panic; TryCreate says why instead.
type Builder struct{ *ir.Builder }

// AllReduceOp is a dtms.all_reduce: the sum over the ranks of a group.
type AllReduceOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op AllReduceOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Group is the attribute "group": who takes part: world, dp or cp.
func (op AllReduceOp) Group() string {
	return op.Attr("group").(*ir.StringAttr).Value
}

// Ys is the result "ys".
func (op AllReduceOp) Ys() []*ir.Value {
	return op.ResultGroup(0)
}

// AllReduce makes a dtms.all_reduce: the sum over the ranks of a group.
func (b *Builder) AllReduce(xs []*ir.Value, group string) AllReduceOp {
	attrs := []ir.NamedAttr{
		{Name: "group", Value: b.Ctx.String(group)},
	}
	op := b.Create(AllReduce, xs, attrs...)
	return AllReduceOp{op}
}

// ReduceScatterOp is a dtms.reduce_scatter: a rank's own block of the sum over the ranks of a group.
type ReduceScatterOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op ReduceScatterOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Group is the attribute "group": who takes part: world, dp or cp.
func (op ReduceScatterOp) Group() string {
	return op.Attr("group").(*ir.StringAttr).Value
}

// Ranks is the attribute "ranks": the number of ranks of the group.
func (op ReduceScatterOp) Ranks() int64 {
	return op.Attr("ranks").(*ir.IntegerAttr).Value
}

// Ys is the result "ys".
func (op ReduceScatterOp) Ys() []*ir.Value {
	return op.ResultGroup(0)
}

// ReduceScatter makes a dtms.reduce_scatter: a rank's own block of the sum over the ranks of a group.
func (b *Builder) ReduceScatter(xs []*ir.Value, group string, ranks int64) ReduceScatterOp {
	attrs := []ir.NamedAttr{
		{Name: "group", Value: b.Ctx.String(group)},
		{Name: "ranks", Value: b.Ctx.Int64(ranks)},
	}
	op := b.Create(ReduceScatter, xs, attrs...)
	return ReduceScatterOp{op}
}

// AllGatherOp is a dtms.all_gather: what every rank of a group has, in the order of the ranks.
type AllGatherOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op AllGatherOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Group is the attribute "group": who takes part: world, dp or cp.
func (op AllGatherOp) Group() string {
	return op.Attr("group").(*ir.StringAttr).Value
}

// Ranks is the attribute "ranks": the number of ranks of the group.
func (op AllGatherOp) Ranks() int64 {
	return op.Attr("ranks").(*ir.IntegerAttr).Value
}

// Ys is the result "ys".
func (op AllGatherOp) Ys() []*ir.Value {
	return op.ResultGroup(0)
}

// AllGather makes a dtms.all_gather: what every rank of a group has, in the order of the ranks.
func (b *Builder) AllGather(xs []*ir.Value, group string, ranks int64) AllGatherOp {
	attrs := []ir.NamedAttr{
		{Name: "group", Value: b.Ctx.String(group)},
		{Name: "ranks", Value: b.Ctx.Int64(ranks)},
	}
	op := b.Create(AllGather, xs, attrs...)
	return AllGatherOp{op}
}

// AllToAllOp is a dtms.all_to_all: a block to every rank of a group, and one from each.
type AllToAllOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op AllToAllOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Group is the attribute "group": who takes part: world, dp or cp.
func (op AllToAllOp) Group() string {
	return op.Attr("group").(*ir.StringAttr).Value
}

// Ranks is the attribute "ranks": the number of ranks of the group.
func (op AllToAllOp) Ranks() int64 {
	return op.Attr("ranks").(*ir.IntegerAttr).Value
}

// Ys is the result "ys".
func (op AllToAllOp) Ys() []*ir.Value {
	return op.ResultGroup(0)
}

// AllToAll makes a dtms.all_to_all: a block to every rank of a group, and one from each.
func (b *Builder) AllToAll(xs []*ir.Value, group string, ranks int64) AllToAllOp {
	attrs := []ir.NamedAttr{
		{Name: "group", Value: b.Ctx.String(group)},
		{Name: "ranks", Value: b.Ctx.Int64(ranks)},
	}
	op := b.Create(AllToAll, xs, attrs...)
	return AllToAllOp{op}
}

// PermuteOp is a dtms.permute: what the rank `shift` places before has.
type PermuteOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op PermuteOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Group is the attribute "group": who takes part: world, dp or cp.
func (op PermuteOp) Group() string {
	return op.Attr("group").(*ir.StringAttr).Value
}

// Ranks is the attribute "ranks": the number of ranks of the group.
func (op PermuteOp) Ranks() int64 {
	return op.Attr("ranks").(*ir.IntegerAttr).Value
}

// Shift is the attribute "shift": how many ranks further each sends.
func (op PermuteOp) Shift() int64 {
	return op.Attr("shift").(*ir.IntegerAttr).Value
}

// Ys is the result "ys".
func (op PermuteOp) Ys() []*ir.Value {
	return op.ResultGroup(0)
}

// Permute makes a dtms.permute: what the rank `shift` places before has.
func (b *Builder) Permute(xs []*ir.Value, group string, ranks, shift int64) PermuteOp {
	attrs := []ir.NamedAttr{
		{Name: "group", Value: b.Ctx.String(group)},
		{Name: "ranks", Value: b.Ctx.Int64(ranks)},
		{Name: "shift", Value: b.Ctx.Int64(shift)},
	}
	op := b.Create(Permute, xs, attrs...)
	return PermuteOp{op}
}

// StartOp is a dtms.start: begins a collective.
type StartOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op StartOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// OpAttr is the attribute "op": all_reduce, reduce_scatter, all_gather, all_to_all or permute.
func (op StartOp) OpAttr() string {
	return op.Attr("op").(*ir.StringAttr).Value
}

// Group is the attribute "group": who takes part: world, dp or cp.
func (op StartOp) Group() string {
	return op.Attr("group").(*ir.StringAttr).Value
}

// Ranks is the attribute "ranks": the number of ranks of the group.
func (op StartOp) Ranks() (value int64, ok bool) {
	if op.Attr("ranks") == nil {
		return value, false
	}
	return op.Attr("ranks").(*ir.IntegerAttr).Value, true
}

// Shift is the attribute "shift": how many ranks further each sends.
func (op StartOp) Shift() (value int64, ok bool) {
	if op.Attr("shift") == nil {
		return value, false
	}
	return op.Attr("shift").(*ir.IntegerAttr).Value, true
}

// Fs is the result "fs".
func (op StartOp) Fs() []*ir.Value {
	return op.ResultGroup(0)
}

// Start makes a dtms.start: begins a collective.
func (b *Builder) Start(xs []*ir.Value, opAttr, group string, ranks, shift ir.Attr) StartOp {
	attrs := []ir.NamedAttr{
		{Name: "op", Value: b.Ctx.String(opAttr)},
		{Name: "group", Value: b.Ctx.String(group)},
	}
	if ranks != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "ranks", Value: ranks})
	}
	if shift != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "shift", Value: shift})
	}
	op := b.Create(Start, xs, attrs...)
	return StartOp{op}
}

// WaitOp is a dtms.wait: ends a collective that was begun.
type WaitOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op WaitOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Ys is the result "ys".
func (op WaitOp) Ys() []*ir.Value {
	return op.ResultGroup(0)
}

// Wait makes a dtms.wait: ends a collective that was begun.
func (b *Builder) Wait(xs []*ir.Value) WaitOp {
	op := b.Create(Wait, xs, nil...)
	return WaitOp{op}
}
