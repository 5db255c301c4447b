package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/ptx"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
)

// stagedKernel is a softmax less one at a target: its row is read in two loops, and written in its place or elsewhere.
func stagedKernel(rows, n, stride, step int, elem string, inPlace bool) string {
	widen, narrow := "tile.cast %b : (E) -> F", "tile.cast %q : (F) -> E"
	if elem == "f32" {
		widen, narrow = "tile.max %b, %b : (F, F) -> F", "tile.max %q, %q : (F, F) -> F"
	}
	shared := ""
	if inPlace {
		shared = ", tile.shared = array<i64: 0, 2>"
	}
	return strings.NewReplacer(
		"M", fmt.Sprintf("memref<%dx%dx%s, strided<[%d, 1]>>", rows, n, elem, stride), "E", fmt.Sprintf("!tile.block<1x%dx%s>", step, elem),
		"F", fmt.Sprintf("!tile.block<1x%dxf32>", step), "K", fmt.Sprintf("!tile.block<1x%dxi32>", step), "P", fmt.Sprintf("!tile.block<1x%dxi1>", step),
		"U", "!tile.block<1x1xf32>", "V", "!tile.block<1x1x"+elem+">", "I", "!tile.block<1x1xi32>", "ROWS", fmt.Sprint(rows), "SIZE", fmt.Sprint(n), "STEP", fmt.Sprint(step),
		"WIDEN", widen, "NARROW", narrow, "SHARED", shared,
	).Replace(strings.NewReplacer("WIDEN", widen, "NARROW", narrow, "SHARED", shared, "WIDER", strings.NewReplacer("%b", "%v", "E", "V", "F", "U").Replace(widen)).Replace(`
tile.kernel @k attributes {grid = array<i64: ROWS>, outs = 2 : i64, steps = array<i64: 1>SHARED} (%x: M, %t: memref<ROWSxi32>, %y: M, %z: memref<ROWSx1xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %n = arith.constant {value = SIZE : index} : () -> index
  %step = arith.constant {value = STEP : index} : () -> index
  %start = tile.constant {value = 0.0 : f64} : () -> U
  %least = tile.constant {value = -3.0e+38 : f64} : () -> U
  %k = tile.load %t, %i {col = -1 : i64, row = 0 : i64} : (memref<ROWSxi32>, index) -> I
  %v = tile.pick %x, %k, %i, %i {ignore = -1 : i64} : (M, I, index, index) -> V
  %u = WIDER
  %r:2 = scf.for %zero, %n, %step, %least, %start : (index, index, index, U, U) -> (U, U) (%j: index, %m: U, %c: U) {
    %b = tile.load %x, %i, %j : (M, index, index) -> E
    %a = WIDEN
    %h = tile.reduce %a {axis = 1 : i64, kind = "max"} : (F) -> U
    %l = tile.max %m, %h : (U, U) -> U
    %d = tile.sub %m, %l : (U, U) -> U
    %f = tile.exp %d : (U) -> U
    %o = tile.mul %c, %f : (U, U) -> U
    %p = tile.sub %a, %l : (F, U) -> F
    %q = tile.exp %p : (F) -> F
    %s = tile.reduce %q {axis = 1 : i64, kind = "sum"} : (F) -> U
    %w = tile.add %o, %s : (U, U) -> U
    scf.yield %l, %w : (U, U) -> ()
  }
  %e = tile.log %r#1 : (U) -> U
  %g = tile.add %r#0, %e : (U, U) -> U
  %loss = tile.sub %g, %u : (U, U) -> U
  %counts = tile.compare %k, %k {predicate = "eq"} : (I, I) -> !tile.block<1x1xi1>
  scf.for %zero, %n, %step : (index, index, index) -> () (%j: index) {
    %left = arith.subi %n, %j : (index, index) -> index
    %here = arith.minsi %step, %left : (index, index) -> index
    %b = tile.load %x, %i, %j : (M, index, index) -> E
    %a = WIDEN
    %d = tile.sub %a, %g : (F, U) -> F
    %f = tile.exp %d : (F) -> F
    %c = tile.iota %j, %here {axis = 1 : i64} : (index, index) -> K
    %is = tile.compare %c, %k {predicate = "eq"} : (K, I) -> P
    %one = tile.cast %is : (P) -> F
    %p = tile.sub %f, %one : (F, F) -> F
    %q = tile.select %counts, %p, %start : (!tile.block<1x1xi1>, F, U) -> F
    %s = NARROW
    tile.store %s, %y, %i, %j : (E, M, index, index) -> ()
    scf.yield
  }
  tile.store %loss, %z, %i, %zero : (U, memref<ROWSx1xf32>, index, index) -> ()
  tile.end
}`))
}

