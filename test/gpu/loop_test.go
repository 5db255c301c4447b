package gpu

import (
	"fmt"
	"strings"
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

// Loops over rows that add up columns ask for their blocks a round ahead: rows that blocks and panels divide or not, of warps
// and of several, 16 bits and 32, with numbers for each row beside them, and results in the place of what is read.
func TestColumnSumsInLoops(t *testing.T) {
	for _, c := range []struct {
		rows, cols, panel, block int
		narrow                   string
	}{
		{1, 5, 8, 4, "f32"}, {7, 64, 4, 4, "f32"}, {33, 132, 12, 4, "bf16"}, {45, 130, 16, 2, "bf16"}, {21, 1100, 8, 4, "f32"}, {16, 2304, 16, 8, "bf16"}, {19, 768, 8, 8, "f32"},
	} {
		panels := (c.rows + c.panel - 1) / c.panel
		replace := strings.NewReplacer("ROWS", fmt.Sprint(c.rows), "COLS", fmt.Sprint(c.cols), "PANELS", fmt.Sprint(panels), "PANEL", fmt.Sprint(c.panel), "BLOCK", fmt.Sprint(c.block), "HALF", c.narrow)
		run(t, fmt.Sprintf("alone %v", c), replace.Replace(`
tile.kernel @k attributes {grid = array<i64: ROWS>, outs = 1 : i64, steps = array<i64: PANEL>} (%x: memref<ROWSxCOLSxHALF>, %y: memref<PANELSxCOLSxf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %step = arith.constant {value = BLOCK : index} : () -> index
  %panel = arith.constant {value = PANEL : index} : () -> index
  %rows = arith.constant {value = ROWS : index} : () -> index
  %cols = arith.constant {value = COLS : index} : () -> index
  %nothing = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %start = tile.broadcast %nothing, %one, %cols : (!tile.block<1x1xf32>, index, index) -> !tile.block<1xCOLSxf32>
  %behind = arith.addi %i, %panel : (index, index) -> index
  %end = arith.minsi %rows, %behind : (index, index) -> index
  %s = scf.for %i, %end, %step, %start : (index, index, index, !tile.block<1xCOLSxf32>) -> !tile.block<1xCOLSxf32> (%j: index, %c: !tile.block<1xCOLSxf32>) {
    %a = tile.load %x, %j, %zero : (memref<ROWSxCOLSxHALF>, index, index) -> !tile.block<BLOCKxCOLSxHALF>
    %w = tile.cast %a : (!tile.block<BLOCKxCOLSxHALF>) -> !tile.block<BLOCKxCOLSxf32>
    %b = tile.reduce %w {axis = 0 : i64, kind = "sum"} : (!tile.block<BLOCKxCOLSxf32>) -> !tile.block<1xCOLSxf32>
    %d = tile.add %c, %b : (!tile.block<1xCOLSxf32>, !tile.block<1xCOLSxf32>) -> !tile.block<1xCOLSxf32>
    scf.yield %d : (!tile.block<1xCOLSxf32>) -> ()
  }
  %p = arith.divsi %i, %panel : (index, index) -> index
  tile.store %s, %y, %p, %zero {row = -1 : i64} : (!tile.block<1xCOLSxf32>, memref<PANELSxCOLSxf32>, index, index) -> ()
  tile.end
}`))
		// What is used in the loop beside it: numbers for each row, or sums that threads have exchanged before.
		numbers := `tile.load %m, %j {col = -1 : i64, row = 0 : i64} : (memref<ROWSxf32>, index) -> !tile.block<BLOCKx1xf32>`
		sums := `tile.mul %before, %before : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>`
		for _, v := range []struct{ name, shared, beside, numbers string }{
			{"with rows", "", numbers, "BLOCK"}, {"in place", ", tile.shared = array<i64: 0, 3>", numbers, "BLOCK"}, {"behind sums", "", sums, "1"},
		} {
			run(t, fmt.Sprintf("%s %v", v.name, c), replace.Replace(strings.NewReplacer("SHARED", v.shared, "BESIDE", v.beside, "NUMBERS", v.numbers).Replace(`
tile.kernel @k attributes {grid = array<i64: ROWS>, outs = 2 : i64, steps = array<i64: PANEL>SHARED} (%x: memref<ROWSxCOLSxf32>, %z: memref<ROWSxCOLSxHALF>, %m: memref<ROWSxf32>, %o: memref<ROWSxCOLSxf32>, %y: memref<PANELSxCOLSxf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %step = arith.constant {value = BLOCK : index} : () -> index
  %panel = arith.constant {value = PANEL : index} : () -> index
  %rows = arith.constant {value = ROWS : index} : () -> index
  %cols = arith.constant {value = COLS : index} : () -> index
  %nothing = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %start = tile.broadcast %nothing, %one, %cols : (!tile.block<1x1xf32>, index, index) -> !tile.block<1xCOLSxf32>
  %behind = arith.addi %i, %panel : (index, index) -> index
  %end = arith.minsi %rows, %behind : (index, index) -> index
  %first = tile.load %x, %i, %zero : (memref<ROWSxCOLSxf32>, index, index) -> !tile.block<BLOCKxCOLSxf32>
  %sums = tile.reduce %first {axis = 1 : i64, kind = "sum"} : (!tile.block<BLOCKxCOLSxf32>) -> !tile.block<BLOCKx1xf32>
  %before = tile.reduce %sums {axis = 0 : i64, kind = "max"} : (!tile.block<BLOCKx1xf32>) -> !tile.block<1x1xf32>
  %s = scf.for %i, %end, %step, %start : (index, index, index, !tile.block<1xCOLSxf32>) -> !tile.block<1xCOLSxf32> (%j: index, %c: !tile.block<1xCOLSxf32>) {
    %a = tile.load %x, %j, %zero : (memref<ROWSxCOLSxf32>, index, index) -> !tile.block<BLOCKxCOLSxf32>
    %b = tile.reduce %a {axis = 1 : i64, kind = "sum"} : (!tile.block<BLOCKxCOLSxf32>) -> !tile.block<BLOCKx1xf32>
    %e = BESIDE
    %f = tile.mul %b, %e : (!tile.block<BLOCKx1xf32>, !tile.block<NUMBERSx1xf32>) -> !tile.block<BLOCKx1xf32>
    %g = tile.load %z, %j, %zero : (memref<ROWSxCOLSxHALF>, index, index) -> !tile.block<BLOCKxCOLSxHALF>
    %h = tile.cast %g : (!tile.block<BLOCKxCOLSxHALF>) -> !tile.block<BLOCKxCOLSxf32>
    %k = tile.mul %h, %f : (!tile.block<BLOCKxCOLSxf32>, !tile.block<BLOCKx1xf32>) -> !tile.block<BLOCKxCOLSxf32>
    %l = tile.add %k, %a : (!tile.block<BLOCKxCOLSxf32>, !tile.block<BLOCKxCOLSxf32>) -> !tile.block<BLOCKxCOLSxf32>
    tile.store %l, %o, %j, %zero : (!tile.block<BLOCKxCOLSxf32>, memref<ROWSxCOLSxf32>, index, index) -> ()
    %q = tile.reduce %l {axis = 0 : i64, kind = "sum"} : (!tile.block<BLOCKxCOLSxf32>) -> !tile.block<1xCOLSxf32>
    %d = tile.add %c, %q : (!tile.block<1xCOLSxf32>, !tile.block<1xCOLSxf32>) -> !tile.block<1xCOLSxf32>
    scf.yield %d : (!tile.block<1xCOLSxf32>) -> ()
  }
  %p = arith.divsi %i, %panel : (index, index) -> index
  tile.store %s, %y, %p, %zero {row = -1 : i64} : (!tile.block<1xCOLSxf32>, memref<PANELSxCOLSxf32>, index, index) -> ()
  tile.end
}`)))
		}
	}
}

// A loop that asks ahead within another one: what threads have exchanged behind it is read before the next round's copies come.
func TestColumnSumsInLoopsOfLoops(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		narrow     string
	}{{17, 32, "f32"}, {40, 32, "bf16"}, {9, 260, "f32"}} {
		run(t, fmt.Sprint(c), strings.NewReplacer("ROWS", fmt.Sprint(c.rows), "COLS", fmt.Sprint(c.cols), "HALF", c.narrow).Replace(`
tile.kernel @k attributes {grid = array<i64: 1>, outs = 1 : i64, steps = array<i64: 1>} (%x: memref<3xROWSxCOLSxHALF>, %y: memref<1xCOLSxf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %step = arith.constant {value = 8 : index} : () -> index
  %rows = arith.constant {value = ROWS : index} : () -> index
  %cols = arith.constant {value = COLS : index} : () -> index
  %batch = arith.constant {value = 3 : index} : () -> index
  %nothing = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %start = tile.broadcast %nothing, %one, %cols : (!tile.block<1x1xf32>, index, index) -> !tile.block<1xCOLSxf32>
  %s = scf.for %zero, %batch, %one, %start : (index, index, index, !tile.block<1xCOLSxf32>) -> !tile.block<1xCOLSxf32> (%n: index, %t: !tile.block<1xCOLSxf32>) {
    %u = scf.for %zero, %rows, %step, %t : (index, index, index, !tile.block<1xCOLSxf32>) -> !tile.block<1xCOLSxf32> (%j: index, %c: !tile.block<1xCOLSxf32>) {
      %a = tile.load %x, %n, %j, %zero : (memref<3xROWSxCOLSxHALF>, index, index, index) -> !tile.block<8xCOLSxHALF>
      %w = tile.cast %a : (!tile.block<8xCOLSxHALF>) -> !tile.block<8xCOLSxf32>
      %b = tile.reduce %w {axis = 0 : i64, kind = "sum"} : (!tile.block<8xCOLSxf32>) -> !tile.block<1xCOLSxf32>
      %d = tile.add %c, %b : (!tile.block<1xCOLSxf32>, !tile.block<1xCOLSxf32>) -> !tile.block<1xCOLSxf32>
      scf.yield %d : (!tile.block<1xCOLSxf32>) -> ()
    }
    scf.yield %u : (!tile.block<1xCOLSxf32>) -> ()
  }
  tile.store %s, %y, %zero, %zero {row = -1 : i64} : (!tile.block<1xCOLSxf32>, memref<1xCOLSxf32>, index, index) -> ()
  tile.end
}`))
	}
}

