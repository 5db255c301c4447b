package blublas

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
)

// small is a device with few multiprocessors, so that blocks of small products work through several tiles.
func small(target string) Device {
	d := H200
	d.Name, d.SMs = "a small one", 2
	if target != ptx.SM90A {
		d.Target, d.SharedPerBlock = target, int(ptx.SharedLimit(target))
	}
	return d
}

// emulated is a product in the emulator: its kernels, its operands and what its epilogue reads.
type emulated struct {
	g      Gemm
	o      Options
	memory *emulate.Memory
	a, b   []float64 // by their places in memory, as the kernels' operands hold them
	inputs map[string][]float64
	places map[string]*emulate.Buffer
}

// side is an operand: where its numbers are, and the distance of its matrices in a dimension of a batch.
type operandSide struct {
	name   string
	o      Operand
	extent int
	stride func(Batch) int
	x      *[]float64
}

func (e *emulated) sides() [2]operandSide {
	return [2]operandSide{{"a", e.g.A, e.g.M, strideA, &e.a}, {"b", e.g.B, e.g.N, strideB, &e.b}}
}

// matrix is where matrix number i of the batch starts.
func (e *emulated) matrix(s operandSide, i int) (at int) {
	for d := len(e.g.Batch) - 1; d >= 0; d-- {
		at += i % e.g.Batch[d].Size * s.stride(e.g.Batch[d])
		i /= e.g.Batch[d].Size
	}
	return at
}

// at is where an element lies in its matrix.
func (s operandSide) at(row, k int) int {
	if s.o.MNMajor {
		return k*s.o.Pitch + row
	}
	return row*s.o.Pitch + k
}

// with gives a product its extents and layouts ("nt": both K-major), with rows a little longer than they need be.
func with(g Gemm, layout string, m, n, k int) Gemm {
	size, _ := g.elem()
	g.M, g.N, g.K = m, n, k
	pitch := func(n int) int { return ceil(n, 16/size)*(16/size) + 16/size }
	side := func(mnMajor bool, extent int) Operand {
		if mnMajor {
			return Operand{true, pitch(extent)}
		}
		return Operand{false, pitch(k)}
	}
	g.A, g.B = side(layout[0] == 't', m), side(layout[1] == 'n', n)
	return g
}

// prepare makes random operands and puts them into memory.
func prepare(t *testing.T, g Gemm, o Options) *emulated {
	e := &emulated{g: g, o: o, memory: &emulate.Memory{}, inputs: map[string][]float64{}, places: map[string]*emulate.Buffer{}}
	r := rand.New(rand.NewPCG(3, 4))
	normals := func(n int, elem ir.FloatKind) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = nearest(elem, r.NormFloat64())
		}
		return x
	}
	elem := ir.F32
	if g.Precision == BF16 {
		elem = ir.BF16
	}
	for _, s := range e.sides() {
		e.operand(t, s, elem, func() float64 { return nearest(elem, r.NormFloat64()) })
	}
	for _, name := range g.Epilogue.Params {
		elem, n := e.result(name)
		e.places[name] = e.memory.Alloc(n * elemSize(elem))
		switch name {
		case "bias", "saved", "residual":
		case "out":
			if o.Accumulate {
				break
			}
			fallthrough
		default:
			continue
		}
		e.inputs[name] = normals(n, elem)
		e.places[name].Write(0, encode(elem, e.inputs[name]))
	}
	return e
}

