package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"blutrain/blublas"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

// A check is a kernel at one size with one epilogue.
type check struct {
	g       blublas.Gemm
	layout  string
	m, n, k int
	options blublas.Options
}

// gemm is the check's kernel. Its operands lie as with lays them where the list doesn't say.
func (c check) gemm() blublas.Gemm {
	g := c.g
	if g.A.Pitch == 0 {
		g = with(g, c.layout, c.m, c.n, c.k)
	}
	g.Epilogue = blublas.Standard(c.options)
	return g
}

func (b *bench) checks() error {
	for _, c := range checkList() {
		g := c.gemm()
		name := fmt.Sprintf("%s %s", g.Name(), c.layout)
		if !b.wanted("check", name) {
			continue
		}
		r := result{Case: c.layout, Kernel: g.Name()}
		if err := g.Check(b.gpu.Device); err != nil {
			return err
		}
		worst, err := b.check(g, c)
		verdict := "ok"
		switch {
		case err != nil:
			r.Failure = err.Error()
		case !(worst <= c.bound()):
			r.Failure = fmt.Sprintf("error %.3g, at most %.3g allowed", worst, c.bound())
		}
		if r.Failure != "" {
			verdict = "FAILED " + r.Failure
		}
		fmt.Printf("check %-110s %.2e %s\n", name, worst, verdict)
		if !math.IsNaN(worst) && !math.IsInf(worst, 0) { // JSON has neither
			r.Error = worst
		}
		if err := b.keep("check", name, r); err != nil {
			return err
		}
	}
	return nil
}

// normals is fresh random data.
func normals(n int, r *rand.Rand) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// rounded is what the kernel's operands hold of the data.
func rounded(x []float32, g blublas.Gemm) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		switch {
		case g.Precision == blublas.BF16:
			v = math.Float32frombits(uint32(ir.BF16Bits(float64(v))) << 16)
		case g.Precision == blublas.TF32: // nearest: the copy engine takes ties to even, the instruction away from zero
			u := math.Float32bits(v)
			if g.Unit == blublas.WGMMA {
				u += u>>13&1 - 1
			}
			v = math.Float32frombits((u + 1<<12) &^ (1<<13 - 1))
		}
		y[i] = float64(v)
	}
	return y
}

// transposed is the k x r matrix of an r x k one.
func transposed[T any](x []T, rows, cols int) []T {
	y := make([]T, len(x))
	for r := range rows {
		for c := range cols {
			y[c*rows+r] = x[r*cols+c]
		}
	}
	return y
}

// operand puts matrices, each rows x k, on the device one after the other.
func (b *bench) operand(x []float32, rows, k int, o blublas.Operand, p blublas.Precision) (*matrix, error) {
	count := len(x) / (rows * k)
	if !o.MNMajor {
		return b.gpu.upload(p, x, count*rows, k, o)
	}
	var all []float32
	for one := range slices.Chunk(x, rows*k) {
		all = append(all, transposed(one, rows, k)...)
	}
	return b.gpu.upload(p, all, count*k, rows, o)
}

// check runs a kernel twice on fresh data and gives the worst relative error among its results.
func (b *bench) check(g blublas.Gemm, c check) (float64, error) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	a, bt := normals(matrices(g)*g.M*g.K, r), normals(matrices(g)*g.N*g.K, r)
	ma, err := b.operand(a, g.M, g.K, g.A, g.Precision)
	if err != nil {
		return math.NaN(), err
	}
	mb, err := b.operand(bt, g.N, g.K, g.B, g.Precision)
	if err != nil {
		return math.NaN(), err
	}
	s := newSurroundings(g, c.options, r)
	pointers, err := s.upload(b.gpu)
	if err != nil {
		return math.NaN(), err
	}
	runs, owned, err := b.gpu.prepare(g, ma, mb, pointers)
	if err != nil {
		return math.NaN(), err
	}
	want := s.reference(product(rounded(a, g), rounded(bt, g), g.M, g.N, g.K))
	worst := 0.0
	var first [][]byte
	for range 2 {
		if err := s.reset(b.gpu, pointers); err != nil {
			return math.NaN(), err
		}
		if err := b.gpu.Launch(runs); err != nil {
			return math.NaN(), err
		}
		if err := b.gpu.Stream.Synchronize(); err != nil {
			return math.NaN(), err
		}
		got, err := s.download(b.gpu, pointers)
		if err != nil {
			return math.NaN(), err
		}
		for name, w := range want {
			worst = math.Max(worst, frobenius(decode(got[name], s.elem(name)), w))
			if math.IsNaN(worst) {
				return worst, fmt.Errorf("%s: not a number", name)
			}
		}
		if first != nil && !slices.EqualFunc(first, s.list(got), slices.Equal) {
			return worst, fmt.Errorf("two runs differ")
		}
		first = s.list(got)
	}
	return worst, b.gpu.Free(slices.Concat(ma.owned, mb.owned, pointers, owned)...)
}

// product is A B^T in float64 for each pair of matrices, over all cores.
func product(a, bt []float64, m, n, k int) []float64 {
	rows := len(a) / k
	c := make([]float64, rows*n)
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() {
			for j := range n {
				sum := 0.0
				for l := range k {
					sum += a[i*k+l] * bt[(i/m*n+j)*k+l]
				}
				c[i*n+j] = sum
			}
		})
	}
	wg.Wait()
	return c
}

