package gpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
)

// Rows are added to tables of one range of rows and of many, of columns that panels and warps divide or not, from more
// indices than a chunk has; from nothing, from what another table holds, and in place.
func TestScatterAdd(t *testing.T) {
	for _, c := range []struct{ n, rows, width, cols int }{
		{1, 1, 1, 1}, {50, 7, 5, 5}, {40, 70, 100, 64}, {300, 190, 300, 256}, {17000, 7, 5, 5},
	} {
		for _, from := range []string{"zero", "init", "in place"} {
			if c.n > 10000 && from == "zero" && testing.Short() {
				continue
			}
			run(t, fmt.Sprintf("%dx%d to %d by %d from %s", c.n, c.width, c.rows, c.cols, from), scatterText(c.n, c.rows, c.width, c.cols, from))
		}
	}
}

func scatterText(n, rows, width, cols int, from string) string {
	init, argument, kind, shared := "", "", "", ""
	if from != "zero" {
		init, argument, kind = ", %w", fmt.Sprintf("%%w: memref<%dx%dxf32>, ", rows, width), fmt.Sprintf(", memref<%dx%dxf32>", rows, width)
	}
	if from == "in place" {
		shared = ", tile.shared = array<i64: 2, 3>"
	}
	return fmt.Sprintf(`
tile.kernel @k attributes {grid = array<i64: %[3]d>, outs = 1 : i64, steps = array<i64: %[4]d>%[8]s} (%%x: memref<%[1]dx%[3]dxf32>, %%n: memref<%[1]dxi32>, %[6]s%%y: memref<%[2]dx%[3]dxf32>, %%j: index) {
  tile.scatter_add %%x, %%n, %%j, %%y%[5]s {cols = %[4]d : i64} : (memref<%[1]dx%[3]dxf32>, memref<%[1]dxi32>, index, memref<%[2]dx%[3]dxf32>%[7]s) -> ()
  tile.end
}`, n, rows, width, cols, init, argument, kind, shared)
}

// Of indices outside the table the first is recorded, whichever block of threads finds it, and nothing is added for them.
func TestScatterErrorRecord(t *testing.T) {
	c := dialects.NewContext()
	module, err := ir.Parse(c, "k.mlir", []byte(scatterText(40, 5, 8, 8, "zero")))
	require.NoError(t, err)
	require.NoError(t, lowerptx.Kernel(c, ir.LookupSymbol(module, "k"), lowerptx.Options{Target: ptx.SM90A, Products: "auto"}))
	k := ir.LookupSymbol(module, "k")
	m := &emulate.Memory{}
	x, indices, y, record := m.Alloc(40*8*4), m.Alloc(40*4), m.Alloc(5*8*4), m.Alloc(8)
	record.Write(0, bytes.Repeat([]byte{0xff}, 8))
	x.Write(0, bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 40*8)) // 1
	indices.Write(0, make([]byte, len(indices.Data)))
	binary.LittleEndian.PutUint32(indices.Data[4*19:], 0xffffffff) // -1
	binary.LittleEndian.PutUint32(indices.Data[4*13:], 5)
	blocks, _ := k.Attrs().Int(lowerptx.BlocksAttr)
	require.NoError(t, emulate.Launch(m, k, int(blocks), x.Base, indices.Base, y.Base, record.Base))
	bits := binary.LittleEndian.Uint64(record.Data)
	require.Equal(t, uint64(13), bits>>32)
	require.Equal(t, int32(5), int32(bits))
	require.Equal(t, uint32(0x42180000), binary.LittleEndian.Uint32(y.Data)) // 38
}