// operand puts random matrices into memory, with nothing between the rows, and splits them where the precision has planes.
func (e *emulated) operand(t *testing.T, s operandSide, elem ir.FloatKind, random func() float64) {
	rows, cols := s.extent, e.g.K
	if s.o.MNMajor {
		rows, cols = cols, rows
	}
	last := 0
	for i := range e.g.matrices() {
		last = max(last, e.matrix(s, i))
	}
	n, size := last+rows*s.o.Pitch, elemSize(elem)
	*s.x = make([]float64, n)
	b := e.memory.Alloc(n * size)
	e.places[s.name] = b
	for i := range e.g.matrices() {
		for at := range rows * cols {
			at = e.matrix(s, i) + at/cols*s.o.Pitch + at%cols
			if b.Written(at * size) { // matrices that several products share
				continue
			}
			x := random()
			b.Write(at*size, encode(elem, []float64{x}))
			if e.of(s.name) != nil {
				x = float64(1.5 - float32(x))
			}
			if e.g.Precision == TF32 {
				x = nearestTF32(x, e.g.Unit == WGMMA)
			}
			(*s.x)[at] = x
		}
	}
	if _, planes := e.g.elem(); planes > 1 {
		e.split(t, s.name, b, rows, cols, s.o)
	}
}

// away is a function that is not 0 for what lies beyond a matrix.
var away = &Function{Name: "away", Apply: func(b *ptx.Builder, x *ir.Value) *ir.Value { return b.Binary(ptx.Sub, b.F32(1.5), x) }}

// of is the function of an operand's numbers.
func (e *emulated) of(side string) *Function {
	of := e.g.Of
	if e.g.Refuge != nil {
		of = e.g.Refuge.Of
	}
	if side == "a" {
		return of[0]
	}
	return of[1]
}

// split runs the kernel that makes planes.
func (e *emulated) split(t *testing.T, name string, from *emulate.Buffer, rows, cols int, o Operand) {
	set := Set{Name: name, MNMajor: o.MNMajor}
	m := Matrix{Name: name, Rows: rows, Cols: cols, Pitch: o.Pitch, PlanePitch: o.Pitch, Of: e.of(name), Sets: []Set{set}}
	s := Split{Precision: e.g.Precision, Of: []Matrix{m}, Target: e.g.Target}
	d := small(e.g.Target)
	k, err := s.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), d)
	require.NoError(t, err)
	for p := range s.Planes() {
		e.places[fmt.Sprintf("%s.%d", name, p)] = e.memory.Alloc(int(m.PlaneBytes()))
	}
	if e.g.Precision == FP16x3 {
		e.places[name+".scales"] = e.memory.Alloc(m.ScaleBytes(set))
		e.places[name+".flags"] = e.memory.Alloc(4 * m.Flags(d))
	}
	require.NoError(t, emulate.Launch(e.memory, k.Op, k.Grid, e.params(k)...))
}

// result is the element type and the number of elements of what an epilogue's parameter points to.
func (e *emulated) result(name string) (ir.FloatKind, int) {
	switch name {
	case "bias":
		return ir.F32, e.g.N
	case "sums":
		return ir.F32, ceil(e.g.M, e.g.SumRows()) * e.g.N
	}
	return e.o.Out, e.g.matrices() * e.g.M * e.g.N
}

// kernels builds the product's kernels.
func (e *emulated) kernels(t *testing.T, d Device) []*Kernel {
	c := ir.NewContext(ptx.Dialect)
	k, err := e.g.Build(ir.NewBuilder(c, nil), d)
	require.NoError(t, err)
	all := []*Kernel{k}
	if e.g.SplitK > 1 {
		sum, err := e.g.SumParts(ir.NewBuilder(c, nil), d)
		require.NoError(t, err)
		all = append(all, sum)
		e.places["partials"] = e.memory.Alloc(4 * e.g.SplitK * e.g.matrices() * e.g.M * e.g.N)
	}
	for _, k := range all {
		require.NoError(t, ir.Verify(c, k.Op))
	}
	return all
}

// params are a kernel's.
func (e *emulated) params(k *Kernel) []any {
	var params []any
	for _, p := range k.Params {
		b := e.places[p.Name]
		if p.Map == nil {
			params = append(params, b.Base)
			continue
		}
		dims, strides, box := p.Map.Layout()
		params = append(params, &emulate.TensorMap{Element: p.Map.Element, Base: b.Base + uint64(p.Offset), Dims: dims, Strides: strides, Box: box, Swizzle: 128})
	}
	return params
}