// Blocks whose rows run along memory are read along it and exchanged, beside others that run the other way; of narrow ones and
// of 64 bits each element is read where it is.
func TestBlocksAcrossMemory(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		elem       string
	}{{64, 64, "f32"}, {100, 132, "f32"}, {37, 131, "f32"}, {70, 3, "f32"}, {130, 66, "i32"}, {70, 40, "f64"}} {
		run(t, fmt.Sprint(c), strings.NewReplacer("ROWS", fmt.Sprint(c.rows), "COLS", fmt.Sprint(c.cols), "ELEM", c.elem).Replace(`
tile.kernel @k attributes {grid = array<i64: ROWS, COLS>, outs = 1 : i64, steps = array<i64: 64, 64>} (%x: memref<COLSxROWSxELEM>, %z: memref<ROWSxCOLSxELEM>, %y: memref<ROWSxCOLSxELEM>, %i: index, %j: index) {
  %a = tile.load %x, %j, %i {col = 0 : i64, row = 1 : i64} : (memref<COLSxROWSxELEM>, index, index) -> !tile.block<64x64xELEM>
  %b = tile.load %z, %i, %j : (memref<ROWSxCOLSxELEM>, index, index) -> !tile.block<64x64xELEM>
  %c = tile.max %a, %b : (!tile.block<64x64xELEM>, !tile.block<64x64xELEM>) -> !tile.block<64x64xELEM>
  tile.store %c, %y, %i, %j : (!tile.block<64x64xELEM>, memref<ROWSxCOLSxELEM>, index, index) -> ()
  tile.end
}`))
	}
}