func frobenius(got, want []float64) float64 {
	var diff, norm float64
	for i := range want {
		diff += (got[i] - want[i]) * (got[i] - want[i])
		norm += want[i] * want[i]
	}
	return math.Sqrt(diff / norm)
}

// surroundings is what an epilogue reads and writes beside the product.
type surroundings struct {
	g      blublas.Gemm
	o      blublas.Options
	inputs map[string][]float32
}

func newSurroundings(g blublas.Gemm, o blublas.Options, r *rand.Rand) *surroundings {
	s := &surroundings{g, o, map[string][]float32{}}
	for _, name := range g.Epilogue.Params {
		switch name {
		case "out":
			if !o.Accumulate {
				continue
			}
		case "bias", "saved", "residual":
		default:
			continue
		}
		rows, cols := s.size(name)
		s.inputs[name] = normals(rows*cols, r)
	}
	for name, x := range s.inputs { // they are what the device will hold
		if s.elem(name) != ir.F32 {
			for i, v := range x {
				x[i] = float32(decode(binary.LittleEndian.AppendUint16(nil, bits16(s.o.Out, v)), s.o.Out)[0])
			}
		}
	}
	return s
}

func (s *surroundings) elem(name string) ir.FloatKind {
	if name == "bias" || name == "sums" {
		return ir.F32
	}
	return s.o.Out
}

func (s *surroundings) size(name string) (rows, cols int) {
	rows = matrices(s.g) * s.g.M
	switch name {
	case "bias":
		rows = 1
	case "sums":
		rows = (rows + s.g.SumRows() - 1) / s.g.SumRows()
	}
	return rows, s.g.N
}

func (s *surroundings) bytes(name string) int {
	rows, cols := s.size(name)
	if s.elem(name) == ir.F32 {
		return 4 * rows * cols
	}
	return 2 * rows * cols
}

// guard is poison after each result, which must stay.
const guard = 4096

func (s *surroundings) upload(g *device) ([]cuda.Pointer, error) {
	var ps []cuda.Pointer
	for _, name := range s.g.Epilogue.Params {
		p, err := g.Ctx.Alloc(int64(s.bytes(name) + guard))
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// reset poisons everything with NaN and puts the inputs in place.
func (s *surroundings) reset(g *device, ps []cuda.Pointer) error {
	for i, name := range s.g.Epilogue.Params {
		raw := make([]byte, s.bytes(name)+guard)
		for j := range raw {
			raw[j] = 0xFF
		}
		if x := s.inputs[name]; x != nil {
			rows, cols := s.size(name)
			copy(raw, encode(x, rows, cols, cols, s.elem(name)))
		}
		if err := g.Ctx.Upload(ps[i], raw); err != nil {
			return err
		}
	}
	return nil
}

func (s *surroundings) download(g *device, ps []cuda.Pointer) (map[string][]byte, error) {
	got := map[string][]byte{}
	for i, name := range s.g.Epilogue.Params {
		raw := make([]byte, s.bytes(name)+guard)
		if err := g.Ctx.Download(raw, ps[i]); err != nil {
			return nil, err
		}
		for j, v := range raw[s.bytes(name):] {
			if v != 0xFF {
				return nil, fmt.Errorf("%s: byte %d after its end was written", name, j)
			}
		}
		got[name] = raw[:s.bytes(name)]
	}
	return got, nil
}

func (s *surroundings) list(got map[string][]byte) [][]byte {
	var all [][]byte
	for _, name := range s.g.Epilogue.Params {
		all = append(all, got[name])
	}
	return all
}

func decode(raw []byte, elem ir.FloatKind) []float64 {
	if elem == ir.F32 {
		x := make([]float64, len(raw)/4)
		for i := range x {
			x[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		}
		return x
	}
	x := make([]float64, len(raw)/2)
	for i := range x {
		u := binary.LittleEndian.Uint16(raw[2*i:])
		if elem == ir.BF16 {
			x[i] = float64(math.Float32frombits(uint32(u) << 16))
		} else {
			x[i] = ir.F16Value(u)
		}
	}
	return x
}

// reference is the epilogue's results in float64.
func (s *surroundings) reference(x []float64) map[string][]float64 {
	want := map[string][]float64{}
	n := s.g.N
	out, kept, beside := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
	sums := make([]float64, s.bytes("sums")/4)
	for i, v := range x {
		if s.o.Scale != 0 {
			v *= s.o.Scale
		}
		if s.o.Bias {
			v += float64(s.inputs["bias"][i%n])
		}
		kept[i] = v
		if s.o.Gelu {
			v = gelu(v)
		}
		if s.o.GeluGrad {
			u := float64(s.inputs["saved"][i])
			v *= geluSlope(u)
			beside[i] = gelu(u)
		}
		if s.o.Residual {
			v += float64(s.inputs["residual"][i])
		}
		if s.o.Accumulate {
			v += float64(s.inputs["out"][i])
		}
		out[i] = v
		sums[i/n/s.g.SumRows()*n+i%n] += v
	}
	want["out"] = out
	if s.o.Keep {
		want["kept"] = kept
	}
	if s.o.SumColumns {
		want["sums"] = sums
	}
	if s.o.GeluBeside {
		want["gelu"] = beside
	}
	return want
}

func gelu(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func geluSlope(x float64) float64 {
	c := math.Sqrt(2 / math.Pi)
	t := math.Tanh(c * (x + 0.044715*x*x*x))
	return 0.5*(1+t) + 0.5*x*(1-t*t)*c*(1+3*0.044715*x*x)
}