// run runs the kernels; a seed other than 0 has their warps run at random.
func (e *emulated) run(kernels []*Kernel, seed uint64) error {
	for _, k := range kernels {
		p, err := emulate.Compile(k.Op)
		if err != nil {
			return err
		}
		p.Seed = seed
		if err := p.Launch(e.memory, k.Grid, e.params(k)...); err != nil {
			return err
		}
	}
	return nil
}

// wrong compares every result with float64, and says what is wrong first: tolerance is relative to the sum of the products'
// magnitudes.
func (e *emulated) wrong(tolerance float64) string {
	want, slack := e.reference(tolerance)
	for name, w := range want {
		elem, _ := e.result(name)
		b := e.places[name]
		for i, v := range w {
			if !b.Written(i * elemSize(elem)) {
				return fmt.Sprintf("%s[%d, %d] is not written", name, i/e.g.N, i%e.g.N)
			}
			got := decode(elem, b.Data[i*elemSize(elem):])
			allowed := slack[name][i]
			switch elem { // rounding, of what was off before
			case ir.BF16:
				allowed += math.Abs(v) / 256
			case ir.F16:
				allowed += math.Abs(v) / 2048
			}
			if !(math.Abs(got-v) <= allowed) {
				return fmt.Sprintf("%s[%d, %d] is %g, not %g: off by %.3g, %.3g is allowed", name, i/e.g.N, i%e.g.N, got, v, got-v, allowed)
			}
		}
	}
	return ""
}

// reference is the results in float64, and by how much each may be off.
func (e *emulated) reference(tolerance float64) (want, slack map[string][]float64) {
	g, o := e.g, e.o
	names := []string{"out"}
	if o.Keep {
		names = append(names, "kept")
	}
	if o.SumColumns {
		names = append(names, "sums")
	}
	if o.GeluBeside {
		names = append(names, "gelu")
	}
	want, slack = map[string][]float64{}, map[string][]float64{}
	for _, name := range names {
		_, n := e.result(name)
		want[name], slack[name] = make([]float64, n), make([]float64, n)
	}
	sides := e.sides()
	for i := range g.matrices() * g.M * g.N {
		row, col := i/g.N%g.M, i%g.N
		x, size := 0.0, 1e-6
		a, b := e.a[e.matrix(sides[0], i/(g.M*g.N)):], e.b[e.matrix(sides[1], i/(g.M*g.N)):]
		for k := range g.K {
			p := a[sides[0].at(row, k)] * b[sides[1].at(col, k)]
			x += p
			size += math.Abs(p)
		}
		if o.Scale != 0 {
			x *= o.Scale
		}
		if o.Bias {
			x += e.inputs["bias"][col]
		}
		if o.Keep {
			want["kept"][i], slack["kept"][i] = x, tolerance*size
		}
		off := tolerance * (size + math.Abs(x))
		if o.Gelu {
			x = geluValue(x)
			off *= 1.2
		}
		if o.GeluGrad {
			slope := geluSlopeValue(e.inputs["saved"][i])
			off = off*1.2 + 4e-6*math.Abs(x)
			x *= slope
			if o.GeluBeside {
				want["gelu"][i] = geluValue(e.inputs["saved"][i])
				slack["gelu"][i] = 4e-6
			}
		}
		if o.Residual {
			x += e.inputs["residual"][i]
		}
		if o.Accumulate {
			x += e.inputs["out"][i]
		}
		want["out"][i], slack["out"][i] = x, off+1e-7*math.Abs(x)
		if o.SumColumns {
			at := row/g.SumRows()*g.N + col
			want["sums"][at] += x
			slack["sums"][at] += off + 4e-6*math.Abs(x)
		}
	}
	return want, slack
}

