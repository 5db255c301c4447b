package blublas

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Epilogue is what happens to a product's elements before they are stored. The zero value is not useful: something must
// store.
type Epilogue struct {
	Key    string   // tells epilogues apart in kernel names
	Kind   string   // says in a product's Key what it reads, computes and writes
	Params []string // pointers that the kernel gets for it
	// Fetch reads what is read where results are stored, so that it is on its way before the first one is; nil: nothing is
	// read. Reads is how many registers it takes for each element of a point.
	Fetch func(p *Point)
	Reads int
	// Sources lists what is read of matrices of n columns that the copy engine can bring: matrices, and vectors of an element for each
	// column, whose Row is 0. Elements are 2 or 4 bytes, addresses and rows multiples of 16. Nil: there is nothing. Where a source is
	// Near, Fetch reads it, and Apply reads nothing of it that Fetch hasn't read.
	Sources func(n int) []Read
	// Results lists the matrices of n columns that are written, where the copy engine could store all of them and bring all matrices that are
	// read, and sums go to one parameter; nil: that isn't so, or k numbers are contracted and ByRows says that whole rows are better.
	Results func(n, k int) []Read
	Sums    bool // it sums columns
	Ragged  bool // it gets 4 elements at a time of whatever rows; not all of a row's last ones may be there, see Point.Holds
	// Apply is called for every few consecutive elements of a row.
	Apply func(p *Point, acc []*ir.Value)
}

// Point is a few consecutive elements of one row, in the hands of one thread: 2 in the accumulators' layout; else 4 where rows are
// multiples of 4 elements or the epilogue is Ragged, else 1; 2 or 1 on tensor cores before Hopper.
type Point struct {
	B      *ptx.Builder
	part   *part
	dRow   int       // rows after the part's first
	dCol   int       // columns after it
	inside *ir.Value // the elements are in the matrix; nil where all are
	ready  map[int][]*ir.Value
}

// fetch starts reading what the epilogue reads at some points. Stores would hold the loads back that come after them.
func (e Epilogue) fetch(pts []*Point) {
	if e.Fetch == nil {
		return
	}
	for _, p := range pts {
		e.Fetch(p)
	}
}

// part is a thread's share of a block of the result: elements at fixed distances from its first.
type part struct {
	b        *ptx.Builder
	row, col *ir.Value   // of the first element
	stored   *ir.Value   // the row that addresses of whole results are made of: matrices, and parts of K, follow each other
	batch    []*ir.Value // which matrix it is
	m, n     int         // extents of the matrix
	width    int         // elements in a point
	params   []*ir.Value
	bases    map[address]*ir.Value
	views    map[View]*ir.Value
	known    map[onceKey][]*ir.Value
	columns  map[columnLoad][]*ir.Value
	sums     map[columnLoad][]*ir.Value
	near     *nearby                                     // sources that have been brought to shared memory; nil: none have
	put      func(p *Point, r Read, xs []*ir.Value) bool // takes results that the copy engine stores; nil: it stores none
}

// nearby is the sources that are in shared memory, and how a point's elements of one of them are read.
type nearby struct {
	reads []Read
	load  func(p *Point, source int, elem ir.Type) []*ir.Value
}

type address struct{ param, pitch, size int }

type columnLoad struct{ param, dCol int }

type onceKey struct {
	key        any
	dRow, dCol int
}

func newPart(b *ptx.Builder, row, col *ir.Value, m, n, width int, params []*ir.Value) *part {
	return &part{b: b, row: row, stored: row, col: col, m: m, n: n, width: width, params: params,
		bases: map[address]*ir.Value{}, views: map[View]*ir.Value{}, known: map[onceKey][]*ir.Value{},
		columns: map[columnLoad][]*ir.Value{}, sums: map[columnLoad][]*ir.Value{}}
}

// in says which matrix of a batch, and which part of K, the part is of.
func (t *part) in(at place) *part {
	t.batch = at.batch
	if at.matrix != nil {
		t.stored = t.b.Add(t.row, t.b.MulI(at.matrix, t.m))
	}
	return t
}

// at is the address of the point's first element in a matrix of the given pitch, as a register and a fixed distance.
func (p *Point) at(param, pitch, size int) (base *ir.Value, offset int) {
	key := address{param, pitch, size}
	t := p.part
	if t.bases[key] == nil {
		index := p.B.Add(p.B.MulI(t.stored, pitch), t.col)
		t.bases[key] = p.B.MulWide(index, size, t.params[param])
	}
	return t.bases[key], (p.dRow*pitch + p.dCol) * size
}

