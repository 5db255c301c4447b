package runtime

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

	// Inputs and Outputs are how many tensors the step reads and writes. Read copies one of them, inputs first, whatever
	// its layout in memory.
	Inputs, Outputs int
	Read            func(i int) Array

	// Traffic is set by run.
	Traffic Traffic
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