func geluValue(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func geluSlopeValue(x float64) float64 {
	c := math.Sqrt(2 / math.Pi)
	y := math.Tanh(c * (x + 0.044715*x*x*x))
	return (1+y)/2 + x/2*(1-y*y)*c*(1+3*0.044715*x*x)
}

func elemSize(elem ir.FloatKind) int {
	if elem == ir.F32 {
		return 4
	}
	return 2
}

func encode(elem ir.FloatKind, xs []float64) []byte {
	var raw []byte
	for _, x := range xs {
		switch elem {
		case ir.F32:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
		case ir.BF16:
			raw = binary.LittleEndian.AppendUint16(raw, ir.BF16Bits(x))
		default:
			raw = binary.LittleEndian.AppendUint16(raw, ir.F16Bits(x))
		}
	}
	return raw
}

func decode(elem ir.FloatKind, raw []byte) float64 {
	switch elem {
	case ir.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	case ir.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw)) << 16))
	}
	return ir.F16Value(binary.LittleEndian.Uint16(raw))
}

func nearest(elem ir.FloatKind, x float64) float64 { return decode(elem, encode(elem, []float64{x})) }

// nearestTF32 is what tf32 keeps of a number: the copy engine rounds ties to even, the instruction away from zero.
func nearestTF32(x float64, even bool) float64 {
	u := math.Float32bits(float32(x))
	if even {
		u += u>>13&1 - 1
	}
	return float64(math.Float32frombits((u + 1<<12) &^ (1<<13 - 1)))
}

// product is a template at a size with an epilogue.
type product struct {
	name      string
	g         Gemm
	o         Options
	tolerance float64
	unfit     bool // a flag says that planes don't hold a number
}

// refugeOf is what is computed of operands that planes don't hold.
func (g Gemm) refugeOf(a, b Operand) *Gemm {
	r := g
	r.Precision, r.Unit, r.A, r.B, r.BN, r.BK, r.Stages, r.Flags, r.Refuge = FP32Strict, SIMT, a, b, 128, 8, 0, [2]int{}, nil
	return &r
}

// backwardOptionsOr is an epilogue with sums where K has no parts.
func backwardOptionsOr(g Gemm, o Options) Options {
	if g.SplitK > 1 {
		return o
	}
	return backwardOptions
}

func (p *product) emulate(t *testing.T, seed uint64) *emulated {
	e := prepare(t, p.g, p.o)
	if p.unfit { // and what planes would come to is wrong
		side := p.g.SplitK % 2
		e.places[[]string{"a.flags", "b.flags"}[side]].Write(4*(p.g.Flags[side]-1), []byte{1, 0, 0, 0})
		e.places["a.0"].Write(0, make([]byte, len(e.places["a.0"].Data)))
	}
	require.NoError(t, e.run(e.kernels(t, small(p.g.Target)), seed))
	require.Empty(t, e.wrong(p.tolerance))
	return e
}

// The epilogues together do everything that there is.
var (
	plainOptions    = Options{Out: ir.F32}
	forwardOptions  = Options{Out: ir.BF16, Scale: 0.5, Bias: true, Gelu: true, Keep: true, SumColumns: true}
	backwardOptions = Options{Out: ir.F32, GeluGrad: true, Residual: true, SumColumns: true}
	sumOptions      = Options{Out: ir.F32, Bias: true, Accumulate: true}
	halfOptions     = Options{Out: ir.F16, Gelu: true, Residual: true}
)

// ofLong is an epilogue whose float32 results are stored as those of a long K are.
func ofLong(o Options) Epilogue {
	e := Standard(o)
	results := e.Results
	e.Results = func(n, _ int) []Read { return results(n, shortest) }
	return e
}

