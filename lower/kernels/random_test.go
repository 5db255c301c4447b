package kernels

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

var programs = flag.Uint64("programs", 300, "random programs to lower")

// Whatever straight-line program is lowered, its kernels compute what it did.
func TestRandomPrograms(t *testing.T) {
	n := *programs
	if testing.Short() {
		n /= 4
	}
	all := targets()
	for seed := range n {
		for _, name := range []string{"cpu", "tiny"} {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				randomProgram(seed).check(t, all[name])
			})
		}
	}
}

// generator writes a random program.
type generator struct {
	*rand.Rand
	b      *blu.Builder
	floats []*ir.Value
	given  []*ir.Value // arguments
	index  []*ir.Value // i32, small
	seed   *ir.Value
}

func randomProgram(seed uint64) *program {
	r := rand.New(rand.NewPCG(seed, 99))
	c := ir.NewContext()
	var args []*ir.Tensor
	for range 2 + r.IntN(3) {
		a := normal(r, randomShape(r)...)
		a.Elem = c.F64() // so that no constant is rounded
		args = append(args, a)
	}
	if r.IntN(2) == 0 {
		narrow(args[0], c.Float(pickOne(r, halves)))
	}
	args = append(args, integers(c, r, 3, 2, 3), integers(c, r, 3, 4))
	s := ir.NewTensor(c.I64())
	s.Data[0] = float64(r.IntN(1 << 30))
	args = append(args, s)
	return build(args, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
		n := len(a)
		given := slices.Clone(a[:n-3])
		given[0] = b.CastTo(given[0], b.Ctx.F64())
		g := &generator{Rand: r, b: b, floats: slices.Clone(given), given: given, index: slices.Clone(a[n-3 : n-1]), seed: a[n-1]}
		for range 3 + r.IntN(25) {
			g.step()
		}
		var results []*ir.Value
		for range 1 + r.IntN(4) {
			results = append(results, pickOne(r, g.floats))
		}
		return append(results, g.floats[len(g.floats)-1])
	})
}

// halves are the types of 16 bits.
var halves = []ir.FloatKind{ir.BF16, ir.F16}

// narrow rounds a tensor's numbers to a type.
func narrow(x *ir.Tensor, elem ir.Type) {
	x.Elem = elem
	for i, v := range x.Data {
		x.Data[i] = ir.DecodeElement(elem, string(ir.EncodeElement(nil, elem, v)))
	}
}

func randomShape(r *rand.Rand) []int64 {
	shape := make([]int64, r.IntN(5))
	for i := range shape {
		shape[i] = int64(1 + r.IntN(5))
		if r.IntN(40) == 0 {
			shape[i] = 0
		}
	}
	return shape
}