// View is how something that an epilogue reads or writes lies in memory: bytes from one row, column and matrix of the
// batch to the next; 0 for what all of them share.
type View struct {
	Param    int
	Row, Col int
	Batch    [MaxBatch]int
}

// Read is a view of bytes that an epilogue reads or writes, and how far from its parameter's address it starts.
type Read struct {
	View
	Offset int64
}

// shortest is the least K for which float32 results are stored from the accumulators' own layout: 256 bytes an instruction in sectors of 8 lines of
// the cache, where whole rows are 512 bytes in 4 lines. Those are better if storing limits a product. Measured, a residual of 16384 x 768:
// K = 768 takes 59 us instead of 54, K = 3072 as long as by rows.
const shortest = 2048

// ByRows reports whether such results of sums of k products are better stored in whole rows.
func ByRows(results []Read, k int) bool {
	halves := slices.ContainsFunc(results, func(r Read) bool { return r.Col < 4 })
	return !halves && k < shortest
}

// Near says whether a source has been brought to shared memory.
func (p *Point) Near(r Read) bool { return p.part.near != nil && slices.Contains(p.part.near.reads, r) }

// Source reads the point's elements of a source that is Near.
func (p *Point) Source(r Read, elem ir.Type) []*ir.Value {
	return p.part.near.load(p, slices.Index(p.part.near.reads, r), elem)
}

// Put hands the point's elements of a result, of its type, to the copy engine; false where the epilogue has to store them itself.
func (p *Point) Put(r Read, xs []*ir.Value) bool { return p.part.put != nil && p.part.put(p, r, xs) }

// At is the address of the point's first element in a view, as a register and a fixed distance.
func (p *Point) At(v View) (base *ir.Value, offset int) {
	t, b := p.part, p.B
	if t.views[v] == nil {
		at := t.params[v.Param]
		for i, index := range t.batch {
			if v.Batch[i] != 0 {
				at = b.MulWide(index, v.Batch[i], at)
			}
		}
		if v.Row != 0 {
			at = b.MulWide(t.row, v.Row, at)
		}
		if v.Col != 0 {
			at = b.MulWide(t.col, v.Col, at)
		}
		t.views[v] = at
	}
	distance := p.dRow*v.Row + p.dCol*v.Col
	if distance < 1<<30 {
		return t.views[v], distance
	}
	return b.Add(t.views[v], b.I64(int64(distance))), 0
}

// Width is how many elements the point has.
func (p *Point) Width() int { return p.part.width }

// Once gives what was made for a key at this point, or makes it: at all points of its row, or its column, where the other
// doesn't matter.
func (p *Point) Once(key any, row, col bool, make func() []*ir.Value) []*ir.Value {
	k := onceKey{key: key}
	if row {
		k.dRow = p.dRow
	}
	if col {
		k.dCol = p.dCol
	}
	known := p.part.known
	if known[k] == nil {
		known[k] = make()
	}
	return known[k]
}

// Inside says whether the point is in the matrix, as far as its row or its column tells; nil where it is sure to be.
func (p *Point) Inside(row, col bool) *ir.Value {
	switch t := p.part; {
	case p.inside == nil || row && col:
		return p.inside
	case row:
		return p.Once("row inside", true, false, func() []*ir.Value {
			return []*ir.Value{p.B.Compare("lo", p.B.AddI(t.row, p.dRow), p.B.I32(t.m))}
		})[0]
	case col:
		return p.Once("column inside", false, true, func() []*ir.Value { return []*ir.Value{p.columnInside()} })[0]
	}
	return nil
}

// Holds says whether element i of a point is in the matrix where its first one is; nil where it is sure to be.
func (p *Point) Holds(i int) *ir.Value {
	t := p.part
	if i == 0 || t.n%t.width == 0 {
		return nil
	}
	return p.Once(holds{i}, false, true, func() []*ir.Value {
		return []*ir.Value{p.B.Compare("lo", p.B.AddI(t.col, p.dCol+i), p.B.I32(t.n))}
	})[0]
}

type holds struct{ i int }

func (t *part) point(dRow, dCol int, inside *ir.Value) *Point {
	return &Point{B: t.b, part: t, dRow: dRow, dCol: dCol, inside: inside, ready: map[int][]*ir.Value{}}
}

