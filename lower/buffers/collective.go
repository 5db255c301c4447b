package buffers

import (
	"blutrain/dialects/dtms"
	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/lower/share"
)

// A collective works on memory from its start to its wait, beside the kernels between them: its sources may not be written
// and its destinations not be touched there. So a destination is in use from the start on, a source until the wait, which
// uses it. One that is not split starts and waits at once.

func isCommunication(op *ir.Op) bool {
	return dtms.IsCollective(op) || op.Is(dtms.Start) || op.Is(dtms.Wait)
}

// begun is the value of the operation that begins the collective whose result v is, and its source.
func begun(v *ir.Value) (result, source *ir.Value) {
	i := v.Index()
	if op := v.Op(); op.Is(dtms.Wait) {
		v = op.Operand(i)
	}
	return v, v.Op().Operand(i)
}

// writer is the operation from which on the memory of a value is written.
func writer(v *ir.Value) *ir.Op {
	if v.Op().Is(dtms.Wait) {
		return dtms.StartOf(v.Op())
	}
	return v.Op()
}

// ended is the value that the program reads, which is v but for what a start gives.
func ended(v *ir.Value) *ir.Value {
	if v.Op().Is(dtms.Start) {
		return dtms.WaitOf(v.Op()).Result(v.Index())
	}
	return v
}

// requestCollective asks for the result of a collective to be put at home, and reports whether it will be. A sum is made in
// place if it can be.
func (f *function) requestCollective(v *ir.Value, home *place) bool {
	result, source := begun(v)
	start := result.Op()
	if !home.dense() || f.places[result] != nil {
		return false
	}
	last := f.lastUse[ended(result)]
	if dtms.CallOf(start).Op == dtms.NameAllReduce && f.lastOf(start, source) && f.onlyOnce(start, source) {
		t := tenant{Span: share.Span{First: f.waitIndex(start), Last: last}, values: []*ir.Value{ended(result), result}, over: base(source), place: home}
		if p := f.throughViews(source); f.admits(home.root, t) && (p != nil && p.same(home) || p == nil && f.request(source, home)) {
			home.root.tenants = append(home.root.tenants, t)
			f.places[result], f.places[v] = home, home
			return true
		}
	}
	// The source may not lie in what is written, or the destination would have to wait for it.
	if f.reads(start, home.root) || !f.admit(home, tenant{Span: share.Span{First: f.index[start], Last: last}, values: []*ir.Value{ended(result), result}}) {
		return false
	}
	f.places[result], f.places[v] = home, home
	return true
}

// reads reports whether a source of a collective lies, or will lie, in a root.
func (f *function) reads(start *ir.Op, r *root) bool {
	for _, o := range start.Operands() {
		if p := f.throughViews(o); p != nil && p.root == r {
			return true
		}
	}
	return false
}

// lastOf reports whether nobody reads what a source of a collective is based on once that has begun, but for its wait. Of a
// concatenation others may read the parts.
func (f *function) lastOf(start *ir.Op, source *ir.Value) bool {
	b := base(source)
	return (b.Op() == nil || b.Op().Name() != "blu.concat") && f.usedBefore(start, b)
}

// usedBefore reports whether all uses of a value, through views too, come before an operation, or are that and its wait.
func (f *function) usedBefore(start *ir.Op, v *ir.Value) bool {
	for u := range v.Uses() {
		switch op := u.Owner(); {
		case op == start || op.Is(dtms.Wait) && dtms.StartOf(op) == start:
		case isView(op):
			if !f.usedBefore(start, op.Result(0)) {
				return false
			}
		case op.Name() == "blu.concat" || f.index[op] > f.index[start]:
			return false
		}
	}
	return true
}

// onlyOnce reports whether a source, or what it is based on, is just one operand of a collective.
func (f *function) onlyOnce(start *ir.Op, source *ir.Value) bool {
	n := 0
	for _, o := range start.Operands() {
		if base(o) == base(source) {
			n++
		}
	}
	return n == 1
}

// placeCollective places the results of a collective or its start; those of a wait are where the start put them.
func (f *function) placeCollective(op *ir.Op) {
	if op.Is(dtms.Wait) {
		for i, v := range op.Results() {
			f.places[v] = f.places[op.Operand(i)]
		}
		return
	}
	last := op
	if op.Is(dtms.Start) {
		last = dtms.WaitOf(op)
	}
	for i, v := range op.Results() {
		source := f.sourceOf(op, i, f.index[last])
		p := f.places[v]
		if p == nil {
			p = f.destination(op, i, source)
		}
		f.places[v] = p
		p.root.extend(f.index[op], max(f.index[last], f.lastUse[ended(v)]))
		f.meets[v] = source
	}
}

