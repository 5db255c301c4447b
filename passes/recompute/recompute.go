package recompute

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// Mode is how much is recomputed where no budget is given.
type Mode string

// The modes.
const (
	None Mode = "none" // nothing
	Auto Mode = "auto" // what is cheap
	Full Mode = "full" // everything but cuts
)

// Options of Run.
type Options struct {
	Mode    Mode
	Budget  int64 // bytes for parameters, states and the arena of any one function; 0: none, then Mode decides
	Nearest bool  // what a budget is too small for gets the plan of the least memory, not an error
	Target  Target
}

// Report says what was estimated for a function.
type Report struct {
	Function      string
	Before, After int64   // the most bytes in its arena at one time
	Seconds       float64 // that one call is predicted to take
	Added         float64 // what of them is recomputation
	Copies        int     // operations computed twice
}

// Run chooses what to recompute in each function of a module, and rewrites the functions. visit is told of each, unless nil.
func Run(c *ir.Context, module *ir.Op, o Options, visit func(*ir.Op)) ([]Report, error) {
	var reports []Report
	storage := storageOf(module)
	for fn := range module.Body().Ops() {
		if fn.Name() != "func.func" || fn.Body() == nil {
			continue
		}
		if visit != nil {
			visit(fn)
		}
		r, err := function(c, fn, o, storage)
		if err != nil {
			return nil, err
		}
		if r != nil {
			reports = append(reports, *r)
		}
	}
	return reports, nil
}

// function works on one function; the report is nil for one that is not straight-line.
func function(c *ir.Context, fn *ir.Op, o Options, s storage) (*Report, error) {
	g, ok := newGraph(fn, o.Target)
	if !ok {
		return nil, nil
	}
	ch := newChooser(g)
	plan := ch.none()
	switch {
	case o.Budget > 0:
		if plan, ok = ch.within(o.Budget - s.total()); !ok && !o.Nearest {
			return nil, TooLittle(fn, o.Budget, s.params, s.gradients, s.others, plan.peak, 0)
		}
	case o.Mode == Auto:
		plan = ch.auto()
	case o.Mode == Full:
		plan = ch.full()
	}
	r := &Report{Function: ir.SymName(fn), Before: ch.base.peak, After: plan.peak, Seconds: plan.cost, Added: plan.cost - ch.base.cost}
	if len(plan.items) > 0 {
		r.Copies = ch.apply(c, plan)
	}
	return r, nil
}

// Estimate is the most bytes that a function is estimated to need in its arena at one time; ok is false when it is not
// straight-line.
func Estimate(fn *ir.Op, t Target) (bytes int64, ok bool) {
	g, ok := newGraph(fn, t)
	if !ok {
		return 0, false
	}
	m := newMeter(g)
	return m.measure(make([]bool, len(g.ops))).peak, true
}

// storage is the bytes of a module's named storage.
type storage struct{ params, gradients, others int64 }

func storageOf(module *ir.Op) (s storage) {
	for op := range module.Body().Ops() {
		if !op.Is(blu.Param) && !op.Is(blu.State) {
			continue
		}
		t := op.Attr("type").(*ir.TypeAttr).Type.(*ir.TensorType)
		bytes := ir.NumElements(t.Shape) * ir.ByteSize(t.Elem)
		switch {
		case op.Is(blu.Param):
			s.params += bytes
		case op.Attrs().Str("role") == blu.RoleGradient:
			s.gradients += bytes
		default:
			s.others += bytes
		}
	}
	return s
}

func (s storage) total() int64 { return s.params + s.gradients + s.others }

// Storage is the bytes of a module's parameters and states.
func Storage(module *ir.Op) int64 { return storageOf(module).total() }

// TooLittle says why a budget can't be met: a function needs more at least, with what is kept between calls. arena is what its own values
// take, scratch what kernels work in beside them, 0 where that isn't known.
func TooLittle(fn *ir.Op, budget, params, gradients, others, arena, scratch int64) error {
	storage := params + gradients + others
	help := "; a smaller batch needs less"
	if storage > budget {
		help = "; what the model keeps is more than that, whatever the batch"
	}
	work := ""
	if scratch > 0 {
		work = ", beside which kernels work in " + Size(scratch)
	}
	return fn.Errorf("function %s does not fit a memory budget of %s: the least that recomputation leads to is %s, of which parameters are %s, gradients %s, "+
		"optimizer state %s, and the function's own values %s at their peak%s%s",
		ir.SymName(fn), Size(budget), Size(storage+arena+scratch), Size(params), Size(gradients), Size(others), Size(arena), work, help)
}

// Size is bytes as a person reads them: 3 B, 1.50 GiB.
func Size(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	x, u := float64(n)/1024, 0
	for x >= 1024 && u+1 < len(units) {
		x /= 1024
		u++
	}
	return fmt.Sprintf("%.2f %s", x, units[u])
}