// Load reads the point's elements of a row-major matrix with N columns, as f32.
func (p *Point) Load(param int, elem ir.FloatKind) []*ir.Value {
	if xs := p.ready[param]; xs != nil {
		return xs
	}
	size := int(ir.ByteSize(p.B.Ctx.Float(elem)))
	if r := matrixSource(param, p.part.n, size); p.Near(r) {
		return widened(p.B, elem, p.Source(r, p.B.Ctx.Float(elem)))
	}
	base, offset := p.at(param, p.part.n, size)
	return p.read(base, elem, ptx.Access{Space: "global", Offset: offset, If: p.inside})
}

// matrixSource is a row-major matrix of n columns, columnSource a vector of an f32 for each column.
func matrixSource(param, n, size int) Read {
	return Read{View: View{Param: param, Row: n * size, Col: size}}
}

func columnSource(param int) Read { return Read{View: View{Param: param, Col: 4}} }

// read reads width elements as f32.
func (p *Point) read(base *ir.Value, elem ir.FloatKind, a ptx.Access) []*ir.Value {
	b, w := p.B, p.part.width
	if elem == ir.F32 {
		return b.Scalars(b.Load(base, b.Ctx.F32(), w, a))
	}
	if w == 1 {
		return []*ir.Value{widen(b, elem, b.Load(base, b.Ctx.Int(16), 1, a))}
	}
	var xs []*ir.Value
	for _, word := range b.Scalars(b.Load(base, b.Ctx.I32(), w/2, a)) {
		low, high := b.Split(word, b.Ctx.Int(16))
		xs = append(xs, widen(b, elem, low), widen(b, elem, high))
	}
	return xs
}

// widened makes f32 of a type's elements.
func widened(b *ptx.Builder, elem ir.FloatKind, xs []*ir.Value) []*ir.Value {
	if elem == ir.F32 {
		return xs
	}
	return each(xs, func(x *ir.Value) *ir.Value { return widen(b, elem, b.Bitcast(x, b.Ctx.Int(16))) })
}

// widen makes an f32 of 16 bits.
func widen(b *ptx.Builder, elem ir.FloatKind, bits *ir.Value) *ir.Value {
	if elem == ir.BF16 {
		return b.Bitcast(b.Join(b.Const(b.Ctx.Integer(0, b.Ctx.Int(16))), bits), b.Ctx.F32())
	}
	return b.Convert(b.Bitcast(bits, b.Ctx.Float(elem)), b.Ctx.F32(), false)
}

// LoadColumn reads one f32 for each of the point's columns: a bias.
func (p *Point) LoadColumn(param int) []*ir.Value {
	key := columnLoad{param, p.dCol}
	t := p.part
	if t.columns[key] != nil {
		return t.columns[key]
	}
	if r := columnSource(param); p.Near(r) {
		t.columns[key] = p.Source(r, p.B.Ctx.F32())
		return t.columns[key]
	}
	base, offset := p.columnBase(param)
	t.columns[key] = p.read(base, ir.F32, ptx.Access{Space: "global", Offset: offset, If: p.columnInside(), Cache: "nc"})
	return t.columns[key]
}

func (p *Point) columnBase(param int) (*ir.Value, int) {
	key := address{param, 0, 4}
	t := p.part
	if t.bases[key] == nil {
		t.bases[key] = p.B.MulWide(t.col, 4, t.params[param])
	}
	return t.bases[key], p.dCol * 4
}

func (p *Point) columnInside() *ir.Value {
	if p.inside == nil {
		return nil
	}
	return p.B.Compare("lo", p.B.AddI(p.part.col, p.dCol), p.B.I32(p.part.n))
}

// Store writes the point's elements to a row-major matrix with N columns, rounded to elem.
func (p *Point) Store(param int, elem ir.FloatKind, xs []*ir.Value) {
	size := int(ir.ByteSize(p.B.Ctx.Float(elem)))
	if p.part.put != nil && p.Put(matrixSource(param, p.part.n, size), p.rounded(elem, xs)) {
		return
	}
	base, offset := p.at(param, p.part.n, size)
	p.write(base, elem, offset, xs)
}

// rounded is pairs of f32 as elements of a type.
func (p *Point) rounded(elem ir.FloatKind, xs []*ir.Value) (ys []*ir.Value) {
	if elem == ir.F32 {
		return xs
	}
	to := p.B.Ctx.Float(elem)
	for i := 0; i < len(xs); i += 2 {
		low, high := p.B.Split(p.B.Pack(to.String(), xs[i], xs[i+1]), to)
		ys = append(ys, low, high)
	}
	return ys
}

