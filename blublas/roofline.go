package blublas

// StepSeconds is what starting a kernel of a graph takes, as bench/NOTES.md has it.
const StepSeconds = 2.5e-6

// Flops is the floating-point operations a second of products on the fastest units that a precision allows; those of one that is none
// of bf16, tf32 and fp32 are on the float32 units.
func (d Device) Flops(precision string) float64 {
	perCycle := map[string]float64{"bf16": d.Tensor, "tf32": d.Tensor / 2, "fp32": d.Tensor / 3}[precision]
	if d.Target != H200.Target {
		perCycle *= d.MMA
	}
	return 2 * max(perCycle, d.Float) * d.Clock * float64(d.SMs)
}
