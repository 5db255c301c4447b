// Package emulate runs kernels of the ptx dialect on the CPU, for tests: all threads of a block do one operation after the
// other together, which is slow and shows what a GPU would hide. Accesses outside memory that was given, barriers and
// shuffles that not all threads reach, and conflicting accesses that no barrier orders, are errors with the place in the IR.
// It has the instructions that lowered kernels consist of, not those of hand-made templates.
package emulate

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Memory is the global memory of a device.
type Memory struct {
	buffers  []*Buffer
	next     uint64
	launches int32
}

// Buffer is a piece of it.
type Buffer struct {
	Base   uint64
	Data   []byte
	access []access
}

// access is who last touched a byte.
type access struct {
	writer, reader          int32 // thread + 1; readers -1: several
	writeEpoch, readEpoch   int32
	writeBlock, readBlock   int32 // block + 1; -1: several
	writeLaunch, readLaunch int32
}

// Alloc makes a buffer of n bytes at a multiple of 256 with a gap after it.
func (m *Memory) Alloc(n int) *Buffer {
	if m.next == 0 {
		m.next = 1 << 20
	}
	b := &Buffer{Base: m.next, Data: make([]byte, n), access: make([]access, n)}
	m.next += uint64(n+511) / 256 * 256
	m.buffers = append(m.buffers, b)
	return b
}

func (m *Memory) find(at uint64, n int) (*Buffer, int, error) {
	for _, b := range m.buffers {
		if at >= b.Base && at+uint64(n) <= b.Base+uint64(len(b.Data)) {
			return b, int(at - b.Base), nil
		}
	}
	return nil, 0, fmt.Errorf("an access to %d bytes at %#x, where no memory is", n, at)
}

// machine is one block of threads at work.
type machine struct {
	memory  *Memory
	shared  *Buffer
	threads int
	block   int
	launch  int32
	epoch   int32
	values  map[*ir.Value][][]uint64 // registers of a value, each of all threads
}

// Launch runs a kernel's blocks one after the other; params are its parameters' bits.
func Launch(m *Memory, kernel *ir.Op, blocks int, params []uint64) error {
	a := kernel.Attrs()
	threads, _ := a.Int("threads")
	m.launches++ // accesses of different launches don't conflict
	launch := m.launches
	for block := range blocks {
		n := int(a.IntOr("shared", 0))
		r := &machine{memory: m, threads: int(threads), block: block, launch: launch, epoch: 1, values: map[*ir.Value][][]uint64{},
			shared: &Buffer{Data: make([]byte, n), access: make([]access, n)}}
		for i := range r.shared.Data {
			r.shared.Data[i] = 0xff
		}
		for i, v := range kernel.Body().Args() {
			r.set(v, r.all(params[i]))
		}
		mask := make([]bool, threads)
		for i := range mask {
			mask[i] = true
		}
		if err := r.run(kernel.Body(), mask); err != nil {
			return fmt.Errorf("block %d: %w", block, err)
		}
	}
	return nil
}

func (r *machine) set(v *ir.Value, regs ...[]uint64) { r.values[v] = regs }

func (r *machine) all(x uint64) []uint64 {
	out := make([]uint64, r.threads)
	for t := range out {
		out[t] = x
	}
	return out
}

func (r *machine) reg(v *ir.Value) []uint64 { return r.values[v][0] }

// run does the operations of a block for the threads of the mask.
func (r *machine) run(b *ir.Block, mask []bool) error {
	for op := range b.Ops() {
		if op.Is(ptx.Yield) || op.Is(ptx.Return) {
			return nil
		}
		if err := r.op(op, mask); err != nil {
			return op.Errorf("%s: %v", op.Name(), err)
		}
	}
	return nil
}

