package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

// Every elementwise operation on every element type it is computed in, at sizes that blocks don't divide.
func TestElementwise(t *testing.T) {
	unary := []string{"neg", "abs", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "sin", "cos", "sign", "floor", "silu",
		`gelu {approximate = "tanh"}`, `gelu {approximate = "erf"}`}
	binary := []string{"add", "sub", "mul", "div", "pow", "max", "min", "silu_grad", `gelu_grad {approximate = "tanh"}`, `gelu_grad {approximate = "erf"}`}
	for _, elem := range []string{"f32", "f64"} {
		for _, op := range unary {
			check(t, elem, elem, op, 1)
		}
		for _, op := range binary {
			check(t, elem, elem, op, 2)
		}
	}
	for _, op := range []string{"add", "sub", "mul", "max", "min"} {
		check(t, "i32", "i32", op, 2)
		check(t, "i64", "i64", op, 2)
	}
	for _, op := range []string{"and", "or"} {
		check(t, "i1", "i1", op, 2)
	}
	check(t, "i1", "i1", "not", 1)
	for _, elem := range []string{"f32", "f64", "bf16", "f16", "i32", "i64", "i1"} {
		for _, is := range []string{"eq", "ne", "lt", "ge"} {
			check(t, elem, "i1", fmt.Sprintf("compare {predicate = %q}", is), 2)
		}
		for _, to := range []string{"f32", "f64", "bf16", "f16", "i32", "i64", "i1"} {
			check(t, elem, to, "cast", 1)
		}
	}
}

// Reductions of either axis, of all kinds, and transposes.
func TestReductions(t *testing.T) {
	for _, elem := range []string{"f32", "f64", "i32", "i64"} {
		for _, kind := range []string{"sum", "max", "min", "argmax"} {
			to := elem
			if kind == "argmax" {
				to = "i32"
			}
			for _, shape := range [][2]int{{1, 300}, {13, 40}, {64, 5}, {3, 1}, {2, 2048}} {
				m, n := shape[0], shape[1]
				run(t, fmt.Sprintf("%s %s %dx%d", kind, elem, m, n), fmt.Sprintf(`
tile.kernel @k attributes {grid = array<i64>, outs = 2 : i64, steps = array<i64>} (%%x: memref<%[1]dx%[2]dx%[3]s>, %%y: memref<1x%[2]dx%[4]s>, %%z: memref<%[1]dx1x%[4]s>) {
  %%zero = arith.constant {value = 0 : index} : () -> index
  %%a = tile.load %%x, %%zero, %%zero : (memref<%[1]dx%[2]dx%[3]s>, index, index) -> !tile.block<%[1]dx%[2]dx%[3]s>
  %%b = tile.reduce %%a {axis = 0 : i64, kind = "%[5]s"} : (!tile.block<%[1]dx%[2]dx%[3]s>) -> !tile.block<1x%[2]dx%[4]s>
  %%c = tile.reduce %%a {axis = 1 : i64, kind = "%[5]s"} : (!tile.block<%[1]dx%[2]dx%[3]s>) -> !tile.block<%[1]dx1x%[4]s>
  tile.store %%b, %%y, %%zero, %%zero : (!tile.block<1x%[2]dx%[4]s>, memref<1x%[2]dx%[4]s>, index, index) -> ()
  tile.store %%c, %%z, %%zero, %%zero : (!tile.block<%[1]dx1x%[4]s>, memref<%[1]dx1x%[4]s>, index, index) -> ()
  tile.end
}`, m, n, elem, to, kind))
			}
		}
	}
	for _, shape := range [][2]int{{13, 40}, {64, 64}, {1, 9}} {
		m, n := shape[0], shape[1]
		run(t, fmt.Sprintf("transpose %dx%d", m, n), fmt.Sprintf(`
tile.kernel @k attributes {grid = array<i64>, outs = 1 : i64, steps = array<i64>} (%%x: memref<%[1]dx%[2]dxf32>, %%y: memref<%[2]dx%[1]dxf32>) {
  %%zero = arith.constant {value = 0 : index} : () -> index
  %%a = tile.load %%x, %%zero, %%zero : (memref<%[1]dx%[2]dxf32>, index, index) -> !tile.block<%[1]dx%[2]dxf32>
  %%b = tile.transpose %%a : (!tile.block<%[1]dx%[2]dxf32>) -> !tile.block<%[2]dx%[1]dxf32>
  tile.store %%b, %%y, %%zero, %%zero : (!tile.block<%[2]dx%[1]dxf32>, memref<%[2]dx%[1]dxf32>, index, index) -> ()
  tile.end
}`, m, n))
	}
}

// check runs one operation on rows of 37.
func check(t *testing.T, from, to, op string, operands int) {
	name, attrs, _ := strings.Cut(op, " ")
	args, types := "%a", fmt.Sprintf("!tile.block<4x37x%s>", from)
	if operands == 2 {
		args, types = "%a, %b", types+", "+types
	}
	run(t, fmt.Sprintf("%s %s %s", op, from, to), fmt.Sprintf(`
tile.kernel @k attributes {grid = array<i64: 10>, outs = 1 : i64, steps = array<i64: 4>} (%%x: memref<10x37x%[1]s>, %%w: memref<10x37x%[1]s>, %%y: memref<10x37x%[2]s>, %%i: index) {
  %%zero = arith.constant {value = 0 : index} : () -> index
  %%a = tile.load %%x, %%i, %%zero : (memref<10x37x%[1]s>, index, index) -> !tile.block<4x37x%[1]s>
  %%b = tile.load %%w, %%i, %%zero : (memref<10x37x%[1]s>, index, index) -> !tile.block<4x37x%[1]s>
  %%c = tile.%[3]s %[4]s %[5]s : (%[6]s) -> !tile.block<4x37x%[2]s>
  tile.store %%c, %%y, %%i, %%zero : (!tile.block<4x37x%[2]s>, memref<10x37x%[2]s>, index, index) -> ()
  tile.end
}`, from, to, name, args, attrs, types))
}

func run(t *testing.T, name, text string) {
	t.Run(name, func(t *testing.T) {
		c := dialects.NewContext()
		module, err := ir.Parse(c, "k.mlir", []byte(text))
		require.NoError(t, err)
		require.NoError(t, ir.Verify(c, module))
		emulateKernel(t, c, module, ir.LookupSymbol(module, "k"), general)
	})
}