// sourceOf is the place of source i of a collective: where it lives, or a copy in row-major order that lasts to the end.
func (f *function) sourceOf(op *ir.Op, i, last int) *place {
	v := op.Operand(i)
	p := f.places[v]
	if p.dense() {
		return p
	}
	copied := whole(f.fresh(v.Type(), f.index[op], op.Loc()), v.Shape())
	copied.root.extend(f.index[op], last)
	f.copies = append(f.copies, pending{before: op, src: v, dst: copied})
	return copied
}

// destination is a place for result i of a collective: where its users want it, or its source, or new memory.
func (f *function) destination(op *ir.Op, i int, source *place) *place {
	v := op.Result(i)
	if p := f.wanted(ended(v)); p != nil && p.dense() && !f.reads(op, p.root) {
		f.places[ended(v)] = p
		return p
	}
	free := source.root.space == mem.Arena && source.same(whole(source.root, source.shape)) && f.onlyOnce(op, op.Operand(i))
	if dtms.CallOf(op).Op == dtms.NameAllReduce && free && source.root.Last <= f.waitIndex(op) && f.lastOf(op, op.Operand(i)) {
		return source
	}
	return whole(f.fresh(v.Type(), f.index[op], op.Loc()), v.Shape())
}

// copyEarly copies a result that is based on a collective's home as soon as that has ended, and reports whether that can be: the
// memory it was gathered in is free then, and not only when the function returns.
func (f *function) copyEarly(v *ir.Value, home *place) bool {
	b, ret := base(v), f.fn.Body().Terminator()
	if b.Op() == nil || !isCommunication(b.Op()) || !v.HasOneUse() {
		return false
	}
	next := v.Op().Next()
	if next == ret || !f.admit(home, tenant{Span: share.Span{First: f.index[next], Last: f.index[ret]}}) {
		return false
	}
	f.early[v] = next
	f.copies = append(f.copies, pending{before: next, src: v, dst: home})
	return true
}

// waitIndex is when a collective has ended.
func (f *function) waitIndex(op *ir.Op) int {
	if op.Is(dtms.Start) {
		return f.index[dtms.WaitOf(op)]
	}
	return f.index[op]
}

// dense reports whether the elements lie one after the other in row-major order.
func (p *place) dense() bool {
	want := ir.RowMajor(p.shape)
	for i, n := range p.shape {
		if n > 1 && p.strides[i] != want[i] {
			return false
		}
	}
	return true
}

// communicate writes the beginning and the end of a collective, or both.
func (e *emitter) communicate(op *ir.Op) {
	if op.Is(dtms.Wait) {
		e.wait(dtms.StartOf(op))
		return
	}
	call := dtms.CallOf(op)
	var refs []*ir.Value
	for _, v := range op.Results() {
		refs = append(refs, e.ref(e.f.meets[v], v.Elem()))
	}
	for _, v := range op.Results() {
		refs = append(refs, e.ref(e.f.places[v], v.Elem()))
	}
	c := e.f.ctx
	attrs := []ir.NamedAttr{{Name: "op", Value: c.String(call.Op)}, {Name: "group", Value: c.String(call.Group)}, {Name: "id", Value: c.Int64(e.id(op))}}
	if call.Ranks > 0 {
		attrs = append(attrs, ir.NamedAttr{Name: "ranks", Value: c.Int64(call.Ranks)})
	}
	if call.Op == dtms.NamePermute {
		attrs = append(attrs, ir.NamedAttr{Name: "shift", Value: c.Int64(call.Shift)})
	}
	e.b.CreateState(mem.Collective, ir.OpState{Operands: refs, Attrs: attrs})
	if !op.Is(dtms.Start) {
		e.wait(op)
	}
}

func (e *emitter) wait(start *ir.Op) {
	e.b.CreateState(mem.Wait, ir.OpState{Attrs: []ir.NamedAttr{{Name: "id", Value: e.f.ctx.Int64(e.id(start))}}})
}

// id numbers the collectives of a function in the order in which they begin.
func (e *emitter) id(start *ir.Op) int64 {
	n, known := e.ids[start]
	if !known {
		n = int64(len(e.ids))
		e.ids[start] = n
	}
	return n
}