// products is every template in every layout and precision it has, with every epilogue, at sizes that its tiles divide and
// at odd ones, and with fewer k than one stage is deep.
func products() []product {
	var all []product
	// Float32 sums of products that are exact, by how the unit adds: rounded to nearest or truncated, once a step.
	tolerances := map[Precision]float64{FP32Strict: 1e-6, TF32: 4e-6, BF16: 2e-6, FP16x3: 1e-6, BF16x6: 1e-6}
	add := func(g Gemm, layout string, o Options, m, n, k int) {
		p := product{g: with(g, layout, m, n, k), o: o, tolerance: tolerances[g.Precision]}
		p.g.Epilogue = ofLong(o)
		p.name = p.g.Name() + "_" + layout
		if g.Unit != WGMMA {
			p.name += "_" + g.Target
		}
		all = append(all, p)
	}
	for _, layout := range []string{"nt", "nn", "tn"} {
		for _, g := range []Gemm{
			{Precision: FP32Strict, Unit: SIMT, Target: ptx.SM80, BM: 128, BN: 128, BK: 8, Consumers: 2, SplitK: 1}, {Precision: FP32Strict, Unit: SIMT, Target: ptx.SM90A, BM: 128, BN: 256, BK: 16, Consumers: 2, SplitK: 1},
			{Precision: FP32Strict, Unit: SIMT, Target: ptx.SM90A, BM: 128, BN: 128, BK: 8, Consumers: 1, SplitK: 1}, {Precision: FP32Strict, Unit: SIMT, Target: ptx.SM89, BM: 128, BN: 128, BK: 16, Consumers: 1, SplitK: 1},
			{Precision: BF16, Unit: MMA, Target: ptx.SM80, BM: 128, BN: 128, BK: 64, Stages: 3, SplitK: 1}, {Precision: TF32, Unit: MMA, Target: ptx.SM89, BM: 128, BN: 256, BK: 32, Stages: 2, SplitK: 1},
			{Precision: TF32, Unit: MMA, Target: ptx.SM80, BM: 128, BN: 128, BK: 32, Stages: 3, SplitK: 1},
		} {
			add(g, layout, plainOptions, 150, 141, 3*g.BK+5)
			add(g, layout, forwardOptions, 130, 132, 2*g.BK)
			add(g, layout, backwardOptions, 67, 33, 5*g.BK-3)
			g.SplitK = 3
			add(g, layout, sumOptions, 128, g.BN, 4*g.BK+1)
		}
		for _, g := range wgmmaTemplates() {
			if g.Precision == TF32 && layout != "nt" {
				continue
			}
			add(g, layout, plainOptions, 300, 150, 3*g.BK-8)
			if g.SplitK > 1 {
				add(g, layout, sumOptions, 130, 132, 2*g.BK)
				continue
			}
			add(g, layout, forwardOptions, 130, 132, 2*g.BK)
			add(g, layout, backwardOptions, 200, g.BN+8, 4*g.BK+8)
			add(g, layout, halfOptions, 1, 17, 8)
			if layout == "nt" { // rows that the copy engine can store
				add(g, layout, Options{Out: ir.BF16, Bias: true, Gelu: true, Keep: true}, 2*g.BM+70, g.BN+8, 2*g.BK)
				add(g, layout, Options{Out: ir.BF16, GeluGrad: true, GeluBeside: true, SumColumns: true}, 2*g.BM+70, g.BN+8, g.BK)
				add(g, layout, halfOptions, 4*g.BM+70, 2*g.BN, g.BK)
			}
		}
	}
	// What planes don't hold is computed on the float32 units by the same kernel, several tiles a block.
	for _, layout := range []string{"nt", "tn"} {
		for _, g := range []Gemm{
			{Precision: FP16x3, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 128, BK: 64, Stages: 2, Consumers: 2, Cluster: 1, SplitK: 1},
			{Precision: FP16x3, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 192, BK: 64, Stages: 2, Consumers: 2, Cluster: 1, SplitK: 2},
		} {
			for i, of := range []*Function{nil, away} {
				for _, unfit := range []bool{false, true} {
					add(g, layout, backwardOptionsOr(g, Options{Out: ir.F32, Accumulate: true}), 300, 530, 3*g.BK+16*i)
					p := &all[len(all)-1]
					p.g.Flags = [2]int{8, 8}
					p.g.Refuge = p.g.refugeOf(p.g.A, p.g.B)
					p.g.Refuge.Of[g.SplitK%2] = of
					p.unfit, p.name = unfit, fmt.Sprint(p.g.Name(), "_", layout, "_", unfit)
				}
			}
		}
	}
	return append(all, batches()...)
}

