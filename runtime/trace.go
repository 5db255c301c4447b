package runtime

import "time"

// Roofed is a Program that knows what its device does in a second at most: floating-point operations in products of the
// program's precision, and bytes to and from memory; 0 where it doesn't.
type Roofed interface {
	Roof() (flops, bytes float64)
}

// Tracer is a Program that can show each step of a call: what devices offer whose functions are lists of kernel launches.
type Tracer interface {
	Program
	// Trace is Call with a visitor for every step.
	Trace(fn string, in map[string]Array, s Scalars, visit Visitor) (map[string]Array, error)
}

// Visitor is called for each step of a traced call, in order. It must call run once, which executes the step; before and
// after that it may read the step's memory. An error that it returns ends the call.
type Visitor func(step *Step, run func() error) error

// Step is one launch of a kernel, or a copy.
type Step struct {
	Kernel    string  // its name in the program; "" for a copy
	Reference string  // the function of the artifact's reference that it implements; "" for a copy
	Location  string  // the place in the source that it comes from, file:line:col, or ""
	Flops     float64 // floating-point operations of its matrix products

	// Collective is set, and no kernel, where the step begins a collective or waits for one. It has neither inputs nor outputs.
	Collective *Collective

	// Inputs and Outputs are how many tensors the step reads and writes. Read copies one of them, inputs first, whatever
	// its layout in memory.
	Inputs, Outputs int
	Read            func(i int) Array

	// Traffic is set by run.
	Traffic Traffic
}

// Collective is a collective that a step begins, or whose end it waits for.
type Collective struct {
	ID    int64  // which one of the function
	Op    string // all_reduce, reduce_scatter, all_gather, all_to_all, permute
	Group string // world, dp, cp
	Bytes int64  // that this rank gives
	Waits bool   // whether the step is the wait

	// Began and Ended are when it was under way. The run of the step that waits sets them.
	Began, Ended time.Time
}

// Traffic is the bytes a step moves between memory and its registers or caches: what is used again while it is in a
// grid point's reach counts once, what is gone over again counts again. A matrix product counts its operands and its
// result once, whatever its blocking moves.
type Traffic struct {
	Read, Written int64
}

// Add adds up traffic.
func (t *Traffic) Add(u Traffic) {
	t.Read += u.Read
	t.Written += u.Written
}
