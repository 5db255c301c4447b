package cuda

import "blutrain/runtime"

// cycle is the floating-point operations that a multiprocessor does in a cycle at most, by precision: of tensor cores where it
// uses them, an addition and a multiplication counted as two (NVIDIA's whitepapers on A100, Ada and H100).
type cycle struct{ fp32, tf32, bf16 float64 }

var cycles = map[[2]int]cycle{{8, 0}: {128, 1024, 2048}, {8, 6}: {256, 512, 1024}, {8, 9}: {256, 512, 1024}, {9, 0}: {256, 2048, 4096}}

// planeProducts is how many products of float16 planes one of float32 takes on Hopper.
const planeProducts = 3

// roof is what a GPU does in a second at its highest clocks: floating-point operations in products of a precision, and bytes to
// and from memory. 0 where that is not known.
func (dev *Device) roof(arch, precision string) (flops, bytes float64) {
	c := cycles[[2]int{dev.Major, dev.Minor}]
	each := c.fp32
	switch {
	case precision == "tf32":
		each = c.tf32
	case precision == "bf16":
		each = c.bf16
	case precision == "fp32" && arch == "sm_90a":
		each = c.bf16 / planeProducts
	}
	hertz := 1e3 * float64(dev.clock)
	return float64(dev.SMs) * hertz * each, 2 * 1e3 * float64(dev.memoryClock) * float64(dev.busBits) / 8
}

var _ runtime.Roofed = (*program)(nil)

// Roof implements runtime.Roofed.
func (p *program) Roof() (flops, bytes float64) {
	return p.ctx.Device.roof(p.manifest.Arch, p.manifest.Precision)
}
