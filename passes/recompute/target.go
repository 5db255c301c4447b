package recompute

import (
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/lower/kernels"
)

// Target is what the estimates need to know of a target.
type Target struct {
	LogitsElems, LogitsRows int64 // logits of more elements are computed so many rows at a time, if not more; twice as many of bfloat16

	Products   map[string]float64 // floating-point operations a second of matrix products, by precision
	Simple     float64            // of all else
	Bandwidth  float64            // bytes a second, read and written
	Start      float64            // seconds that a kernel takes to start
	ColumnSums bool               // products' epilogues add up columns
	// Beside lists the precisions of products that compute elementwise operations beside their epilogue, where they read the same; Planes
	// those of which launches of their own split the operands.
	Beside, Planes []string
	// LargerChunks says that more rows of logits at once may be better: chunks are in no cache as it is.
	LargerChunks bool
	// Copies is how many copies of a chunk of logits' gradient products work on, in precisions where they work on copies.
	Copies map[string]int64
}

// TargetFor describes a target by its name, and by what it is compiled for where there is a choice.
func TargetFor(name, arch string) Target {
	if name != "cuda" {
		k := kernels.CPU()
		return Target{
			LogitsElems: k.LogitsElems, LogitsRows: k.ClassifierRows,
			Products: map[string]float64{"": 2e11}, Simple: 1e11, Bandwidth: 2e10, Start: 5e-6, // in the order of what two cores with AVX-512 do
		}
	}
	k, d := kernels.CUDA(), blublas.DeviceFor(arch)
	t := Target{
		LogitsElems: k.LogitsElems, LogitsRows: k.ClassifierRows,
		Products: map[string]float64{}, Simple: d.Flops("fp32-strict"), Bandwidth: d.Bandwidth, Start: blublas.StepSeconds, ColumnSums: k.GemmColumnSums, Beside: k.Beside, Planes: []string{"fp32"},
		LargerChunks: true, Copies: map[string]int64{"fp32": 2, "tf32": 1},
	}
	for _, p := range []string{"", "fp32", "fp32-strict", "tf32", "bf16"} {
		t.Products[p] = d.Flops(p)
	}
	return t
}

// speed is the floating-point operations a second of a product.
func (t Target) speed(op *ir.Op) float64 {
	if op == nil {
		return t.Simple
	}
	if s, ok := t.Products[op.Attrs().Str(blu.PrecisionAttr)]; ok {
		return s
	}
	return t.Products[""]
}

// products tells how a function's products are computed: as the first is.
func (t Target) products(ops []node) (beside, planes bool, copies int64) {
	for i := range ops {
		if ops[i].role == product {
			p := ops[i].op.Attrs().Str(blu.PrecisionAttr)
			return slices.Contains(t.Beside, p), slices.Contains(t.Planes, p), t.Copies[p]
		}
	}
	return false, false, 0
}
