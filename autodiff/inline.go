package autodiff

import (
	"cmp"
	"slices"
	"strings"

	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// inliner copies the bodies of functions, calls and all, into one block of straight-line code.
type inliner struct {
	module *ir.Op
	params map[string]*ir.Value // what blu.get gives
	stack  []string             // functions being copied
	copies int                  // of functions, so far
	random []drawn
}

// drawn is a random operation that was copied.
type drawn struct {
	op   *ir.Op
	copy int // number of the copy of the function that it is in
}

// number gives each random operation a stream of its own, whatever the order of operations that don't depend on each other: by the copy of
// the function it is in, which follows from the order of calls, and its place in the model's text.
func (in *inliner) number(c *ir.Context) {
	slices.SortStableFunc(in.random, func(a, b drawn) int {
		x, _ := a.op.Attrs().Int("stream")
		y, _ := b.op.Attrs().Int("stream")
		return cmp.Or(cmp.Compare(a.copy, b.copy), cmp.Compare(x, y))
	})
	for i, d := range in.random {
		d.op.SetAttr("stream", c.Int64(int64(i)))
	}
}

// all writes the body of fn with b, and returns what it returns.
func (in *inliner) all(b *ir.Builder, fn *ir.Op, args []*ir.Value) ([]*ir.Value, error) {
	results, err := in.copy(b, fn, args, nil)
	in.number(b.Ctx)
	return results, err
}

// copy writes the body of fn with b, and returns what it returns. site is where fn is called, nil for the outermost.
func (in *inliner) copy(b *ir.Builder, fn *ir.Op, args []*ir.Value, site *ir.Location) ([]*ir.Value, error) {
	name := ir.SymName(fn)
	if slices.Contains(in.stack, name) {
		return nil, &ir.Error{Loc: site, Msg: "recursive call: " + strings.Join(append(in.stack, name), " calls ")}
	}
	in.stack = append(in.stack, name)
	defer func() { in.stack = in.stack[:len(in.stack)-1] }()
	number := in.copies
	in.copies++

	known := map[*ir.Value]*ir.Value{}
	for i, a := range fn.Body().Args() {
		known[a] = args[i]
	}
	for op := range fn.Body().Ops() {
		if op.Has(ir.Terminator) {
			return lookup(known, op.Operands()), nil
		}
		if err := in.copyOp(b, op, known, site, number); err != nil {
			return nil, err
		}
	}
	return nil, fn.Errorf("function %s returns nothing", name)
}

// copyOp copies one operation, whose operands are known, and makes its results known.
func (in *inliner) copyOp(b *ir.Builder, op *ir.Op, known map[*ir.Value]*ir.Value, site *ir.Location, number int) error {
	loc := op.Loc()
	if site != nil {
		loc = b.Ctx.CallSite(loc, site)
	}
	switch {
	case op.Is(fn.Call):
		callee := ir.LookupSymbol(in.module, op.Attrs().Sym("callee"))
		if callee == nil {
			return op.Errorf("no function %q", op.Attrs().Sym("callee"))
		}
		results, err := in.copy(b, callee, lookup(known, op.Operands()), loc)
		if err != nil {
			return err
		}
		for i, v := range results {
			known[op.Result(i)] = v
		}
	case op.Is(blu.Get):
		v := in.params[op.Attrs().Sym("param")]
		if v == nil {
			return op.Errorf("no parameter %q", op.Attrs().Sym("param"))
		}
		known[op.Result(0)] = v
	default:
		n := op.Clone(b.Ctx, known)
		n.SetLoc(loc)
		if n.Has(ir.Random) {
			in.random = append(in.random, drawn{n, number})
		}
		b.Insert(n)
	}
	return nil
}

func lookup(known map[*ir.Value]*ir.Value, vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = known[v]
	}
	return out
}
