package emulate

import (
	"encoding/binary"
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// memoryOp does a load, a store or an atomic operation for each thread.
func (r *machine) memoryOp(op *ir.Op, mask []bool) error {
	address := r.reg(op.Operand(0))
	var data, when *ir.Value
	size, n := 1, 1
	store := op.Is(ptx.Store) || op.Is(ptx.StoreByte) || op.Is(ptx.ReduceMin)
	rest := op.Operands()[1:]
	if store {
		data, rest = rest[0], rest[1:]
	} else {
		data = op.Result(0)
	}
	if len(rest) > 0 {
		when = rest[0]
	}
	if op.Is(ptx.Load) || op.Is(ptx.Store) {
		size, n = ptx.Width(ir.Elem(data.Type()))/8, ptx.Registers(data.Type())
	} else if op.Is(ptx.ReduceMin) {
		size = 8
	}
	loaded := make([][]uint64, n)
	for i := range loaded {
		loaded[i] = make([]uint64, r.threads)
	}
	for t := range r.threads {
		if !mask[t] || when != nil && r.reg(when)[t]&1 == 0 {
			continue
		}
		at := address[t] + uint64(op.Attrs().IntOr("offset", 0))
		buffer, start, err := r.memory, 0, error(nil)
		var b *Buffer
		if op.Attrs().Str("space") == "shared" {
			at = uint64(uint32(at))
			if b = r.shared; at+uint64(n*size) > uint64(len(b.Data)) {
				return fmt.Errorf("thread %d: %d bytes at %d of %d of shared memory", t, n*size, at, len(b.Data))
			}
			start = int(at)
		} else if b, start, err = buffer.find(at, n*size); err != nil {
			return fmt.Errorf("thread %d: %w", t, err)
		}
		if at%uint64(n*size) != 0 {
			return fmt.Errorf("thread %d: %d bytes at %#x, which is no multiple", t, n*size, at)
		}
		if op.Is(ptx.ReduceMin) {
			p := b.Data[start:]
			binary.LittleEndian.PutUint64(p, min(binary.LittleEndian.Uint64(p), r.reg(data)[t]))
			continue
		}
		if err := r.note(b, start, n*size, t, store); err != nil {
			return err
		}
		for i := range n {
			p := b.Data[start+i*size : start+(i+1)*size]
			if store {
				put(p, r.values[data][i][t])
			} else {
				loaded[i][t] = get(p)
			}
		}
	}
	if !store {
		r.values[data] = loaded
	}
	return nil
}

func put(p []byte, x uint64) {
	for i := range p {
		p[i] = byte(x >> (8 * i))
	}
}

func get(p []byte) (x uint64) {
	for i := range p {
		x |= uint64(p[i]) << (8 * i)
	}
	return x
}

// note remembers an access and finds one that it conflicts with: by another thread since the last barrier, or by another
// block of this launch, one of the two writing.
func (r *machine) note(b *Buffer, start, n, t int, store bool) error {
	who, block := int32(t+1), int32(r.block+1)
	for i := range b.access[start : start+n] {
		a := &b.access[start+i]
		wrote := a.writeLaunch == r.launch && (a.writeBlock != block || a.writeEpoch == r.epoch && a.writer != who)
		read := a.readLaunch == r.launch && (a.readBlock != block || a.readEpoch == r.epoch && a.reader != who)
		if wrote || store && read {
			return fmt.Errorf("thread %d of block %d and thread %d of block %d (0: several) access byte %d of %d with no barrier between them, one writes",
				t, r.block, max(a.writer, a.reader)-1, max(a.writeBlock, a.readBlock)-1, start+i, len(b.Data))
		}
		if store {
			a.writer, a.writeEpoch, a.writeBlock, a.writeLaunch = who, r.epoch, block, r.launch
			continue
		}
		switch {
		case a.readLaunch != r.launch:
			a.reader, a.readEpoch, a.readBlock = who, r.epoch, block
		case a.readBlock != block:
			a.readBlock = -1
		case a.readEpoch != r.epoch:
			a.reader, a.readEpoch = who, r.epoch
		case a.reader != who:
			a.reader = -1
		}
		a.readLaunch = r.launch
	}
	return nil
}
