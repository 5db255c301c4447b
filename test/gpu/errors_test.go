package gpu

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/ptx"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
	"blutrain/lower/ptx/emulate"
)

// Of indices that are out of range the first is recorded, by position; nothing is read outside the table.
func TestErrorRecord(t *testing.T) {
	const text = `
tile.kernel @k attributes {grid = array<i64: 40>, outs = 1 : i64, steps = array<i64: 8>} (%t: memref<5x8xf32>, %n: memref<40xi32>, %y: memref<40x8xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %a = tile.load %n, %i {row = 0 : i64, col = -1 : i64} : (memref<40xi32>, index) -> !tile.block<8x1xi32>
  %b = tile.gather %t, %a, %i, %zero : (memref<5x8xf32>, !tile.block<8x1xi32>, index, index) -> !tile.block<8x8xf32>
  tile.store %b, %y, %i, %zero : (!tile.block<8x8xf32>, memref<40x8xf32>, index, index) -> ()
  tile.end
}`
	c := dialects.NewContext()
	module, err := ir.Parse(c, "k.mlir", []byte(text))
	require.NoError(t, err)
	require.NoError(t, lowerptx.Kernel(c, ir.LookupSymbol(module, "k"), ptx.SM90A))
	k := ir.LookupSymbol(module, "k")
	m := &emulate.Memory{}
	table, indices, y, record := m.Alloc(5*8*4), m.Alloc(40*4), m.Alloc(40*8*4), m.Alloc(8)
	for i := range record.Data {
		record.Data[i] = 0xff
	}
	binary.LittleEndian.PutUint32(indices.Data[4*19:], 0xffffffff) // -1
	binary.LittleEndian.PutUint32(indices.Data[4*13:], 5)
	binary.LittleEndian.PutUint32(indices.Data[4*14:], 1000)
	require.NoError(t, emulate.Launch(m, k, 5, []uint64{table.Base, indices.Base, y.Base, record.Base}))
	bits := binary.LittleEndian.Uint64(record.Data)
	require.Equal(t, uint64(13), bits>>32)
	require.Equal(t, int32(5), int32(bits))
}

// The emulator finds what it is there for.
func TestEmulatorFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		body func(b *ptx.Builder, tid, at *ir.Value)
		want string
	}{
		"outside": {func(b *ptx.Builder, tid, at *ir.Value) {
			b.Store(b.MulWide(tid, 4, at), b.F32(1), ptx.Access{Space: "global", Offset: 4})
		}, "thread 63: an access to 4 bytes"},
		"misaligned": {func(b *ptx.Builder, tid, at *ir.Value) {
			b.Load(b.MulWide(tid, 4, at), b.Ctx.F32(), 2, ptx.Access{Space: "global", If: b.Compare("lt", tid, b.I32(4))})
		}, "thread 1: 8 bytes at 0x100004, which is no multiple"},
		"race": {func(b *ptx.Builder, tid, at *ir.Value) {
			b.Store(at, b.F32(1), ptx.Access{Space: "global"})
		}, "no barrier between them"},
		"read and write": {func(b *ptx.Builder, tid, at *ir.Value) {
			v := b.Load(at, b.Ctx.F32(), 1, ptx.Access{Space: "global"})
			b.Store(at, v, ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
		}, "no barrier between them"},
		"barrier": {func(b *ptx.Builder, tid, at *ir.Value) {
			b.If(b.Compare("lt", tid, b.I32(32)), false, func() { b.Do(ptx.Sync, nil) }, nil)
		}, "thread 32 doesn't reach the barrier"},
		"shuffle": {func(b *ptx.Builder, tid, at *ir.Value) {
			b.If(b.Compare("lt", tid, b.I32(7)), false, func() { b.Do(ptx.Shuffle, []*ir.Value{tid, b.I32(1)}, "mode", "bfly") }, nil)
		}, "thread 7 doesn't take part"},
		"not uniform": {func(b *ptx.Builder, tid, at *ir.Value) {
			b.For(b.I32(0), tid, b.I32(1), true, nil, func(*ir.Value, []*ir.Value) []*ir.Value { return nil })
		}, "part in what is said to be uniform"},
		"ordered": {func(b *ptx.Builder, tid, at *ir.Value) {
			b.Store(at, b.F32(1), ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
			b.Do(ptx.Sync, nil)
			b.Load(at, b.Ctx.F32(), 1, ptx.Access{Space: "global"})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := dialects.NewContext()
			b := ptx.NewKernel(ir.NewBuilder(ctx, nil), ptx.Config{Name: "k", Target: ptx.SM80, Threads: 64}, ctx.I64())
			c.body(b, b.Special("tid.x"), b.Kernel.Body().Arg(0))
			b.CreateState(ptx.Return, ir.OpState{})
			require.NoError(t, ir.Verify(ctx, b.Kernel))
			m := &emulate.Memory{}
			err := emulate.Launch(m, b.Kernel, 1, []uint64{m.Alloc(64 * 4).Base})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