func (r *machine) op(op *ir.Op, mask []bool) error {
	switch op.Def() {
	case ptx.For:
		return r.loop(op, mask)
	case ptx.If:
		return r.branch(op, mask)
	case ptx.Sync:
		for t, on := range mask {
			if !on {
				return fmt.Errorf("thread %d doesn't reach the barrier", t)
			}
		}
		r.epoch++
		return nil
	case ptx.Load, ptx.Store, ptx.LoadByte, ptx.StoreByte, ptx.ReduceMin:
		return r.memoryOp(op, mask)
	case ptx.Shuffle:
		return r.shuffle(op, mask)
	}
	return r.compute(op)
}

// loop runs iterations until no thread has any left.
func (r *machine) loop(op *ir.Op, mask []bool) error {
	index, upper, step := append([]uint64(nil), r.reg(op.Operand(0))...), r.reg(op.Operand(1)), r.reg(op.Operand(2))
	body := op.Body()
	carried := make([][][]uint64, op.NumResults())
	for i := range carried {
		for _, x := range r.values[op.Operand(i+3)] {
			carried[i] = append(carried[i], append([]uint64(nil), x...))
		}
	}
	for {
		inner, any := make([]bool, r.threads), false
		for t := range inner {
			inner[t] = mask[t] && int32(index[t]) < int32(upper[t])
			any = any || inner[t]
		}
		if !any {
			break
		}
		if op.Attrs().Bool("uniform") {
			if err := r.uniform(inner, mask); err != nil {
				return err
			}
		}
		r.set(body.Arg(0), append([]uint64(nil), index...))
		for i := range carried {
			r.values[body.Arg(i+1)] = carried[i]
		}
		if err := r.run(body, inner); err != nil {
			return err
		}
		next := make([][][]uint64, len(carried))
		for i := range carried {
			next[i] = r.merge(carried[i], r.values[body.Last().Operand(i)], inner)
		}
		carried = next
		for t := range index {
			if inner[t] {
				index[t] = uint64(uint32(index[t]) + uint32(step[t]))
			}
		}
	}
	for i, v := range op.Results() {
		r.values[v] = carried[i]
	}
	return nil
}

// merge takes new registers where the mask is on.
func (r *machine) merge(old, new [][]uint64, mask []bool) [][]uint64 {
	out := make([][]uint64, len(old))
	for i := range old {
		out[i] = make([]uint64, r.threads)
		for t := range out[i] {
			out[i][t] = old[i][t]
			if mask[t] {
				out[i][t] = new[i][t]
			}
		}
	}
	return out
}

// uniform checks that the threads of each warp go the same way.
func (r *machine) uniform(inner, mask []bool) error {
	for t := range inner {
		if first := t &^ 31; mask[t] && mask[first] && inner[t] != inner[first] {
			return fmt.Errorf("threads %d and %d of a warp part in what is said to be uniform", first, t)
		}
	}
	return nil
}

func (r *machine) branch(op *ir.Op, mask []bool) error {
	p := r.reg(op.Operand(0))
	for i, region := range op.Regions() {
		b := region.First()
		if b == nil {
			continue
		}
		inner := make([]bool, r.threads)
		for t := range inner {
			inner[t] = mask[t] && (p[t]&1 == 1) == (i == 0)
		}
		if err := r.run(b, inner); err != nil {
			return err
		}
		for k, v := range op.Results() {
			from := r.values[b.Last().Operand(k)]
			if r.values[v] == nil || i == 0 {
				r.values[v] = r.merge(from, from, inner)
			} else {
				r.values[v] = r.merge(r.values[v], from, inner)
			}
		}
	}
	return nil
}

func (r *machine) shuffle(op *ir.Op, mask []bool) error {
	x, lane := r.reg(op.Operand(0)), r.reg(op.Operand(1))
	if op.Attrs().Str("mode") != "bfly" {
		return fmt.Errorf("mode %s is not emulated", op.Attrs().Str("mode"))
	}
	out := make([]uint64, r.threads)
	for t := range out {
		if !mask[t] {
			return fmt.Errorf("thread %d doesn't take part", t)
		}
		from := t&^31 | (t & 31) ^ int(lane[t])
		if from >= r.threads {
			return fmt.Errorf("lane %d is of no thread", from)
		}
		out[t] = x[from]
	}
	r.set(op.Result(0), out)
	return nil
}
