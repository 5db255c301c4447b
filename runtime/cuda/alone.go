package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/runtime"
)

var _ runtime.Bencher = (*program)(nil)

// DeviceName implements runtime.Bencher.
func (p *program) DeviceName() string { return p.ctx.Device.Name }

// Launches implements runtime.Bencher.
func (p *program) Launches(fn string) map[string]int {
	n := map[string]int{}
	if f := p.functions[fn]; f != nil {
		for _, s := range f.steps {
			if s.kernel != nil {
				n[s.kernel.name]++
			}
		}
	}
	return n
}

// Load implements runtime.Bencher.
func (p *program) Load(kernels []string) error {
	f := &function{p: p}
	for _, name := range kernels {
		k := p.kernels[name]
		if k == nil {
			return fmt.Errorf("the program has no kernel %s", name)
		}
		f.steps = append(f.steps, step{kernel: k})
	}
	return p.assemble(f)
}

// alone is a runtime.Alone: a function of a launch for each kernel, with memory of its own.
type alone struct {
	*function
	memory     []Pointer
	sets       [2][]Pointer // outputs: of the first kernel, of the others
	extents    []runtime.Extent
	read       [2]*pinned
	rows       map[row]*graph // launches in a row
	begin, end *Event
}

// row is so many launches of a kernel.
type row struct{ kernel, launches int }

// readBytes is what Read gives at most.
const readBytes = 32 << 20

// Alone implements runtime.Bencher.
func (p *program) Alone(kernels []string, normal []float64, seed uint64) (runtime.Alone, error) {
	a := &alone{function: &function{p: p}, rows: map[row]*graph{}}
	if err := a.prepare(kernels, normal, rand.New(rand.NewPCG(seed, 1))); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *alone) prepare(kernels []string, normal []float64, r *rand.Rand) (err error) {
	p := a.p
	if err := p.Load(kernels); err != nil {
		return err
	}
	first := p.kernels[kernels[0]]
	if normal != nil && len(normal) != 2*len(first.refs) {
		return fmt.Errorf("kernel %s: %d numbers are no means and deviations of %d references", first.name, len(normal), len(first.refs))
	}
	var ins []place
	for i, t := range first.refs {
		bytes := extent(t)
		if i >= len(first.refs)-first.outs {
			a.extents = append(a.extents, runtime.Extent{DType: storedType(t.Elem), Bytes: bytes})
			continue
		}
		at, err := a.alloc(bytes)
		if err != nil {
			return err
		}
		mean, deviation := 0.0, 1.0
		if normal != nil {
			mean, deviation = normal[2*i], normal[2*i+1]
		}
		if err := a.random(at, bytes, t.Elem, mean, deviation, r); err != nil {
			return err
		}
		ins = append(ins, place{base: at})
	}
	for n := range a.sets {
		for _, e := range a.extents {
			at, err := a.alloc(e.Bytes)
			if err != nil {
				return err
			}
			a.sets[n] = append(a.sets[n], at)
		}
		if a.read[n], err = p.ctx.newPinned(readBytes); err != nil {
			return err
		}
	}
	for i, name := range kernels {
		s := step{kernel: p.kernels[name], refs: append([]place{}, ins...)}
		for _, at := range a.sets[min(i, 1)] {
			s.refs = append(s.refs, place{base: at})
		}
		if len(s.kernel.refs) != len(s.refs) || s.kernel.outs != first.outs || len(s.kernel.records) > 0 {
			return fmt.Errorf("kernel %s can't stand for %s", name, first.name)
		}
		for j, t := range s.kernel.refs {
			if !alike(t, first.refs[j]) {
				return fmt.Errorf("kernel %s can't stand for %s: reference %d is %s, not %s", name, first.name, j, t, first.refs[j])
			}
		}
		a.steps = append(a.steps, s)
	}
	if n := a.room(); n > p.spare {
		if a.own, err = a.alloc(n); err != nil {
			return err
		}
	}
	if a.begin, err = p.ctx.NewEvent(); err != nil {
		return err
	}
	if a.end, err = p.ctx.NewEvent(); err != nil {
		return err
	}
	return a.findParams()
}