// Rows that are gone over twice are read once where they fit shared memory and start at multiples of 16 bytes: those of whole
// pieces, with pieces that end within 16 bytes, of one piece; several for each block of threads; in place and not; by copies in the
// background. Others are read twice.
func TestStagedRows(t *testing.T) {
	for _, c := range []struct {
		rows, n, stride, step int
		elem                  string
		inPlace, staged       bool
	}{
		{3, 2048, 2048, 1024, "f32", false, true},
		{3, 2501, 2504, 1024, "f32", true, true},
		{3, 2501, 2504, 1024, "bf16", true, true},
		{3, 2501, 2504, 1024, "bf16", false, true},
		{3, 2048, 2048, 512, "bf16", true, true},
		{3, 1027, 1032, 1024, "f32", true, true},
		{3, 7, 8, 1024, "bf16", true, true},
		{530, 260, 264, 128, "bf16", true, true},
		{530, 129, 136, 64, "f32", false, true},
		{2, 30001, 30016, 8192, "f32", true, true},
		{2, 16000, 16000, 8192, "f32", true, true},
		{3, 2501, 2501, 1024, "f32", true, false},
		{3, 2501, 2502, 1024, "bf16", true, false},
		{1, 60000, 60000, 8192, "f32", false, false},
	} {
		name := fmt.Sprintf("%dx%d of %d in steps of %d, %s, in place %v", c.rows, c.n, c.stride, c.step, c.elem, c.inPlace)
		text := stagedKernel(c.rows, c.n, c.stride, c.step, c.elem, c.inPlace)
		run(t, name, text)
		for _, target := range ptx.Targets {
			ctx := dialects.NewContext()
			module, err := ir.Parse(ctx, "k.mlir", []byte(text))
			require.NoError(t, err)
			require.NoError(t, lowerptx.Kernel(ctx, ir.LookupSymbol(module, "k"), lowerptx.Options{Target: target}))
			copies := 0
			ir.Walk(module, func(op *ir.Op) ir.WalkResult {
				if op.Is(ptx.CopyAsync) {
					copies++
				}
				return ir.Advance
			})
			fits := target != ptx.SM89 || c.n*4 < 90000
			require.Equal(t, c.staged && fits, copies > 0, "%s for %s", name, target)
		}
	}
}

// An exponential that is rounded to bfloat16, less something and masked, takes a shorter way; infinities, NaN and what over- or
// underflows end where they should.
func TestRoundedExponentials(t *testing.T) {
	for _, c := range []string{"1.0", "30.0", "1000.0", "3.0e+38"} {
		for _, how := range []string{"tile.mul %a, %c : (F, U)", "tile.sub %a, %a : (F, F)", "tile.div %a, %z : (F, U)", "tile.add %a, %z : (F, U)"} {
			run(t, c+" "+how, strings.NewReplacer("C ", c+" ", "HOW", strings.NewReplacer("F", "!tile.block<1x64xf32>", "U", "!tile.block<1x1xf32>").Replace(how), "F", "!tile.block<1x64xf32>", "U", "!tile.block<1x1xf32>").Replace(`
tile.kernel @k attributes {grid = array<i64: 4>, outs = 1 : i64, steps = array<i64: 1>} (%x: memref<4x64xf32>, %k: memref<4x1xi32>, %y: memref<4x64xbf16>, %i: index) {
  %0 = arith.constant {value = 0 : index} : () -> index
  %c = tile.constant {value = C : f64} : () -> U
  %z = tile.constant {value = 0.0 : f64} : () -> U
  %three = tile.constant {value = 3.0 : f64} : () -> !tile.block<1x1xi32>
  %r = tile.load %k, %i, %0 : (memref<4x1xi32>, index, index) -> !tile.block<1x1xi32>
  %p = tile.compare %r, %three {predicate = "lt"} : (!tile.block<1x1xi32>, !tile.block<1x1xi32>) -> !tile.block<1x1xi1>
  %v = tile.load %x, %i, %0 : (memref<4x64xf32>, index, index) -> F
  %a = tile.mul %v, %c : (F, U) -> F
  %b = HOW -> F
  %e = tile.exp %b : (F) -> F
  %d = tile.sub %e, %c : (F, U) -> F
  %m = tile.select %p, %d, %z : (!tile.block<1x1xi1>, F, U) -> F
  %s = tile.cast %m : (F) -> !tile.block<1x64xbf16>
  tile.store %s, %y, %i, %0 : (!tile.block<1x64xbf16>, memref<4x64xbf16>, index, index) -> ()
  tile.end
}`))
		}
	}
}
