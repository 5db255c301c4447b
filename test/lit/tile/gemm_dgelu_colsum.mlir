// RUN: bluc opt %s | FileCheck %s
// dpre = (dy w) * gelu'(pre), and the column sums of dpre, the gradient of a bias, in two steps: the first kernel stores the sums over
// each block of rows, the second adds those in order.

// CHECK-LABEL: tile.kernel @gemm_dgelu_colsum
// CHECK:         tile.reduce {{.*}} {axis = 0 : i64, kind = "sum"}
tile.kernel @gemm_dgelu_colsum attributes {grid = array<i64: 19, 29>, outs = 2 : i64, steps = array<i64: 8, 16>} (%dy: memref<19x37xf32>, %w: memref<29x37xf32, strided<[1, 29]>>, %pre: memref<19x29xf32>, %dpre: memref<19x29xf32>, %partial: memref<3x29xf32>, %i: index, %j: index) {
  %da = tile.contract %dy, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<19x37xf32>, memref<29x37xf32, strided<[1, 29]>>, index, index) -> !tile.block<8x16xf32> {}
  %x = tile.load %pre, %i, %j : (memref<19x29xf32>, index, index) -> !tile.block<8x16xf32>
  // gelu'(x) = (1 + t)/2 + x/2 (1 - t^2) u' with u' = c0 (1 + 3 c1 x^2)
  %c0 = tile.constant {value = 0.7978845608028654 : f64} : () -> !tile.block<1x1xf32>
  %c1 = tile.constant {value = 0.044715 : f64} : () -> !tile.block<1x1xf32>
  %half = tile.constant {value = 0.5 : f64} : () -> !tile.block<1x1xf32>
  %one = tile.constant {value = 1.0 : f64} : () -> !tile.block<1x1xf32>
  %x2 = tile.mul %x, %x : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %x2c = tile.mul %x2, %c1 : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %poly = tile.add %x2c, %one : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %c0x = tile.mul %x, %c0 : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %u = tile.mul %c0x, %poly : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %t = tile.tanh %u : (!tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %c3 = tile.constant {value = 0.134145 : f64} : () -> !tile.block<1x1xf32>
  %x2d = tile.mul %x2, %c3 : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %dpoly = tile.add %x2d, %one : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %du = tile.mul %dpoly, %c0 : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %tt = tile.mul %t, %t : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %sech = tile.sub %one, %tt : (!tile.block<1x1xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %hx = tile.mul %x, %half : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %inner = tile.mul %hx, %sech : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %right = tile.mul %inner, %du : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %t1 = tile.add %t, %one : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %left = tile.mul %t1, %half : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %dg = tile.add %left, %right : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  %d = tile.mul %da, %dg : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  tile.store %d, %dpre, %i, %j : (!tile.block<8x16xf32>, memref<19x29xf32>, index, index) -> ()
  %sums = tile.reduce %d {axis = 0 : i64, kind = "sum"} : (!tile.block<8x16xf32>) -> !tile.block<1x16xf32>
  %rows = arith.constant {value = 8 : index} : () -> index
  %panel = arith.divsi %i, %rows : (index, index) -> index
  tile.store %sums, %partial, %panel, %j {col = 1 : i64, row = -1 : i64} : (!tile.block<1x16xf32>, memref<3x29xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: tile.kernel @sum_partials
tile.kernel @sum_partials attributes {grid = array<i64: 29>, outs = 1 : i64, steps = array<i64: 16>} (%partial: memref<3x29xf32>, %db: memref<29xf32>, %j: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %p = tile.load %partial, %zero, %j : (memref<3x29xf32>, index, index) -> !tile.block<3x16xf32>
  %s = tile.reduce %p {axis = 0 : i64, kind = "sum"} : (!tile.block<3x16xf32>) -> !tile.block<1x16xf32>
  tile.store %s, %db, %j {col = 0 : i64, row = -1 : i64} : (!tile.block<1x16xf32>, memref<29xf32>, index) -> ()
  tile.end
}
