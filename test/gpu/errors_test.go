package gpu

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
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
	require.NoError(t, lowerptx.Kernel(c, ir.LookupSymbol(module, "k"), lowerptx.Options{Target: ptx.SM90A, Products: "auto"}))
	k := ir.LookupSymbol(module, "k")
	m := &emulate.Memory{}
	table, indices, y, record := m.Alloc(5*8*4), m.Alloc(40*4), m.Alloc(40*8*4), m.Alloc(8)
	record.Write(0, bytes.Repeat([]byte{0xff}, 8))
	table.Write(0, make([]byte, len(table.Data)))
	indices.Write(0, make([]byte, len(indices.Data)))
	binary.LittleEndian.PutUint32(indices.Data[4*19:], 0xffffffff) // -1
	binary.LittleEndian.PutUint32(indices.Data[4*13:], 5)
	binary.LittleEndian.PutUint32(indices.Data[4*14:], 1000)
	require.NoError(t, emulate.Launch(m, k, 5, table.Base, indices.Base, y.Base, record.Base))
	bits := binary.LittleEndian.Uint64(record.Data)
	require.Equal(t, uint64(13), bits>>32)
	require.Equal(t, int32(5), int32(bits))
}