func pickOne[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (g *generator) add(v *ir.Value) {
	if ir.NumElements(v.Shape()) <= 600 {
		g.floats = append(g.floats, v)
	}
}

// recent is a value, more likely one computed lately.
func (g *generator) recent() *ir.Value {
	n := len(g.floats)
	if g.IntN(3) > 0 {
		return g.floats[n-1-g.IntN(min(n, 4))]
	}
	return pickOne(g.Rand, g.floats)
}

// like is a value of that shape: one there is, or one brought into shape.
func (g *generator) like(shape []int64) *ir.Value {
	var same []*ir.Value
	for _, v := range g.floats {
		if slices.Equal(v.Shape(), shape) {
			same = append(same, v)
		}
	}
	if len(same) > 0 && g.IntN(4) > 0 {
		return pickOne(g.Rand, same)
	}
	return g.broadcast(shape)
}

// broadcast makes a value of a shape from a smaller one.
func (g *generator) broadcast(shape []int64) *ir.Value {
	for _, i := range g.Perm(len(g.floats)) {
		v := g.floats[i]
		s := v.Shape()
		if len(s) > len(shape) {
			continue
		}
		from := len(shape) - len(s)
		ok := true
		axes := make([]int64, len(s))
		for k, n := range s {
			axes[k] = int64(from + k)
			ok = ok && (n == shape[from+k] || n == 1)
		}
		if ok {
			return g.b.BroadcastTo(v, axes, shape)
		}
	}
	return g.b.Splat(g.b.Ctx.Tensor(shape, g.b.Ctx.F64()), g.NormFloat64())
}

func (g *generator) step() {
	b, x := g.b, g.recent()
	rank := len(x.Shape())
	switch g.IntN(30) {
	case 0, 1, 2:
		g.add(g.unary(x))
	case 3, 4, 5, 6:
		g.add(g.binary(x, g.like(x.Shape())))
	case 7:
		g.add(b.Transpose(x, g.perm(rank)))
	case 8:
		g.add(b.ReshapeTo(x, g.regroup(ir.NumElements(x.Shape()))...))
	case 9, 10:
		g.reduce(x)
	case 11:
		g.slice(x)
	case 12:
		if rank > 0 {
			g.add(b.Concat([]*ir.Value{x, g.like(x.Shape()), x}, int64(g.IntN(rank))))
		}
	case 13:
		low, high := make([]int64, rank), make([]int64, rank)
		for i := range rank {
			low[i], high[i] = int64(g.IntN(3)), int64(g.IntN(2))
		}
		g.add(b.Pad(x, low, high, g.NormFloat64()))
	case 14, 15:
		g.dot(x)
	case 16:
		given := pickOne(g.Rand, g.given)
		x = g.like(given.Shape())
		cond := b.Compare(given, b.SplatLike(given, 0.3), pickOne(g.Rand, blu.Predicates))
		if g.IntN(3) == 0 {
			cond = b.Not(cond)
		}
		g.add(b.Select(cond, x, g.like(x.Shape())))
	case 17:
		if rank > 0 && ir.NumElements(x.Shape()) > 0 {
			g.add(b.Softmax(x, int64(g.IntN(rank))))
		}
	case 18:
		g.norm(x)
	case 19:
		g.indexed(x)
	case 20:
		t := b.Ctx.Tensor(x.Shape(), x.Elem())
		y := b.RandomUniform(g.seed, int64(g.IntN(5)), t)
		g.add(b.Mul(x, y))
	case 21:
		if rank > 0 {
			g.add(b.Add(x, b.Iota(int64(g.IntN(rank)), x.Type())))
		}
	case 22:
		g.crossEntropy(x)
	case 23:
		g.attention()
	case 24:
		g.add(b.CastTo(b.CastTo(x, b.Ctx.Float(pickOne(g.Rand, halves))), b.Ctx.F64()))
	case 25:
		g.add(g.binary(x, b.ReshapeTo(b.Transpose(x, g.perm(rank)), x.Shape()...)))
	case 26, 27, 28, 29:
		if rank > 0 {
			g.shift(x, int64(g.IntN(rank)))
		}
	}
}

func (g *generator) perm(rank int) []int64 {
	perm := make([]int64, rank)
	for i, p := range g.Perm(rank) {
		perm[i] = int64(p)
	}
	return perm
}

// shift moves the elements along an axis, around its end or out of it, and has the result beside what is there: one value is read in two
// arrangements. So is what attention or a cast gave, which come before in many programs.
func (g *generator) shift(x *ir.Value, axis int64) {
	b, n := g.b, x.Shape()[axis]
	if n < 2 {
		return
	}
	if g.IntN(3) == 0 {
		x = g.widened(x)
	}
	by := 1 + g.Int64N(n-1)
	part := func(from, to int64) *ir.Value {
		starts, limits, steps := make([]int64, len(x.Shape())), slices.Clone(x.Shape()), slices.Repeat([]int64{1}, len(x.Shape()))
		starts[axis], limits[axis] = from, to
		return b.Slice(x, starts, limits, steps)
	}
	var moved *ir.Value
	if g.IntN(2) == 0 {
		moved = b.Concat([]*ir.Value{part(by, n), part(0, by)}, axis)
	} else {
		low := make([]int64, len(x.Shape()))
		low[axis] = by
		moved = b.Pad(part(0, n-by), low, make([]int64, len(low)), 0)
	}
	g.add(g.binary(b.Mul(b.Silu(x), x), moved))
}

// widened is a value of 16 bits, given as such if there is one of the shape.
func (g *generator) widened(x *ir.Value) *ir.Value {
	for _, v := range g.given {
		if slices.Equal(v.Shape(), x.Shape()) {
			return v
		}
	}
	return g.b.CastTo(g.b.CastTo(x, g.b.Ctx.Float(pickOne(g.Rand, halves))), g.b.Ctx.F64())
}

func (g *generator) unary(x *ir.Value) *ir.Value {
	b := g.b
	switch g.IntN(9) {
	case 0:
		return b.Tanh(x)
	case 1:
		return b.Sigmoid(x)
	case 2:
		return b.Neg(x)
	case 3:
		return b.Sin(x)
	case 4:
		return b.Gelu(x, "tanh")
	case 5:
		return b.Silu(x)
	case 6:
		return b.Abs(x)
	case 7: // functions with jumps are only asked about what has not been computed: rounding must not decide
		x = pickOne(g.Rand, g.given)
		return b.Floor(b.Mul(x, b.SplatLike(x, 4)))
	}
	return b.Rsqrt(b.Add(b.Mul(x, x), b.SplatLike(x, 1)))
}

func (g *generator) binary(x, y *ir.Value) *ir.Value {
	b := g.b
	switch g.IntN(6) {
	case 0:
		return b.Add(x, y)
	case 1:
		return b.Sub(x, y)
	case 2:
		return b.Mul(b.Tanh(x), y)
	case 3:
		return b.Max(x, y)
	case 4:
		return b.GeluGrad(x, y, "erf")
	}
	return b.Min(y, x)
}

// regroup is a shape of n elements.
func (g *generator) regroup(n int64) []int64 {
	var shape []int64
	if n == 0 {
		return []int64{0, 2}
	}
	for n > 1 && g.IntN(5) > 0 {
		var divisors []int64
		for d := int64(1); d <= n; d++ {
			if n%d == 0 {
				divisors = append(divisors, d)
			}
		}
		d := pickOne(g.Rand, divisors)
		shape = append(shape, d)
		n /= d
	}
	if n > 1 || g.IntN(3) == 0 {
		shape = append(shape, n)
	}
	return shape
}

func (g *generator) reduce(x *ir.Value) {
	b := g.b
	var axes []int64
	for i := range x.Shape() {
		if g.IntN(2) == 0 {
			axes = append(axes, int64(i))
		}
	}
	finite := func(y *ir.Value) *ir.Value { // the maximum of nothing is -inf
		limit := b.SplatLike(y, 1e6)
		return b.Max(b.Min(y, limit), b.Neg(limit))
	}
	switch g.IntN(5) {
	case 0:
		g.add(finite(b.ReduceMax(x, axes)))
	case 1:
		g.add(finite(b.ReduceMin(x, axes)))
	case 2:
		x = pickOne(g.Rand, g.given)
		if n := len(x.Shape()); n > 0 && x.Shape()[n/2] > 0 {
			g.add(b.CastTo(b.Argmax(b.Add(x, b.SplatLike(x, 0.5)), int64(n/2)), x.Elem()))
		}
	default:
		g.add(b.ReduceSum(x, axes))
	}
}

func (g *generator) slice(x *ir.Value) {
	n := len(x.Shape())
	starts, limits, steps := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, d := range x.Shape() {
		steps[i] = int64(1 + g.IntN(2))
		if d == 0 {
			continue
		}
		starts[i] = g.Int64N(d)
		limits[i] = starts[i] + 1 + g.Int64N(d-starts[i])
	}
	g.add(g.b.Slice(x, starts, limits, steps))
}

// dot multiplies x with something made to fit: any axes may be batch, contracted or free.
func (g *generator) dot(x *ir.Value) {
	var batch, contract []int64
	var rest []int64
	for i := range x.Shape() {
		switch g.IntN(4) {
		case 0:
			batch = append(batch, int64(i))
		case 1, 2:
			contract = append(contract, int64(i))
		}
	}
	for range g.IntN(3) {
		rest = append(rest, int64(1+g.IntN(4)))
	}
	var shape []int64
	for _, a := range slices.Concat(batch, contract) {
		shape = append(shape, x.Shape()[a])
	}
	shape = append(shape, rest...)
	order := g.Perm(len(shape))
	turned, at := make([]int64, len(shape)), make([]int64, len(shape))
	for to, from := range order {
		turned[to], at[from] = shape[from], int64(to)
	}
	y := g.like(turned)
	g.add(g.b.Tanh(g.b.Dot(x, y, batch, at[:len(batch)], contract, at[len(batch):len(batch)+len(contract)])))
}

func (g *generator) norm(x *ir.Value) {
	b, rank := g.b, len(x.Shape())
	if rank == 0 || x.Shape()[rank-1] == 0 {
		return
	}
	row := x.Shape()[rank-1:]
	gain, dy := g.like(row), g.like(x.Shape())
	if g.IntN(2) == 0 {
		n := b.Layernorm(x, gain, g.like(row), 1)
		g.add(n.Result(0))
		d := b.LayernormGrad(x, gain, n.Result(1), n.Result(2), dy)
		g.add(d.Result(g.IntN(3)))
		g.add(d.Result(0))
		return
	}
	n := b.Rmsnorm(x, gain, 1)
	d := b.RmsnormGrad(x, gain, n.Result(1), dy)
	g.add(d.Result(1))
	g.add(n.Result(0))
}

func (g *generator) indexed(x *ir.Value) {
	b, idx := g.b, pickOne(g.Rand, g.index)
	s := x.Shape()
	if len(s) > 0 && s[0] >= 3 && g.IntN(2) == 0 {
		g.add(b.Gather(x, idx))
		return
	}
	if k := len(idx.Shape()); len(s) >= k && slices.Equal(s[:k], idx.Shape()) {
		g.add(b.ScatterAdd(x, idx, 3+g.Int64N(3)))
		return
	}
	g.add(b.ScatterAdd(g.like(append(slices.Clone(idx.Shape()), randomShape(g.Rand)...)), idx, 3))
}

func (g *generator) crossEntropy(x *ir.Value) {
	b := g.b
	idx := pickOne(g.Rand, g.index)
	x = g.like(append(slices.Clone(idx.Shape()), 3+g.Int64N(4)))
	ce := b.CrossEntropy(x, idx, g.Int64N(3))
	g.add(b.CrossEntropyGrad(x, idx, ce.Result(2), ce.Result(1), 1))
	for _, r := range ce.Results() {
		g.add(r)
	}
}

func (g *generator) attention() {
	b := g.b
	n := func(limit int) int64 { return int64(1 + g.IntN(limit)) }
	bs, hk, s, t, d, e := n(2), n(2), n(5), n(5), n(3), n(3)
	h := hk * n(2)
	q, k, v := g.like([]int64{bs, h, s, d}), g.like([]int64{bs, hk, t, d}), g.like([]int64{bs, hk, t, e})
	causal := g.IntN(2) == 0
	o := b.Attention(q, k, v, causal, 0.5)
	g.add(o.Result(0))
	grad := b.AttentionGrad(q, k, v, o.Result(0), o.Result(1), g.like(o.Result(0).Shape()), causal, 0.5)
	for _, r := range grad.Results() {
		g.add(r)
	}
}