// extent is the bytes from a reference's first element to its last.
func extent(t *ir.MemRefType) int64 {
	strides, _ := mem.Layout(t)
	reach := int64(1)
	for d, n := range t.Shape {
		reach += (n - 1) * strides[d]
	}
	return reach * ir.ByteSize(t.Elem)
}

func (a *alone) alloc(bytes int64) (Pointer, error) {
	at, err := a.p.ctx.Alloc((bytes + 3) / 4 * 4)
	if err == nil {
		a.memory = append(a.memory, at)
	}
	return at, err
}

// period is how many random numbers are made, before they are repeated: no multiple of any row, so that equal rows don't hide that
// one was taken for another.
const period = 1<<20 - 3

// random fills memory with normal numbers, those of integers with 0 and 1.
func (a *alone) random(at Pointer, bytes int64, elem ir.Type, mean, deviation float64, r *rand.Rand) error {
	size := ir.ByteSize(elem)
	n := min(bytes/size, period)
	block := make([]byte, 0, n*size)
	for range n {
		x := mean + deviation*r.NormFloat64()
		switch t := elem.(type) {
		case *ir.FloatType:
			if t.Kind == ir.F32 { // most there are, and as fast as it can be
				block = binary.LittleEndian.AppendUint32(block, math.Float32bits(float32(x)))
				continue
			}
		default:
			x = float64(r.IntN(2))
		}
		block = ir.EncodeElement(block, elem, x)
	}
	if err := a.p.stream.Upload(at, block); err != nil {
		return err
	}
	for done := int64(len(block)); done < bytes; {
		more := min(done, bytes-done)
		if err := a.p.stream.Copy(at+Pointer(done), at, more); err != nil {
			return err
		}
		done += more
	}
	return a.p.stream.Synchronize()
}

// Outputs implements runtime.Alone.
func (a *alone) Outputs() []runtime.Extent { return a.extents }

// Run implements runtime.Alone.
func (a *alone) Run(i int) error {
	for n, at := range a.sets[min(i, 1)] {
		if err := a.p.fill(at, nanWord, (a.extents[n].Bytes+3)/4); err != nil {
			return err
		}
	}
	if err := a.launch(i); err != nil {
		return err
	}
	return a.p.stream.Synchronize()
}

// Read implements runtime.Alone.
func (a *alone) Read(i, output int, at, n int64) ([]byte, error) {
	set := min(i, 1)
	to := a.read[set].bytes[:min(n, readBytes)]
	if err := a.p.stream.downloadTo(to, a.sets[set][output]+Pointer(at)); err != nil {
		return nil, err
	}
	return to, a.p.stream.Synchronize()
}

// Time implements runtime.Alone. Launches are a graph, as they are in a function: the host would be too slow for short ones.
func (a *alone) Time(i, n int) (float64, error) {
	s := a.p.stream
	g := a.rows[row{i, n}]
	if g == nil {
		var err error
		g, err = s.capture(func() error {
			for range n {
				if err := a.launch(i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		a.rows[row{i, n}] = g
	}
	if err := s.Record(a.begin); err != nil {
		return 0, err
	}
	if err := s.launch(g); err != nil {
		return 0, err
	}
	if err := s.Record(a.end); err != nil {
		return 0, err
	}
	if err := a.end.Wait(); err != nil {
		return 0, err
	}
	ms, err := a.end.Since(a.begin)
	return ms / 1e3, err
}

// Close implements runtime.Alone.
func (a *alone) Close() error {
	var faults []error
	for _, g := range a.rows {
		faults = append(faults, g.close())
	}
	for _, at := range a.memory {
		faults = append(faults, a.p.ctx.Free(at))
	}
	for _, m := range a.read {
		if m != nil {
			faults = append(faults, m.free())
		}
	}
	for _, e := range []*Event{a.begin, a.end} {
		if e != nil {
			faults = append(faults, e.Close())
		}
	}
	return errors.Join(faults...)
}
