package blu

import (
	"fmt"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

const randomDoc = "Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011): element i, counted in row-major order, is made from the block " +
	"whose key is the seed and whose counter is i in the low 64 bits and `stream` in the high 64, low words first. The same seed gives the same values " +
	"on every target. The result's type is given. "

var (
	seedOperand = ir.OperandDef{Name: "seed", Type: kinds.IntScalar, Doc: "i64"}
	streamAttr  = ir.AttrDef{Name: "stream", Kind: ir.I64Kind, Doc: "which of the independent sequences of the seed"}
)

// RandomUniform is uniform numbers.
var RandomUniform = define(ir.OpDef{
	Name:        "random_uniform",
	Summary:     "uniform random numbers in [0, 1)",
	Description: randomDoc + "The value is the 24 high bits of the block's first word, times 2^-24.",
	Operands:    []ir.OperandDef{seedOperand},
	Attrs:       []ir.AttrDef{streamAttr},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:      ir.Pure | ir.Random,
	Verify:      verifyRandom,
	Eval:        eval(evalRandomUniform),
})

// RandomNormal is normal numbers.
var RandomNormal = define(ir.OpDef{
	Name:    "random_normal",
	Summary: "normal random numbers",
	Description: randomDoc + "With w0 and w1 the block's first words, u = (w0 + 1) * 2^-32 and t = w1 * 2^-32, the value is " +
		"mean + std * sqrt(-2 ln u) * cos(2 pi t) (Box and Muller), computed in float64 and rounded once to the element type.",
	Operands: []ir.OperandDef{seedOperand},
	Attrs: []ir.AttrDef{streamAttr,
		{Name: "mean", Kind: ir.F64Kind, Doc: "mean of the distribution"},
		{Name: "std", Kind: ir.F64Kind, Doc: "standard deviation, not negative"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:  ir.Pure | ir.Random,
	Verify:  verifyRandom,
	Eval:    eval(evalRandomNormal),
})

func verifyRandom(op *ir.Op) error {
	if t, ok := op.Operand(0).Elem().(*ir.IntegerType); !ok || t.Width != 64 {
		return located(op, fmt.Errorf("seed is %s, expected: i64", op.Operand(0).Elem()))
	}
	if std := op.Attrs().FloatOr("std", 0); !(std >= 0) {
		return located(op, fmt.Errorf("std is %g, it can't be negative", std))
	}
	return nil
}

func evalRandomUniform(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	return random(op, in[0], UniformAt), nil
}

func evalRandomNormal(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	mean, std := op.Attrs().FloatOr("mean", 0), op.Attrs().FloatOr("std", 1)
	return random(op, in[0], func(seed, stream, i uint64) float64 { return mean + std*NormalAt(seed, stream, i) }), nil
}

// UniformAt is element i of random_uniform, exact in f32.
func UniformAt(seed, stream, i uint64) float64 {
	return float64(randomWords(seed, stream, i)[0]>>8) / (1 << 24)
}

// NormalAt is element i of random_normal with mean 0 and standard deviation 1, not yet rounded.
func NormalAt(seed, stream, i uint64) float64 {
	w := randomWords(seed, stream, i)
	u, t := (float64(w[0])+1)/(1<<32), float64(w[1])/(1<<32)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*t)
}

// random fills the result. It is rounded to its type, f32 too, because the same seed is to give the same values everywhere.
func random(op *ir.Op, seed *ir.Tensor, value func(seed, stream, i uint64) float64) *ir.Tensor {
	out := resultTensor(op, 0)
	stream, _ := op.Attrs().Int("stream")
	for i := range out.Data {
		out.Data[i] = round(out.Elem, value(uint64(int64(seed.Data[0])), uint64(stream), uint64(i)))
	}
	return out
}
