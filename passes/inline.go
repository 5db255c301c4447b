package passes

import (
	"strings"

	"blutrain/dialects/fn"
	"blutrain/ir"
)

// inline replaces calls of private functions by the functions' bodies, callees first, and drops the functions that are
// then unused. Locations become call sites: where the code was written, at where it was called.
func inline(s *State, module *ir.Op) error {
	in := &inliner{State: s, state: map[*ir.Op]progress{}}
	for _, f := range functions(module) {
		if err := in.function(f); err != nil {
			return err
		}
	}
	for dropSymbols(s, module) {
	}
	return nil
}

// functions lists the functions inside an operation.
func functions(op *ir.Op) []*ir.Op {
	if op.Is(fn.Func) {
		return []*ir.Op{op}
	}
	var fs []*ir.Op
	ir.Walk(op, func(o *ir.Op) ir.WalkResult {
		if o.Is(fn.Func) {
			fs = append(fs, o)
			return ir.Skip
		}
		return ir.Advance
	})
	return fs
}

type progress uint8

const (
	unvisited progress = iota
	underway
	done
)

type inliner struct {
	*State
	state map[*ir.Op]progress
	path  []*ir.Op // calls on the way to the function being worked on
}

// function inlines all calls in f, after those in the functions it calls.
func (in *inliner) function(f *ir.Op) error {
	if in.state[f] == done {
		return nil
	}
	in.state[f] = underway
	var calls []*ir.Op
	in.Walk(f, func(op *ir.Op) ir.WalkResult {
		if callee := inlinable(op); callee != nil {
			calls = append(calls, op)
		}
		return ir.Advance
	})
	for _, call := range calls {
		callee := inlinable(call)
		if in.state[callee] == underway {
			return in.recursion(call, callee)
		}
		in.path = append(in.path, call)
		err := in.function(callee)
		in.path = in.path[:len(in.path)-1]
		if err != nil {
			return err
		}
		in.Visit(call)
		in.call(call, callee)
	}
	in.state[f] = done
	return nil
}

// inlinable is the private function of one block that op calls, or nil.
func inlinable(op *ir.Op) *ir.Op {
	if !op.Is(fn.Call) {
		return nil
	}
	callee := fn.Callee(op)
	if callee == nil || !callee.Is(fn.Func) || !ir.IsPrivate(callee) || len(callee.Region(0).Blocks()) != 1 {
		return nil
	}
	return callee
}

// recursion says which functions lead from callee back to itself.
func (in *inliner) recursion(call, callee *ir.Op) error {
	var chain []string
	for _, c := range append(in.path[:len(in.path):len(in.path)], call) {
		f := c.ParentOfKind(fn.Func)
		if f == callee {
			chain = nil
		} else {
			chain = append(chain, "@"+ir.SymName(f))
		}
	}
	msg := "function @" + ir.SymName(callee) + " calls itself"
	if len(chain) > 0 {
		msg += " by way of " + strings.Join(chain, ", ")
	}
	return call.Errorf("%s: it can't be inlined", msg).WithNote(callee.Loc(), "defined here")
}

// call puts a copy of the callee's body in place of the call.
func (in *inliner) call(call, callee *ir.Op) {
	mapping := map[*ir.Value]*ir.Value{}
	for i, a := range callee.Body().Args() {
		mapping[a] = call.Operand(i)
	}
	b := ir.NewBuilder(in.Ctx, nil).Before(call)
	for op := range callee.Body().Ops() {
		if op.Is(fn.Return) {
			results := op.Operands()
			for i, v := range results {
				if m, ok := mapping[v]; ok {
					results[i] = m
				}
			}
			call.ReplaceWith(results...)
			return
		}
		n := op.Clone(in.Ctx, mapping)
		ir.Walk(n, func(o *ir.Op) ir.WalkResult {
			o.SetLoc(in.Ctx.CallSite(o.Loc(), call.Loc()))
			return ir.Advance
		})
		b.Insert(n)
	}
}