func (p *Point) write(base *ir.Value, elem ir.FloatKind, offset int, xs []*ir.Value) {
	b := p.B
	a := ptx.Access{Space: "global", Offset: offset, If: p.inside}
	if elem == ir.F32 {
		b.Store(base, b.Vector(xs...), a)
		return
	}
	if len(xs) == 1 {
		b.Store(base, b.Convert(xs[0], b.Ctx.Float(elem), false), a)
		return
	}
	format := b.Ctx.Float(elem).String()
	words := make([]*ir.Value, len(xs)/2)
	for i := range words {
		words[i] = b.Pack(format, xs[2*i], xs[2*i+1])
	}
	b.Store(base, b.Vector(words...), a)
}

// SumColumns adds the point's elements to the sums of their columns, of which each block of rows stores one row: see
// Gemm.SumRows.
func (p *Point) SumColumns(param int, xs []*ir.Value) {
	key := columnLoad{param, p.dCol}
	b, sums := p.B, p.part.sums[key]
	for i, x := range xs {
		if p.inside != nil {
			x = b.Select(p.inside, x, b.F32(0))
		}
		if len(sums) <= i {
			sums = append(sums, x)
			continue
		}
		sums[i] = b.Binary(ptx.Add, sums[i], x)
	}
	p.part.sums[key] = sums
}

// sumWarpColumns adds the sums of a point's columns over the 64 rows of a warp, of which lanes `lanes` apart have some, in
// a fixed order, and stores them as row `block` of the sums.
func sumWarpColumns(p *part, lane, block *ir.Value, dCol, lanes int) {
	b := p.b
	for param := range p.params {
		for e, sum := range p.sums[columnLoad{param, dCol}] {
			for d := lanes; d < 32; d *= 2 {
				sum = b.Binary(ptx.Add, sum, b.Do(ptx.Shuffle, []*ir.Value{sum, b.I32(d)}, "mode", "bfly").Result(0))
			}
			column := b.AddI(p.col, dCol+e)
			in := b.And(b.Compare("lo", lane, b.I32(lanes)), b.And(b.Compare("lo", column, b.I32(p.n)), b.Compare("lo", b.MulI(block, 64), b.I32(p.m))))
			b.Store(b.MulWide(b.Add(b.MulI(block, p.n), column), 4, p.params[param]), sum, ptx.Access{Space: "global", If: in})
		}
	}
}

// Options is the epilogue of common products: y = activation(scale * product + bias) + residual, or y = old + ....
type Options struct {
	Out        ir.FloatKind // element type of the result
	Scale      float64      // 0: 1
	Bias       bool         // f32, one for each column
	Gelu       bool         // tanh form
	GeluGrad   bool         // times the derivative of gelu at the saved input
	Keep       bool         // also store what gelu is applied to, in Out's type
	GeluBeside bool         // with GeluGrad: also store gelu of the saved input, in Out's type
	Residual   bool         // of Out's type
	Accumulate bool         // add to what the result holds
	SumColumns bool         // sums of the result's columns over blocks of rows, f32
}

// Standard makes the epilogue. Parameters, those that are asked for: out, bias, saved (gelu's input), kept, residual,
// sums, gelu.
func Standard(o Options) Epilogue {
	e := Epilogue{Key: o.key(), Params: []string{"out"}}
	param := func(name string, wanted bool) int {
		if wanted {
			e.Params = append(e.Params, name)
		}
		return len(e.Params) - 1
	}
	bias, saved, kept := param("bias", o.Bias), param("saved", o.GeluGrad), param("kept", o.Keep)
	residual, sums, beside := param("residual", o.Residual), param("sums", o.SumColumns), param("gelu", o.GeluBeside)
	var reads []int
	for _, r := range []struct {
		wanted bool
		param  int
	}{{o.GeluGrad, saved}, {o.Residual, residual}, {o.Accumulate, 0}} {
		if r.wanted {
			reads = append(reads, r.param)
		}
	}
	e.Reads = len(reads)
	size := map[ir.FloatKind]int{ir.F32: 4, ir.BF16: 2, ir.F16: 2}[o.Out]
	e.Results = func(n, k int) (results []Read) {
		if n*size%16 != 0 {
			return nil
		}
		if o.Keep {
			results = append(results, matrixSource(kept, n, size))
		}
		if o.GeluBeside {
			results = append(results, matrixSource(beside, n, size))
		}
		if results = append(results, matrixSource(0, n, size)); ByRows(results, k) {
			return nil
		}
		return results
	}
	e.Sources = func(n int) (sources []Read) {
		for _, param := range reads {
			if n*size%16 == 0 {
				sources = append(sources, matrixSource(param, n, size))
			}
		}
		if o.Bias {
			sources = append(sources, columnSource(bias))
		}
		return sources
	}
	e.Fetch = func(p *Point) {
		for _, param := range reads {
			p.ready[param] = p.Load(param, o.Out)
		}
		if o.Bias && p.Near(columnSource(bias)) {
			p.LoadColumn(bias)
		}
	}
	e.Sums = o.SumColumns
	e.Apply = func(p *Point, x []*ir.Value) {
		b := p.B
		if o.Scale != 0 {
			x = each(x, func(v *ir.Value) *ir.Value { return b.Binary(ptx.Mul, v, b.F32(o.Scale)) })
		}
		if o.Bias {
			x = pairs(b, ptx.Add, x, p.LoadColumn(bias))
		}
		if o.Keep {
			p.Store(kept, o.Out, x)
		}
		if o.Gelu {
			x = each(x, func(v *ir.Value) *ir.Value { return Gelu(b, v) })
		}
		if o.GeluGrad {
			u := p.Load(saved, o.Out)
			x = pairs(b, ptx.Mul, x, each(u, func(v *ir.Value) *ir.Value { return GeluSlope(b, v) }))
			if o.GeluBeside {
				p.Store(beside, o.Out, each(u, func(v *ir.Value) *ir.Value { return Gelu(b, v) }))
			}
		}
		if o.Residual {
			x = pairs(b, ptx.Add, x, p.Load(residual, o.Out))
		}
		if o.Accumulate {
			x = pairs(b, ptx.Add, p.Load(0, o.Out), x)
		}
		if o.SumColumns {
			p.SumColumns(sums, x)
		}
		p.Store(0, o.Out, x)
	}
	return e
}

