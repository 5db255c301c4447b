package gpu

import (
	"fmt"
	"testing"
)

// Long rows are reduced piece by piece: sums, greatest and least elements, and sums of exponentials relative to the greatest
// so far; a maximum that something else uses in the loop too is exchanged in every round.
func TestReductionsInLoops(t *testing.T) {
	for _, n := range []int{1, 100, 1000, 2500} {
		for kind, combine := range map[string]string{"sum": "add", "max": "max", "min": "min"} {
			run(t, fmt.Sprintf("%s of %d", kind, n), fmt.Sprintf(`
tile.kernel @k attributes {grid = array<i64: 3>, outs = 1 : i64, steps = array<i64: 1>} (%%x: memref<3x%[1]dxf32>, %%y: memref<3x1xf32>, %%i: index) {
  %%zero = arith.constant {value = 0 : index} : () -> index
  %%n = arith.constant {value = %[1]d : index} : () -> index
  %%step = arith.constant {value = 1024 : index} : () -> index
  %%start = tile.constant {value = 0.5 : f64} : () -> !tile.block<1x1xf32>
  %%s = scf.for %%zero, %%n, %%step, %%start : (index, index, index, !tile.block<1x1xf32>) -> !tile.block<1x1xf32> (%%j: index, %%c: !tile.block<1x1xf32>) {
    %%a = tile.load %%x, %%i, %%j : (memref<3x%[1]dxf32>, index, index) -> !tile.block<1x1024xf32>
    %%b = tile.reduce %%a {axis = 1 : i64, kind = "%[2]s"} : (!tile.block<1x1024xf32>) -> !tile.block<1x1xf32>
    %%d = tile.%[3]s %%c, %%b : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    scf.yield %%d : (!tile.block<1x1xf32>) -> ()
  }
  tile.store %%s, %%y, %%i, %%zero : (!tile.block<1x1xf32>, memref<3x1xf32>, index, index) -> ()
  tile.end
}`, n, kind, combine))
		}
		for _, extra := range []string{"%f", "%t"} {
			run(t, fmt.Sprintf("exponentials of %d, %s", n, extra), fmt.Sprintf(`
tile.kernel @k attributes {grid = array<i64: 3>, outs = 3 : i64, steps = array<i64: 1>} (%%x: memref<3x%[1]dxf32>, %%y: memref<3x1xf32>, %%z: memref<3x1xf32>, %%o: memref<3x1xf32>, %%i: index) {
  %%zero = arith.constant {value = 0 : index} : () -> index
  %%n = arith.constant {value = %[1]d : index} : () -> index
  %%step = arith.constant {value = 1024 : index} : () -> index
  %%start = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %%least = tile.constant {value = -3.0e+38 : f64} : () -> !tile.block<1x1xf32>
  %%r:3 = scf.for %%zero, %%n, %%step, %%least, %%start, %%start : (index, index, index, !tile.block<1x1xf32>, !tile.block<1x1xf32>, !tile.block<1x1xf32>) -> (!tile.block<1x1xf32>, !tile.block<1x1xf32>, !tile.block<1x1xf32>) (%%j: index, %%m: !tile.block<1x1xf32>, %%c: !tile.block<1x1xf32>, %%e: !tile.block<1x1xf32>) {
    %%a = tile.load %%x, %%i, %%j : (memref<3x%[1]dxf32>, index, index) -> !tile.block<1x1024xf32>
    %%b = tile.reduce %%a {axis = 1 : i64, kind = "max"} : (!tile.block<1x1024xf32>) -> !tile.block<1x1xf32>
    %%t = tile.max %%m, %%b : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    %%d = tile.sub %%m, %%t : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    %%g = tile.exp %%d : (!tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    %%h = tile.mul %%c, %%g : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    %%p = tile.sub %%a, %%t : (!tile.block<1x1024xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1024xf32>
    %%q = tile.exp %%p : (!tile.block<1x1024xf32>) -> !tile.block<1x1024xf32>
    %%k = tile.reduce %%q {axis = 1 : i64, kind = "sum"} : (!tile.block<1x1024xf32>) -> !tile.block<1x1xf32>
    %%u = tile.add %%h, %%k : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    %%f = tile.add %%e, %%e : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    scf.yield %%t, %%u, %[2]s : (!tile.block<1x1xf32>, !tile.block<1x1xf32>, !tile.block<1x1xf32>) -> ()
  }
  tile.store %%r#0, %%y, %%i, %%zero : (!tile.block<1x1xf32>, memref<3x1xf32>, index, index) -> ()
  tile.store %%r#1, %%z, %%i, %%zero : (!tile.block<1x1xf32>, memref<3x1xf32>, index, index) -> ()
  tile.store %%r#2, %%o, %%i, %%zero : (!tile.block<1x1xf32>, memref<3x1xf32>, index, index) -> ()
  tile.end
}`, n, extra))
		}
	}
}
