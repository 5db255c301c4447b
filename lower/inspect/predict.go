package inspect

import (
	"fmt"
	"io"

	"blutrain/blublas"
)

// predicted is the least time that a launch takes on the GPU that its arch stands for: its floating-point operations on the
// fastest units that the precision allows, or its bytes at the bandwidth of device memory, whichever takes longer, and the
// starts of its kernels. It is 0 for targets that are no GPUs.
func (r *Report) predicted(k *Kernel) float64 {
	if r.Manifest.Target != "cuda" {
		return 0
	}
	d := blublas.DeviceFor(r.Manifest.Arch)
	return float64(k.Steps)*blublas.StepSeconds + max(k.Flops/d.Flops(r.Manifest.Precision), float64(k.Bytes)/d.Bandwidth)
}

// writePredicted prints the sum of each function's launches, and how many kernels they start.
func (r *Report) writePredicted(w io.Writer) {
	if r.Manifest.Target != "cuda" {
		return
	}
	fmt.Fprintf(w, "least time on %s\n", blublas.DeviceFor(r.Manifest.Arch).Name)
	for _, f := range r.Functions {
		seconds, steps := r.Seconds(f.Name)
		fmt.Fprintf(w, "  %s: %.3g ms, %d kernels started\n", f.Name, 1e3*seconds, steps)
	}
}

// Seconds is the least time that a function takes on the GPU that its arch stands for, 0 for targets that are no GPUs, and how many kernels
// it starts.
func (r *Report) Seconds(function string) (seconds float64, steps int) {
	for i := range r.Kernels {
		for _, l := range r.Kernels[i].Functions {
			if l.Function == function {
				seconds += float64(l.Count) * r.predicted(&r.Kernels[i])
				steps += l.Count * r.Kernels[i].Steps
			}
		}
	}
	return seconds, steps
}
