package buffers

import (
	"cmp"
	"slices"

	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/lower/share"
)

// request asks for v to be computed at home, through views and concatenations, and reports whether it will be.
func (f *function) request(v *ir.Value, home *place) bool {
	op := v.Op()
	if op == nil || f.places[v] != nil {
		return false
	}
	switch {
	case isView(op):
		p, ok := operandPlace(op, home)
		return ok && f.request(op.Operand(0), p)
	case op.Name() == "blu.concat", op.Name() == "tile.launch":
		if !f.admit(home, f.tenantOf(v)) {
			return false
		}
	case isCommunication(op):
		return f.requestCollective(v, home)
	default:
		return false
	}
	f.places[v] = home
	if op.Name() == "tile.launch" {
		f.requestShared(v, home)
	}
	return true
}

// requestShared asks for what a launch makes v of, where that may be the same memory, to be computed where v is: a sum of several
// terms then grows in its place from the first on.
func (f *function) requestShared(v *ir.Value, home *place) {
	launch := v.Op()
	if home.root.space != mem.State {
		return
	}
	for i, o := range launch.Operands() {
		if o.Type() == v.Type() && share.Allowed(f.kernel(launch), i, launch.NumOperands()+v.Index()) && f.request(o, home) {
			return
		}
	}
}

// tenant is a value in named memory, and how long.
type tenant struct {
	share.Span
	values []*ir.Value // it, and what else is kept in its memory: the parts of a concatenation; none for what is copied there
	writer *ir.Op      // the launch that writes it; nil for others
	over   *ir.Value   // what a collective makes it of in one place
	place  *place
}

// tenantOf is how long a value that an operation makes would be in named memory.
func (f *function) tenantOf(v *ir.Value) tenant {
	t := tenant{Span: share.Span{First: f.index[writer(v)], Last: f.lastUse[v]}, values: []*ir.Value{v}}
	switch op := v.Op(); {
	case op.Name() == "tile.launch":
		t.writer = op
	case op.Name() == "blu.concat": // what reads a part may read it here, and what makes one may write it here
		for _, o := range op.Operands() {
			part := base(o)
			t.values, t.Last = append(t.values, part), max(t.Last, f.lastUse[part])
			if part.Op() != nil {
				t.First = min(t.First, f.tenantOf(part).First)
			}
		}
	}
	return t
}

// admit puts a value into named memory, or reports that it would interfere with what else is put there.
func (f *function) admit(home *place, t tenant) bool {
	t.place = home
	if !f.admits(home.root, t) {
		return false
	}
	home.root.tenants = append(home.root.tenants, t)
	return true
}

func (f *function) admits(r *root, t tenant) bool {
	spans := make([]share.Span, len(r.tenants))
	for i, o := range r.tenants {
		spans[i] = o.Span
	}
	return share.Admits(spans, t.Span, func(i int) bool {
		if o := r.tenants[i]; t.First < o.First {
			return f.handsOver(t, o)
		}
		return f.handsOver(r.tenants[i], t)
	})
}

// handsOver reports whether what writes a tenant reads the one before it only as operands that may share memory with what it
// writes.
func (f *function) handsOver(from, to tenant) bool {
	if to.over != nil && slices.Contains(from.values, to.over) {
		return true
	}
	launch := to.writer
	if launch == nil {
		return false
	}
	kernel, at := f.kernel(launch), 0
	for i, o := range launch.Operands() {
		if !slices.Contains(from.values, base(o)) {
			continue
		}
		at++
		if p := placeIn(o, from); p == nil || !p.same(to.place) || !share.Allowed(kernel, i, launch.NumOperands()+to.values[0].Index()) {
			return false
		}
	}
	return at > 0 // else it is read another way, as part of what is copied
}

// placeIn is the place that views of a tenant's value make of its place, or nil.
func placeIn(v *ir.Value, t tenant) *place {
	return alongViews(v, func(v *ir.Value) *place {
		if v == t.values[0] {
			return t.place
		}
		return nil
	})
}

// throughViews is the place of a value that views make of one that is placed, or nil.
func (f *function) throughViews(v *ir.Value) *place {
	return alongViews(v, func(v *ir.Value) *place { return f.places[v] })
}

// alongViews is the place that views make of the first value they look at whose place is known, or nil.
func alongViews(v *ir.Value, known func(*ir.Value) *place) *place {
	if p := known(v); p != nil {
		return p
	}
	if v.Op() == nil || !isView(v.Op()) {
		return nil
	}
	p := alongViews(v.Op().Operand(0), known)
	if p == nil {
		return nil
	}
	q, ok := viewOf(v.Op(), p)
	if !ok {
		return nil
	}
	return q
}

// base follows views to the value they look at.
func base(v *ir.Value) *ir.Value {
	for v.Op() != nil && isView(v.Op()) {
		v = v.Op().Operand(0)
	}
	return v
}

func (f *function) kernel(launch *ir.Op) *ir.Op {
	return f.spec.kernels[launch.Attrs().Sym("kernel")]
}