func (o Options) key() string {
	key := map[ir.FloatKind]string{ir.F32: "f32", ir.BF16: "bf16", ir.F16: "f16"}[o.Out]
	for _, part := range []struct {
		on   bool
		name string
	}{{o.Scale != 0, "scale"}, {o.Bias, "bias"}, {o.Keep, "keep"}, {o.Gelu, "gelu"}, {o.GeluGrad, "dgelu"}, {o.GeluBeside, "beside"}, {o.Residual, "res"}, {o.Accumulate, "acc"}, {o.SumColumns, "sum"}} {
		if part.on {
			key += "_" + part.name
		}
	}
	return key
}

func each(xs []*ir.Value, f func(*ir.Value) *ir.Value) []*ir.Value {
	ys := make([]*ir.Value, len(xs))
	for i, x := range xs {
		ys[i] = f(x)
	}
	return ys
}

func pairs(b *ptx.Builder, def *ir.OpDef, xs, ys []*ir.Value) []*ir.Value {
	zs := make([]*ir.Value, len(xs))
	for i := range xs {
		zs[i] = b.Binary(def, xs[i], ys[i])
	}
	return zs
}

// gelu(x) = x s with s = (1 + tanh u)/2 = 1/(1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3). The exponential overflows
// to the right limits, and where it or s is subnormal 0 will do. The instruction for tanh is half the work, but won't do even for bf16: its
// error of 2^-11 is all there is where 1 + tanh is nearly 0.
const (
	geluC   = 0.7978845608028654
	geluA   = 0.044715
	geluEx2 = -2 * geluC * 1.4426950408889634 // of exp2
)

// geluGate is s.
func geluGate(b *ptx.Builder, x, xx *ir.Value) *ir.Value {
	u := b.Binary(ptx.Mul, x, b.FMA(xx, b.F32(geluEx2*geluA), b.F32(geluEx2)))
	return b.Unary(ptx.RcpFlushed, b.Binary(ptx.Add, b.Unary(ptx.Exp2Flushed, u), b.F32(1)))
}

// Gelu is gelu in its tanh form.
func Gelu(b *ptx.Builder, x *ir.Value) *ir.Value {
	return b.Binary(ptx.Mul, x, geluGate(b, x, b.Binary(ptx.Mul, x, x)))
}

// GeluSlope is gelu'(x) = s + x s (1 - s) 2u', u' = sqrt(2/pi) (1 + 3 * 0.044715 x^2).
func GeluSlope(b *ptx.Builder, x *ir.Value) *ir.Value {
	xx := b.Binary(ptx.Mul, x, x)
	s := geluGate(b, x, xx)
	ss := b.FMA(b.Unary(ptx.Neg, s), s, s)
	du := b.Binary(ptx.Mul, x, b.FMA(xx, b.F32(2*geluC*3*geluA), b.F32(2*geluC)))
	return b.FMA(ss, du, s)
}
