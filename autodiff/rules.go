package autodiff

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// rule differentiates one operation.
type rule struct {
	// vjp gives the cotangent of each operand of op from dy, that of its first result. It writes what it needs with r.
	// A nil cotangent, or a missing one at the end, is zero. Those that r does not want may be left nil.
	vjp func(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value
	// linear, of an elementwise operation: each operand's cotangent is finite wherever dy is.
	linear bool
	// selects: the cotangent is zero for what was not taken.
	selects bool
	// mixes: each element of an operand's cotangent combines elements of dy by finite factors, so that zeros in dy no longer
	// tell what was not taken.
	mixes bool
}

// rules by operation. Every operation with the trait Differentiable has a row here; a test holds that.
var rules = map[string]rule{
	blu.Neg.FullName():          {vjp: neg, linear: true},
	blu.Abs.FullName():          {vjp: abs, linear: true},
	blu.Exp.FullName():          {vjp: exp},
	blu.Log.FullName():          {vjp: log},
	blu.Sqrt.FullName():         {vjp: sqrt},
	blu.Rsqrt.FullName():        {vjp: rsqrt},
	blu.Tanh.FullName():         {vjp: tanh},
	blu.Erf.FullName():          {vjp: erf},
	blu.Sigmoid.FullName():      {vjp: sigmoid},
	blu.Sin.FullName():          {vjp: sin},
	blu.Cos.FullName():          {vjp: cos},
	blu.Sign.FullName():         {vjp: zero, linear: true},
	blu.Floor.FullName():        {vjp: zero, linear: true},
	blu.StopGradient.FullName(): {vjp: zero, linear: true},
	blu.Cast.FullName():         {vjp: cast, linear: true},

	blu.Add.FullName():    {vjp: add, linear: true},
	blu.Sub.FullName():    {vjp: sub, linear: true},
	blu.Mul.FullName():    {vjp: mul},
	blu.Div.FullName():    {vjp: div},
	blu.Pow.FullName():    {vjp: pow},
	blu.Max.FullName():    {vjp: maximum, linear: true, selects: true},
	blu.Min.FullName():    {vjp: minimum, linear: true, selects: true},
	blu.Select.FullName(): {vjp: selection, linear: true, selects: true},

	blu.Broadcast.FullName(): {vjp: broadcast},
	blu.Reshape.FullName():   {vjp: reshape},
	blu.Transpose.FullName(): {vjp: transpose},
	blu.Slice.FullName():     {vjp: slice},
	blu.Pad.FullName():       {vjp: pad},
	blu.Concat.FullName():    {vjp: concat},

	blu.ReduceSum.FullName(): {vjp: reduceSum},
	blu.ReduceMax.FullName(): {vjp: reduceExtremum},
	blu.ReduceMin.FullName(): {vjp: reduceExtremum},
	blu.Dot.FullName():       {vjp: dot, mixes: true},

	blu.Gather.FullName():     {vjp: gather},
	blu.ScatterAdd.FullName(): {vjp: scatterAdd},

	blu.Softmax.FullName():      {vjp: softmax, mixes: true},
	blu.LogSoftmax.FullName():   {vjp: logSoftmax, mixes: true},
	blu.Layernorm.FullName():    {vjp: layernorm, mixes: true},
	blu.Rmsnorm.FullName():      {vjp: rmsnorm, mixes: true},
	blu.Gelu.FullName():         {vjp: gelu},
	blu.Silu.FullName():         {vjp: silu},
	blu.Rope.FullName():         {vjp: rope, mixes: true},
	blu.Attention.FullName():    {vjp: attention, mixes: true},
	blu.CrossEntropy.FullName(): {vjp: crossEntropy, mixes: true},
}

// zero is the rule of piecewise constant operations.
func zero(*reverse, *ir.Op, *ir.Value) []*ir.Value { return nil }

// times multiplies by a constant.
func (r *reverse) times(x *ir.Value, factor float64) *ir.Value {
	return r.Mul(x, r.SplatLike(x, factor))
}

// one wraps the cotangent of an operation's only operand, or of its first.
func one(d *ir.Value) []*ir.Value { return []*ir.Value{d} }
