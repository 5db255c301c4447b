package recompute

import (
	"fmt"
	"math"

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
	storage, times := storageOf(module, o.Target), int64(1)
	for fn := range module.Body().Ops() {
		if fn.Name() != "func.func" || fn.Body() == nil {
			continue
		}
		if visit != nil {
			visit(fn)
		}
		r, err := function(c, fn, o, storage, &times)
		if err != nil {
			return nil, err
		}
		if r != nil {
			reports = append(reports, *r)
		}
	}
	return reports, nil
}

// function works on one function; the report is nil for one that is not straight-line. times is how many times as many rows of logits as by
// default are computed at once by the function before it that has gradients of them.
func function(c *ir.Context, fn *ir.Op, o Options, storage Needs, times *int64) (*Report, error) {
	g, ok := newGraph(fn, o.Target)
	if !ok {
		return nil, nil
	}
	ch := newChooser(g)
	plan := ch.none()
	switch {
	case o.Budget > 0:
		if plan, ok = ch.within(o.Budget - storage.total()); !ok && !o.Nearest {
			storage.Arena = plan.peak
			return nil, TooLittle(fn, o.Budget, storage)
		}
	case o.Mode == Auto:
		plan = ch.auto()
	case o.Mode == Full:
		plan = ch.full()
	}
	if g.sumsChunks() {
		if o.Budget == 0 && o.Mode != Full {
			plan = ch.enlarge(plan)
		}
		*times = plan.times
	} else {
		limit := int64(math.MaxInt64)
		if o.Budget > 0 {
			limit = max(plan.peak, o.Budget-storage.total())
		}
		plan = ch.inTimes(plan, *times, limit)
	}
	ch.inRows(c, plan)
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

// Needs is the bytes that a program takes, by what for.
type Needs struct {
	Params, Gradients, Others, Copies int64 // of named storage
	Arena                             int64 // the function's own values, at their peak
	Scratch                           int64 // what kernels work in; 0 where that isn't known
}

func (n Needs) total() int64 {
	return n.Params + n.Gradients + n.Others + n.Copies + n.Arena + n.Scratch
}

// storageOf is the bytes of a module's named storage, those of copies of parameters included that the program is yet to get.
func storageOf(module *ir.Op, t Target) (n Needs) {
	for op := range module.Body().Ops() {
		if !op.Is(blu.Param) && !op.Is(blu.State) {
			continue
		}
		t := op.Attr("type").(*ir.TypeAttr).Type.(*ir.TensorType)
		bytes := ir.NumElements(t.Shape) * ir.ByteSize(t.Elem)
		switch {
		case op.Is(blu.Param):
			n.Params += bytes
		case op.Attrs().Str("role") == blu.RoleGradient:
			n.Gradients += bytes
		case op.Attrs().Str("role") == blu.RoleCopy:
			n.Copies += bytes
		default:
			n.Others += bytes
		}
	}
	copied := map[string]bool{}
	for fn := range module.Body().Ops() {
		if fn.Name() != "func.func" || fn.Body() == nil {
			continue
		}
		r := roundingOf(fn, t)
		for i, a := range fn.Body().Args() {
			if name := blu.ArgPort(fn, i).Name; r.twin(a) && hasCopy(fn, i) && !copied[name] {
				copied[name] = true
				n.Copies += sizeOf(a, roundedBytes)
			}
		}
	}
	return n
}

// Storage is the bytes of a module's parameters and states.
func Storage(module *ir.Op, t Target) int64 { return storageOf(module, t).total() }

// TooLittle says why a budget can't be met: what a function and the storage need at least.
func TooLittle(fn *ir.Op, budget int64, n Needs) error {
	help := "; a smaller batch needs less"
	if n.total()-n.Arena-n.Scratch > budget {
		help = "; what the model keeps is more than that, whatever the batch"
	}
	copies, work := "", ""
	if n.Copies > 0 {
		copies = "copies of parameters " + Size(n.Copies) + ", "
	}
	if n.Scratch > 0 {
		work = ", beside which kernels work in " + Size(n.Scratch)
	}
	return fn.Errorf("function %s does not fit a memory budget of %s: the least that recomputation leads to is %s, of which parameters are %s, gradients %s, "+
		"optimizer state %s, %sand the function's own values %s at their peak%s%s",
		ir.SymName(fn), Size(budget), sizeUp(n.total()), Size(n.Params), Size(n.Gradients), Size(n.Others), copies, Size(n.Arena), work, help)
}

// Size is bytes as a person reads them: 3 B, 1.50 GiB.
func Size(n int64) string { return size(n, math.Round) }

// sizeUp is Size of no less than there is: as a budget, it is enough.
func sizeUp(n int64) string { return size(n, math.Ceil) }

func size(n int64, round func(float64) float64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	x, u := float64(n)/1024, 0
	for x >= 1024 && u+1 < len(units) {
		x /= 1024
		u++
	}
	return fmt.Sprintf("%.2f %s", round(x*100)/100, units[u])
}