// wanted is where the consumers of v would have it: a slice of a concatenation, or such that a later view needs no copy.
// It is nil when nobody minds.
func (f *function) wanted(v *ir.Value) *place {
	if p := f.places[v]; p != nil {
		return p
	}
	if p, known := f.wants[v]; known {
		return p
	}
	f.wants[v] = nil
	var users []*ir.Op
	for u := range v.Uses() {
		users = append(users, u.Owner())
	}
	slices.SortFunc(users, func(a, b *ir.Op) int { return cmp.Compare(f.index[a], f.index[b]) })
	for _, op := range users {
		if p := f.wantedBy(op, v); p != nil {
			f.wants[v] = p
			return p
		}
	}
	return nil
}

func (f *function) wantedBy(op *ir.Op, v *ir.Value) *place {
	switch op.Name() {
	case "blu.concat":
		return f.concatSlice(op, v)
	case "blu.transpose":
		t := op.Result(0)
		if w := f.wanted(t); w != nil {
			return w.transpose(inversePerm(op.Attrs().Ints("perm")))
		}
		if f.reshapedWithCopy(op) {
			return whole(f.fresh(t.Type(), f.index[op], v.Loc()), t.Shape()).transpose(inversePerm(op.Attrs().Ints("perm")))
		}
	case "blu.reshape", "blu.stop_gradient":
		if w := f.wanted(op.Result(0)); w != nil {
			if p, ok := operandPlace(op, w); ok {
				return p
			}
		}
	}
	return nil
}

// concatSlice is v's part of a concatenation it goes into once.
func (f *function) concatSlice(op *ir.Op, v *ir.Value) *place {
	res := op.Result(0)
	axis := op.Attrs().IntOr("axis", 0)
	starts := make([]int64, len(res.Shape()))
	limits := slices.Clone(res.Shape())
	at, found := int64(0), 0
	for _, o := range op.Operands() {
		if o == v {
			found++
			starts[axis], limits[axis] = at, at+v.Shape()[axis]
		}
		at += o.Shape()[axis]
	}
	if found != 1 {
		return nil
	}
	return f.concatPlace(op).slice(starts, limits, nil)
}

func (f *function) concatPlace(op *ir.Op) *place {
	res := op.Result(0)
	if f.places[res] == nil {
		p := f.wanted(res)
		if p == nil {
			p = whole(f.fresh(res.Type(), f.index[op], op.Loc()), res.Shape())
		}
		f.places[res] = p
	}
	return f.places[res]
}

// reshapedWithCopy reports whether a reshape of the transposed value would need a copy if the operand lay row-major.
func (f *function) reshapedWithCopy(transpose *ir.Op) bool {
	natural := whole(nil, transpose.Operand(0).Shape()).transpose(transpose.Attrs().Ints("perm"))
	for u := range transpose.Result(0).Uses() {
		if r := u.Owner(); r.Name() == "blu.reshape" {
			if _, ok := natural.reshape(r.Result(0).Shape()); !ok {
				return true
			}
		}
	}
	return false
}

// placeOp places the results of one operation, whose operands are placed.
func (f *function) placeOp(op *ir.Op) error {
	switch {
	case op.Name() == "tile.launch":
		if f.kernel(op) == nil {
			return op.Errorf("tile.launch: no kernel %s", op.Attr("kernel"))
		}
		f.placeLaunch(op)
	case isView(op):
		f.placeView(op)
	case op.Name() == "blu.concat":
		f.placeConcat(op)
	case isCommunication(op):
		f.placeCollective(op)
	case op.Name() == "blu.constant":
		v := op.Result(0)
		f.places[v] = whole(&root{space: mem.Const, value: op.Attr("value"), typ: f.memref(v.Type()), loc: op.Loc()}, v.Shape())
	case !op.Has(ir.Terminator):
		return op.Errorf("%s is neither a kernel launch nor a collective nor a view", op.Name())
	}
	return nil
}

func (f *function) placeLaunch(op *ir.Op) {
	at := f.index[op]
	taken := map[*root]bool{}
	for i, v := range op.Results() {
		p := f.wanted(v)
		if p == nil {
			p = f.inherit(op, i, taken)
		}
		if p == nil {
			p = f.roomy(v, at, op.Loc())
		}
		f.places[v] = p
		p.root.extend(at, f.lastUse[v])
	}
}

// rowBytes is what rows of a product's operands and results start at multiples of: units move as much at a time. Long rows
// start at multiples of lineBytes, the lines of caches, so that a tile's rows touch no more of them than they fill.
const (
	rowBytes  = 16
	lineBytes = 128
)

// roomy is new memory for a result. Rows are made longer where they aren't multiples of rowBytes: 16-bit ones that a product
// reads, and those of 32 or 16 bits that a product writes and only launches read.
func (f *function) roomy(v *ir.Value, at int, loc *ir.Location) *place {
	shape := v.Shape()
	size, last := ir.ByteSize(v.Elem()), len(shape)-1
	if last < 1 || shape[last]*size%rowBytes == 0 || !(size == 2 && f.multiplied(v) || size <= 4 && f.product(v) && launchesOnly(v, roomyIn(nil, v))) {
		return whole(f.fresh(v.Type(), at, loc), shape)
	}
	return roomyIn(f.fresh(f.ctx.Tensor(lengthened(shape, size), v.Elem()), at, loc), v)
}