// batches is products of several matrices: of two dimensions, in one of which all share an operand.
func batches() []product {
	var all []product
	for _, g := range []Gemm{
		{Precision: FP32Strict, Unit: SIMT, Target: ptx.SM80, BM: 128, BN: 128, BK: 8, Consumers: 2, SplitK: 1}, {Precision: BF16, Unit: MMA, Target: ptx.SM80, BM: 128, BN: 128, BK: 64, Stages: 3, SplitK: 1},
		{Precision: TF32, Unit: MMA, Target: ptx.SM89, BM: 128, BN: 128, BK: 32, Stages: 3, SplitK: 2}, {Precision: TF32, Unit: MMA, Target: ptx.SM90A, BM: 128, BN: 128, BK: 32, Stages: 4, SplitK: 1},
		{Precision: BF16, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 128, BK: 64, Stages: 3, Consumers: 2, Cluster: 1, SplitK: 1, Pingpong: true},
		{Precision: BF16, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 128, BK: 64, Stages: 3, Consumers: 2, Cluster: 2, SplitK: 1},
		{Precision: BF16, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 128, BK: 64, Stages: 3, Consumers: 2, Cluster: 1, SplitK: 2},
	} {
		for _, layout := range []string{"nt", "nn", "tn"} {
			p := product{g: with(g, layout, 40, 50, 2*g.BK+8), o: Options{Out: ir.F32, Residual: true}, tolerance: 4e-6}
			a, b := 40*p.g.A.Pitch, 50*p.g.B.Pitch
			if layout[0] == 't' {
				a = p.g.K * p.g.A.Pitch
			}
			if layout[1] == 'n' {
				b = p.g.K * p.g.B.Pitch
			}
			p.g.Batch = []Batch{{Size: 2, A: 3 * a, B: b}, {Size: 3, A: a}}
			p.g.Epilogue = Standard(p.o)
			p.name = p.g.Name() + "_" + layout + "_" + g.Target
			all = append(all, p)
		}
	}
	// Operands that start anywhere: one element late.
	p := product{g: with(Gemm{Precision: FP32Strict, Unit: SIMT, Target: ptx.SM80, BM: 128, BN: 128, BK: 8, Consumers: 2, SplitK: 1}, "nt", 40, 50, 24), o: plainOptions, tolerance: 1e-6}
	p.g.Batch = []Batch{{Size: 3, A: 40*p.g.A.Pitch + 1, B: 50*p.g.B.Pitch + 3}}
	p.g.Epilogue, p.g.Unaligned = Standard(p.o), [2]bool{true, true}
	p.name = p.g.Name() + "_unaligned"
	return append(all, p)
}

