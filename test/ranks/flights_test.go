package ranks

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/driver"
	"blutrain/ir"
)

// programs are those of the models on meshes with every kind of collective.
func programs(t *testing.T, f func(name string, program *ir.Op)) {
	t.Helper()
	for model, set := range sizes {
		text, err := os.ReadFile("../../examples/" + model + ".blu")
		require.NoError(t, err)
		for _, o := range []driver.Sharding{
			{Mesh: "dp", Bucket: 4 << 10}, {Mesh: "dp=3", Zero: 1, Bucket: 4 << 10}, {Mesh: "cp=2"}, {Mesh: "cp=2", Context: "ulysses"}, {Mesh: "cp=2", Context: "gather"}, {Mesh: "dp=2,cp=2", Zero: 1},
		} {
			r, err := driver.Compile(model+".blu", text, driver.Options{Target: "cpu", Set: set, Sharding: o})
			require.NoError(t, err)
			program, ok := r.Artifact.File(artifact.ProgramName)
			require.True(t, ok)
			module, err := ir.Parse(dialects.NewContext(), artifact.ProgramName, program)
			require.NoError(t, err)
			f(model+" --mesh "+o.Mesh+" "+o.Context, module)
		}
	}
}

// outs is how many references a launch writes.
func outs(module *ir.Op) func(*ir.Op) int {
	return func(launch *ir.Op) int {
		return int(ir.LookupSymbol(module, launch.Attrs().Sym("kernel")).Attrs().IntOr("outs", 0))
	}
}

// Nothing in flight is overwritten or read too early; and it would be noticed: a wait that comes later than it does, a collective that
// begins earlier, or a launch between the two that writes to what is sent or reads what is to come.
func TestFlights(t *testing.T) {
	begun, late, early, moved := 0, 0, 0, 0
	programs(t, func(name string, module *ir.Op) {
		for fn := range module.Body().Ops() {
			if !fn.Is(exec.Func) {
				continue
			}
			require.NoError(t, exec.CheckFlights(fn, outs(module)), "%s: %s", name, ir.SymName(fn))
			for op := range fn.Body().Ops() {
				if !op.Is(exec.Collective) {
					continue
				}
				begun++
				wait := waitOf(fn, op)
				if refusesMoved(module, fn, wait, fn.Body().Terminator()) {
					late++
				}
				if refusesMoved(module, fn, op, firstStep(fn)) {
					early++
				}
				moved += redirected(t, module, fn, op, wait)
			}
		}
	})
	t.Logf("%d collectives: %d whose wait can't be last, %d that can't begin first; %d launches beside them that may not touch them", begun, late, early, moved)
	require.Greater(t, begun, 100)
	require.Greater(t, late, begun/2)  // others are the last step already
	require.Greater(t, early, begun/2) // others send arguments
	require.Greater(t, moved, 100)
}

func waitOf(fn, begin *ir.Op) *ir.Op {
	for op := begin; op != nil; op = op.Next() {
		if op.Is(exec.Wait) && op.Attrs().IntOr("id", 0) == begin.Attrs().IntOr("id", 0) {
			return op
		}
	}
	return nil
}

// firstStep is where all references are known; program text has them before their first use.
func firstStep(fn *ir.Op) *ir.Op {
	for op := range fn.Body().Ops() {
		if !op.Is(exec.Ref) {
			return op
		}
	}
	return nil
}

// refusesMoved reports whether the function is refused with op in front of another operation. It is as before afterwards.
func refusesMoved(module, fn, op, to *ir.Op) bool {
	if op == to {
		return false
	}
	next := op.Next()
	op.MoveBefore(to)
	refused := exec.CheckFlights(fn, outs(module)) != nil
	op.MoveBefore(next)
	return refused
}

// redirected lets each launch between the beginning and the end of a collective write its source, then read its destination, and counts
// how often; it must be refused each time.
func redirected(t *testing.T, module, fn, begin, wait *ir.Op) (n int) {
	source, destination := begin.Operand(0), begin.Operand(begin.NumOperands()/2)
	for op := begin.Next(); op != wait; op = op.Next() {
		if !op.Is(exec.Launch) {
			continue
		}
		for _, c := range []struct {
			operand int
			to      *ir.Value
		}{{op.NumOperands() - 1, source}, {0, destination}} {
			was := op.Operand(c.operand)
			op.SetOperand(c.operand, c.to)
			require.Error(t, exec.CheckFlights(fn, outs(module)), "%s", ir.SymName(fn))
			op.SetOperand(c.operand, was)
			n++
		}
	}
	return n
}