// roomyIn is the place of a value in a root whose rows are longer.
func roomyIn(r *root, v *ir.Value) *place {
	shape := v.Shape()
	return whole(r, lengthened(shape, ir.ByteSize(v.Elem()))).slice(make([]int64, len(shape)), shape, nil)
}

// lengthened is a shape whose rows are multiples of rowBytes, or of lineBytes.
func lengthened(shape []int64, size int64) []int64 {
	longer, last := slices.Clone(shape), len(shape)-1
	to := int64(rowBytes)
	if shape[last]*size >= 64*lineBytes {
		to = lineBytes
	}
	longer[last] = (shape[last]*size + to - 1) / to * to / size
	return longer
}

// product reports whether a value is what a product is stored as.
func (f *function) product(v *ir.Value) bool {
	op := v.Op()
	if op == nil || op.Name() != "tile.launch" || f.kernel(op) == nil {
		return false
	}
	for k := range f.kernel(op).Body().Ops() {
		if k.Name() == "tile.contract" {
			return v.Shape()[len(v.Shape())-1] >= longRow
		}
	}
	return false
}

// longRow is how many elements make it worth while to have rows start well.
const longRow = 32

// launchesOnly reports whether a value is read by launches alone, as it lies at p or through views that strides express.
func launchesOnly(v *ir.Value, p *place) bool {
	for u := range v.Uses() {
		op := u.Owner()
		if op.Name() == "tile.launch" {
			continue
		}
		if !isView(op) {
			return false
		}
		if q, ok := viewOf(op, p); !ok || !launchesOnly(op.Result(0), q) {
			return false
		}
	}
	return true
}

// multiplied reports whether a value, or what views make of it, is an operand of a product.
func (f *function) multiplied(v *ir.Value) bool {
	for u := range v.Uses() {
		op := u.Owner()
		if isView(op) && f.multiplied(op.Result(0)) {
			return true
		}
		if op.Name() != "tile.launch" || f.kernel(op) == nil {
			continue
		}
		for w := range f.kernel(op).Body().Arg(u.Index()).Uses() {
			if w.Owner().Name() == "tile.contract" {
				return true
			}
		}
	}
	return false
}

// inherit takes over the memory of an operand that dies in this launch and may share it with result i.
func (f *function) inherit(launch *ir.Op, i int, taken map[*root]bool) *place {
	v := launch.Result(i)
	for k, o := range launch.Operands() {
		p := f.places[o]
		if p.root.space != mem.Arena || taken[p.root] || p.root.Last > f.index[launch] || f.readTwice(launch, p.root) {
			continue
		}
		if o.Type() == v.Type() && fills(p, v) && share.Allowed(f.kernel(launch), k, launch.NumOperands()+i) {
			taken[p.root] = true
			return p
		}
	}
	return nil
}

// fills reports whether a place of a value's shape is all of its root, but for what makes its rows longer, which launches don't mind.
func fills(p *place, v *ir.Value) bool {
	if p.same(whole(p.root, v.Shape())) {
		return true
	}
	return len(v.Shape()) > 1 && slices.Equal(p.root.typ.Shape, lengthened(v.Shape(), ir.ByteSize(v.Elem()))) && p.same(roomyIn(p.root, v)) && launchesOnly(v, p)
}

// readTwice reports whether more than one operand of a launch lies in the root.
func (f *function) readTwice(launch *ir.Op, r *root) bool {
	n := 0
	for _, o := range launch.Operands() {
		if f.places[o].root == r {
			n++
		}
	}
	return n > 1
}

func (f *function) placeView(op *ir.Op) {
	src, v := op.Operand(0), op.Result(0)
	if p, ok := viewOf(op, f.places[src]); ok {
		f.places[v] = p
		if p.root.space == mem.Arena {
			p.root.extend(f.index[op], f.lastUse[v])
		}
		return
	}
	// No strides say it: the operand is copied to row-major memory first, of which every view can be said.
	dense := whole(f.fresh(src.Type(), f.index[op], op.Loc()), src.Shape())
	dense.root.extend(f.index[op], f.lastUse[v])
	f.copies = append(f.copies, pending{before: op, src: src, dst: dense})
	f.places[v], _ = viewOf(op, dense)
}

func (f *function) placeConcat(op *ir.Op) {
	v := op.Result(0)
	whole := f.concatPlace(op)
	whole.root.extend(f.index[op], f.lastUse[v])
	axis := op.Attrs().IntOr("axis", 0)
	starts, limits := make([]int64, len(v.Shape())), slices.Clone(v.Shape())
	for _, o := range op.Operands() {
		limits[axis] = starts[axis] + o.Shape()[axis]
		part := whole.slice(starts, limits, nil)
		if !f.places[o].same(part) {
			f.copies = append(f.copies, pending{before: op, src: o, dst: part})
		}
		starts[axis] = limits[axis]
	}
}