// Copies and transpositions at odd sizes.
func TestCopyEmulated(t *testing.T) {
	for _, size := range []int{2, 4} {
		for _, c := range []Copy{
			{Rows: 45, Cols: 71, Pitch: 73, OutPitch: 80}, {Rows: 45, Cols: 71, Pitch: 73, OutPitch: 80, Transposed: true},
			{Rows: 70, Cols: 132, Pitch: 136, OutPitch: 72, Transposed: true}, {Rows: 70, Cols: 132, Pitch: 136, OutPitch: 72, Transposed: true, Unaligned: true},
			{Rows: 7, Cols: 130, Pitch: 132, OutPitch: 7, Transposed: true},
		} {
			c.Size, c.Target = size, ptx.SM80
			k, err := c.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil))
			require.NoError(t, err)
			m := &emulate.Memory{}
			from, to := m.Alloc(c.Rows*c.Pitch*size), m.Alloc(int(c.Bytes()))
			at := func(row, col int) int { return (row*c.Pitch + col) * size }
			for row := range c.Rows {
				for col := range c.Cols {
					from.Write(at(row, col), binary.LittleEndian.AppendUint32(nil, uint32(row*1000+col))[:size])
				}
			}
			require.NoError(t, emulate.Launch(m, k.Op, k.Grid, from.Base, to.Base))
			for row := range c.Rows {
				for col := range c.Cols {
					out := (row*c.OutPitch + col) * size
					if c.Transposed {
						out = (col*c.OutPitch + row) * size
					}
					require.True(t, to.Written(out))
					require.Equal(t, from.Data[at(row, col):at(row, col)+size], to.Data[out:out+size])
				}
			}
		}
	}
}

// wgmmaTemplates is the shapes of the Hopper kernels.
func wgmmaTemplates() []Gemm {
	var all []Gemm
	by := func(consumers int, p Precision, bm, bn, stages, cluster, split int, pingpong bool) {
		g := Gemm{Precision: p, Unit: WGMMA, Target: ptx.SM90A, BM: bm, BN: bn, BK: 64, Stages: stages, Consumers: consumers, Cluster: cluster, SplitK: split, Pingpong: pingpong}
		if p == TF32 {
			g.BK = 32
		}
		all = append(all, g)
	}
	wgmma := func(p Precision, bm, bn, stages, cluster, split int, pingpong bool) {
		by(2, p, bm, bn, stages, cluster, split, pingpong)
	}
	wgmma(BF16, 128, 128, 3, 1, 1, true)
	wgmma(BF16, 128, 128, 2, 2, 1, false)
	wgmma(BF16, 128, 192, 2, 2, 1, true)
	wgmma(BF16, 64, 192, 2, 2, 2, true)
	wgmma(BF16, 128, 192, 3, 1, 2, false)
	wgmma(BF16, 256, 192, 2, 1, 1, false)
	wgmma(BF16, 64, 256, 2, 1, 1, true)
	wgmma(BF16, 192, 128, 3, 1, 1, true)
	wgmma(BF16, 128, 192, 3, 1, 1, false)
	wgmma(TF32, 128, 128, 3, 1, 1, true)
	wgmma(TF32, 128, 128, 2, 2, 1, false)
	wgmma(FP16x3, 128, 128, 2, 1, 1, false)
	wgmma(FP16x3, 64, 192, 2, 1, 1, true)
	wgmma(FP16x3, 128, 192, 2, 2, 1, false)
	wgmma(BF16x6, 128, 128, 2, 1, 1, false)
	by(3, BF16, 192, 192, 2, 1, 1, false)
	by(3, BF16, 192, 192, 2, 1, 2, false)
	by(3, TF32, 192, 192, 2, 1, 1, false)
	return all
}

// Every template computes what it should in the emulator, which finds nothing wrong with it.
func TestEmulated(t *testing.T) {
	for i, p := range products() {
		if testing.Short() && i%7 != 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.emulate(t, uint64(i%2))
		})
	}
}

// Whatever warps run first, the results are the same to the bit.
func TestAnyOrder(t *testing.T) {
	all := products()
	for i := 1; i < len(all); i += 9 {
		p := all[i]
		if testing.Short() && i%27 != 1 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			want := p.emulate(t, 0)
			for seed := range uint64(3) {
				got := p.emulate(t, seed+1)
				for name, b := range want.places {
					require.Equal(t, b.Data, got.places[name].Data, name)
				}
			}
		})
	}
}
