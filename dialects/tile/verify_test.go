package tile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/arith"
	"blutrain/dialects/builtin"
	"blutrain/dialects/scf"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// copyKernel is a kernel of one input %x and one output %y of 10x6, with body and attributes given.
func copyKernel(grid, steps, body string) string {
	return `tile.kernel @k attributes {grid = array<i64: ` + grid + `>, outs = 1 : i64, steps = array<i64: ` + steps + `>}
		(%x: memref<10x6xf32>, %y: memref<10x6xf32>, %i: index, %j: index) {
		%zero = arith.constant {value = 0 : index} : () -> index
		` + body + `
		tile.end
	}`
}

const (
	loadAt  = "%b = tile.load %x, %i, %j : (memref<10x6xf32>, index, index) -> !tile.block<4x4xf32>\n"
	storeAt = "tile.store %b, %y, %i, %j : (!tile.block<4x4xf32>, memref<10x6xf32>, index, index) -> ()\n"
)

func TestVerify(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"fine", copyKernel("10, 6", "4, 4", loadAt+storeAt), ""},
		{"steps", copyKernel("10, 6", "4, 3", loadAt+storeAt), "axis 1 takes steps of 3 up to 6, output 0 has 6 elements along dimension 1, stored 4 at a time"},
		{"extent", copyKernel("8, 6", "4, 4", loadAt+storeAt), "axis 0 takes steps of 4 up to 8, output 0 has 10 elements"},
		{"part", copyKernel("10, 4", "4, 4", loadAt+strings.Replace(storeAt, "%j", "%zero", 1)), "stores 4 of the 6 elements of output 0 along dimension 1"},
		{"unstored", copyKernel("10, 6", "4, 4", loadAt), "output 0 is never stored"},
		{"to input", copyKernel("10, 6", "4, 4", loadAt+strings.Replace(storeAt, "%y", "%x", 1)), "writes input 0"},
		{"from output", copyKernel("10, 6", "4, 4", strings.Replace(loadAt, "%x", "%y", 1)+storeAt), "reads output 0"},
		{"outputs of what is launched", "tile.launch {kernel = @k} : () -> ()\n" + strings.Replace(copyKernel("10, 6", "4, 4", loadAt+storeAt), "outs = 1", "outs = 70", 1), "4 arguments for 2 axes and 70 outputs"},
		{"offsets", copyKernel("10, 6", "4, 4", "%b = tile.load %x, %i : (memref<10x6xf32>, index) -> !tile.block<4x4xf32>\n"+storeAt), "1 offsets into a reference of 2 dimensions"},
		{"element", copyKernel("10, 6", "4, 4", strings.Replace(loadAt, "4x4xf32", "4x4xi32", 1)), "a block of i32 of a reference to f32"},
		{"one row", copyKernel("10, 6", "4, 4", strings.Replace(loadAt, "%j :", "%j {row = -1 : i64} :", 1)+storeAt), "a block of 4x4 where there is one row or column"},
		{"extents", copyKernel("10, 6", "4, 4", loadAt+`%c = tile.load %x, %i, %j : (memref<10x6xf32>, index, index) -> !tile.block<2x4xf32>
			%d = tile.add %b, %c : (!tile.block<4x4xf32>, !tile.block<2x4xf32>) -> !tile.block<4x4xf32>`+"\n"+storeAt), "operand 1 is 2x4, those before it are 4x4"},
		{"zero block", copyKernel("10, 6", "4, 4", "%b = tile.load %x, %i, %j : (memref<10x6xf32>, index, index) -> !tile.block<0x4xf32>"), "at least one row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := ir.NewContext(builtin.Dialect, arith.Dialect, scf.Dialect, tile.Dialect)
			module, err := ir.Parse(ctx, "k.mlir", []byte(c.src))
			require.NoError(t, err)
			err = ir.Verify(ctx, module)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What no verifier can tell, the evaluator finds.
func TestEvaluationFindsWrongStores(t *testing.T) {
	sub := "%k = arith.subi %i, %zero : (index, index) -> index\n"
	for _, c := range []struct{ name, src, want string }{
		{"twice", copyKernel("10, 6", "2, 4", loadAt+sub+strings.Replace(storeAt, "%i", "%k", 1)), "stored twice"},
		{"gap", copyKernel("8, 6", "4, 4", loadAt+sub+strings.Replace(storeAt, "%i", "%k", 1)), "element 48 of output 0 is never stored"},
		{"clipped otherwise", copyKernel("10, 6", "4, 4", strings.Replace(loadAt, "%i", "%zero", 1)+storeAt), "a block of 4x4 where there is room for 2x4"},
		{"outside", copyKernel("14, 6", "4, 4", sub+strings.Replace(loadAt, "%i", "%k", 1)+strings.Replace(storeAt, "%i", "%k", 1)), "offset 12 lies outside dimension 0 of 10 elements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := parse(t, c.src)
			_, err := tile.Run(in, in.Symbol("k"), []ir.Datum{ir.NewTensor(in.Ctx.F32(), 10, 6)})
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Indices out of range are named with their position.
func TestIndexErrors(t *testing.T) {
	const src = `
	tile.kernel @gather attributes {grid = array<i64: 5>, outs = 1 : i64, steps = array<i64: 2>} (%t: memref<7x3xf32>, %n: memref<5xi32>, %y: memref<5x3xf32>, %i: index) {
		%zero = arith.constant {value = 0 : index} : () -> index
		%k = tile.load %n, %i {col = -1 : i64, row = 0 : i64} : (memref<5xi32>, index) -> !tile.block<2x1xi32>
		%b = tile.gather %t, %k, %i, %zero : (memref<7x3xf32>, !tile.block<2x1xi32>, index, index) -> !tile.block<2x3xf32>
		tile.store %b, %y, %i, %zero : (!tile.block<2x3xf32>, memref<5x3xf32>, index, index) -> ()
		tile.end
	}
	tile.kernel @pick attributes {grid = array<i64: 5>, outs = 1 : i64, steps = array<i64: 2>} (%x: memref<5x3xf32>, %n: memref<5xi32>, %y: memref<5xf32>, %i: index) {
		%k = tile.load %n, %i {col = -1 : i64, row = 0 : i64} : (memref<5xi32>, index) -> !tile.block<2x1xi32>
		%b = tile.pick %x, %k, %i, %i {ignore = -1 : i64} : (memref<5x3xf32>, !tile.block<2x1xi32>, index, index) -> !tile.block<2x1xf32>
		tile.store %b, %y, %i {col = -1 : i64, row = 0 : i64} : (!tile.block<2x1xf32>, memref<5xf32>, index) -> ()
		tile.end
	}
	tile.kernel @scatter attributes {grid = array<i64: 3>, outs = 1 : i64, steps = array<i64: 2>} (%x: memref<5x3xf32>, %n: memref<5xi32>, %y: memref<7x3xf32>, %j: index) {
		tile.scatter_add %x, %n, %j, %y {cols = 2 : i64} : (memref<5x3xf32>, memref<5xi32>, index, memref<7x3xf32>) -> ()
		tile.end
	}`
	in := parse(t, src)
	x := func(shape ...int64) *ir.Tensor {
		v := ir.NewTensor(in.Ctx.F32(), shape...)
		for i := range v.Data {
			v.Data[i] = float64(i)
		}
		return v
	}
	call := func(kernel string, a *ir.Tensor, indices ...float64) ([]float64, error) {
		out, err := tile.Run(in, in.Symbol(kernel), []ir.Datum{a, &ir.Tensor{Shape: []int64{5}, Elem: in.Ctx.I32(), Data: indices}})
		if err != nil {
			return nil, err
		}
		return out[0].(*ir.Tensor).Data, nil
	}
	got, err := call("pick", x(5, 3), 0, -1, 2, 1, 0)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0, 8, 10, 12}, got)
	got, err = call("scatter", x(5, 3), 6, 0, 6, 1, 6)
	require.NoError(t, err)
	require.Equal(t, []float64{3, 4, 5, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 18, 21, 24}, got)
	got, err = call("gather", x(7, 3), 6, 0, 6, 1, 2)
	require.NoError(t, err)
	require.Equal(t, []float64{18, 19, 20, 0, 1, 2, 18, 19, 20, 3, 4, 5, 6, 7, 8}, got)
	_, err = call("gather", x(7, 3), 0, 0, 0, 7, 0)
	require.ErrorContains(t, err, "index 7 at position 3 is out of range")
	_, err = call("pick", x(5, 3), 0, 0, -2, 0, 0)
	require.ErrorContains(t, err, "index -2 at position 2 is out of range")
	_, err = call("scatter", x(5, 3), 0, -1, 0, 0, 0)
	require.ErrorContains(t, err, "index -1 at position 1 is out of range")
}
