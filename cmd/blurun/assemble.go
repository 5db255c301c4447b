package main

import (
	goruntime "runtime"
	"slices"

	"blutrain/runtime"
	"blutrain/runtime/cuda"
)

// assembleCmd is what other commands start to assemble kernels beside them. It isn't for people: kernels come on its standard input.
type assembleCmd struct {
	GPU int `arg:"" help:"Number of the GPU."`
}

// Run implements the command.
func (c *assembleCmd) Run(e *env) error { return cuda.Assemble(c.GPU, e.stdin, e.stdout) }

// mostHelpers is where more processes would only wait for the GPU's driver.
const mostHelpers = 8

// helpers are processes of this program that assemble kernels beside it, for one of so many ranks on this machine: half of its cores.
// Without a cache of the driver's, nothing that they make could be found.
func (e *env) helpers(ranks int) runtime.Helpers {
	if e.program == "" || slices.Contains(e.environ, "CUDA_CACHE_DISABLE=1") {
		return runtime.Helpers{}
	}
	return runtime.Helpers{Command: []string{e.program, "assemble"}, Most: min(mostHelpers, goruntime.GOMAXPROCS(0)/2/max(ranks, 1))}
}
