// Package driver runs the compiler: from a model or a module at any phase to an artifact, phase by phase. The phases are
// the rows of one table, and what they run are rows of another, so that every step can be run alone, printed, timed and
// reproduced. The package prints nothing and writes only where it is told to.
package driver

import (
	"slices"

	"blutrain/autodiff"
	"blutrain/ir"
	"blutrain/lower/buffers"
	"blutrain/lower/host"
	"blutrain/lower/kernels"
	"blutrain/lower/program"
	"blutrain/passes"
)

// Phases is what bluc compile runs, in order.
var Phases = []Phase{
	{Name: "input", Summary: "the model as written, shapes resolved", Run: (*compilation).input},
	{Name: "train", Summary: "the functions of training, forward and backward, as pure programs with explicit state",
		Passes: "train"},
	{Name: "graph", Summary: "folded, deduplicated, precision chosen, recomputation chosen",
		Passes: graphPasses, Sharded: "keep-whole,shard{$MESH}," + precisionPasses + ",narrow," + simplifyPasses + ",defer{bucket=$BUCKET intensity=$INTENSITY},bucket{size=$BUCKET},overlap,copies"},
	{Name: "kernels", Summary: "operations grouped into kernels", Targets: []string{"cpu", "cuda"},
		Passes: "keep-step,kernels{target=$TARGET},cse"},
	{Name: "buffers", Summary: "values placed in memory: lifetimes, in-place, one static arena plan", Targets: []string{"cpu", "cuda"},
		Passes: "buffers{align=$ALIGN}"},
	{Name: "target", Summary: "each kernel lowered, functions as lists of launches", Targets: []string{"cpu"},
		Passes: "program,host"},
	{Name: "target", Summary: "each kernel lowered to PTX, functions as lists of launches", Targets: []string{"cuda"},
		Passes: "program,ptx{arch=$ARCH tuning=$TUNING candidates=$CANDIDATES thread-stores=$STORES memory=$MEMORY}"},
	{Name: "binary", Summary: "the artifact", Run: (*compilation).binary},
}

const (
	precisionPasses = "canonicalize,cse,precision{mode=$PRECISION target=$TARGET}"
	simplifyPasses  = "canonicalize,cse,dce,recompute{$RECOMPUTE}"
	graphPasses     = precisionPasses + "," + simplifyPasses + ",copies"
)

// Phase is one row. What it leaves is in the form that its summary says, and the module's attribute blu.phase has its name.
type Phase struct {
	Name, Summary string
	Targets       []string // those that have the phase; nil: all
	Passes        string   // what runs on the module, as in a pipeline; $PRECISION, $TARGET, $ARCH, $ALIGN, $RECOMPUTE, $MESH, $BUCKET, $INTENSITY, $TUNING, $CANDIDATES, $STORES and $MEMORY stand for options
	Sharded       string   // what runs instead for a mesh of ranks, unless ""
	Run           func(*compilation) error
}

// PhaseAttr is the attribute of a module that says which phase it is the result of.
const PhaseAttr = "blu.phase"

// Targets lists what can be compiled for.
var Targets = []Target{
	{Name: "cpu", Summary: "bytecode for processors", Precisions: []string{"fp32", "fp32-strict", "bf16"}},
	{Name: "cuda", Summary: "PTX for NVIDIA GPUs", Precisions: []string{"fp32", "fp32-strict", "tf32", "bf16"}, Archs: []string{"sm_90a", "sm_89", "sm_80"},
		RunsOn: []string{"GPUs of compute capability 9.0 alone", "8.9 and later", "8.0 and later"}, Align: 256},
	{Name: "ref", Summary: "evaluated operation by operation in float64: the oracle", Precisions: []string{"fp32", "fp32-strict", "bf16"}},
}

// Target is one row.
type Target struct {
	Name, Summary string
	Precisions    []string // the first is the default
	Archs         []string // machines it can be compiled for, the first is the default; nil: no choice
	RunsOn        []string // what programs for each of them run on
	Align         int64    // bytes that offsets in the arena are multiples of; 0: 64
}

// TargetNames lists the names.
func TargetNames() []string {
	var names []string
	for _, t := range Targets {
		names = append(names, t.Name)
	}
	return names
}

// phasesOf lists the phases of a target.
func phasesOf(target string) []Phase {
	return slices.DeleteFunc(slices.Clone(Phases), func(p Phase) bool {
		return p.Targets != nil && !slices.Contains(p.Targets, target)
	})
}

// transformations lists the steps between phases: rooms of their own, run as passes.
var transformations = []passes.Pass{
	{Name: "train", Summary: "differentiate the model: from its functions to those of training", Run: passes.Plain(func(s *passes.State, m *ir.Op) error {
		return autodiff.Train(s.Ctx, m)
	})},
	{Name: "keep-whole", Summary: "keep a copy of the functions in a nested module, as what ranks are compared with", Run: passes.Plain(keepWhole)},
	{Name: "keep-step", Summary: "keep a copy of the functions in a nested module, as the reference", Run: passes.Plain(keepStep)},
	{Name: "kernels", Summary: "group operations into kernels", Options: kernelOptions{Target: "cpu"},
		Run: passes.With(func(s *passes.State, m *ir.Op, o kernelOptions) error {
			return kernels.Run(s.Ctx, m, kernelTargets[o.Target]())
		})},
	{Name: "buffers", Summary: "place values in memory: from tensors to buffers and views", Options: bufferOptions{Align: 64},
		Run: passes.With(func(s *passes.State, m *ir.Op, o bufferOptions) error {
			return buffers.Run(s.Ctx, m, buffers.Options{Align: o.Align})
		})},
	{Name: "program", Summary: "turn functions into lists of launches and copies", After: []passes.After{{Pass: "buffers", Reason: "a launch names the memory it works on"}},
		Run: passes.Plain(func(s *passes.State, m *ir.Op) error { return program.Run(s.Ctx, m) })},
	{Name: "host", Summary: "lower kernels to bytecode for CPUs", After: []passes.After{{Pass: "program", Reason: "tile.launch is for kernels of the tile dialect"}},
		Run: passes.Plain(func(s *passes.State, m *ir.Op) error { return host.Run(s.Ctx, m) })},
	{Name: "ptx", Summary: "lower kernels to PTX for NVIDIA GPUs", After: []passes.After{{Pass: "program", Reason: "how launches place memory decides how kernels access it"}},
		Options: ptxOptions{Arch: "sm_90a", Products: "auto", Tuning: noTable}, Run: passes.With(lowerToPTX)},
}

type kernelOptions struct {
	Target string `help:"what kernels are cut for" enum:"cpu,cuda"`
}

var kernelTargets = map[string]func() kernels.Target{"cpu": kernels.CPU, "cuda": kernels.CUDA}

type ptxOptions struct {
	Arch         string       `help:"the GPUs" enum:"sm_80,sm_89,sm_90a"`
	Tuning       fileName     `help:"the table of measured choices between kernels: a file, shipped or none"`
	Candidates   int          `help:"kernels to make for each choice, so that they can be measured; 0: only the one that is used"`
	ThreadStores bool         `help:"let threads store all results, where the copy engine would store some"`
	Memory       passes.Bytes `help:"what the program may take, beyond which kernels work in as little as they can; 0 is no limit"`
	Products     string       `help:"how matrix products are lowered: by templates where they are predicted to be faster, wherever there is one, or the general way" enum:"auto,templates,general"`
}

type bufferOptions struct {
	Align int64 `help:"bytes that offsets in the arena are multiples of"`
}

// Passes lists every pass.
func Passes() []passes.Pass { return slices.Concat(passes.Table, transformations) }
