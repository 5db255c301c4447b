// RUN: bluc opt %s | FileCheck %s
// y = gelu(a b^T + bias), and the argument of gelu kept for the backward pass. The operands are given as two planes of f16 each:
// x = high + low/4096. A step of the contraction multiplies the planes that count and is then added in f32.

// CHECK-LABEL: tile.kernel @gemm_bias_gelu
// CHECK:         tile.contract
// CHECK-COUNT-3: tile.dot
// CHECK:         tile.yield
// CHECK-COUNT-2: tile.store
tile.kernel @gemm_bias_gelu attributes {grid = array<i64: 19, 37>, outs = 2 : i64, steps = array<i64: 8, 16>} (%a_high: memref<19x23xf16>, %a_low: memref<19x23xf16>, %b_high: memref<37x23xf16>, %b_low: memref<37x23xf16>, %bias: memref<37xf32>, %pre: memref<19x37xf32>, %y: memref<19x37xf32>, %i: index, %j: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %split = tile.constant {value = 0.000244140625 : f64} : () -> !tile.block<1x1xf32>
  %product = tile.contract %a_high, %a_low, %b_high, %b_low, %i, %j attributes {operandSegmentSizes = array<i32: 2, 2, 1, 1>, step = 8 : i64} : (memref<19x23xf16>, memref<19x23xf16>, memref<37x23xf16>, memref<37x23xf16>, index, index) -> !tile.block<8x16xf32> (%ah: !tile.block<8x8xf16>, %al: !tile.block<8x8xf16>, %bh: !tile.block<16x8xf16>, %bl: !tile.block<16x8xf16>) {
    %high = tile.dot %ah, %bh {tb = true} : (!tile.block<8x8xf16>, !tile.block<16x8xf16>) -> !tile.block<8x16xf32>
    %mixed = tile.dot %ah, %bl {tb = true} : (!tile.block<8x8xf16>, !tile.block<16x8xf16>) -> !tile.block<8x16xf32>
    %low = tile.dot %al, %bh, %mixed {tb = true} : (!tile.block<8x8xf16>, !tile.block<16x8xf16>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
    %scaled = tile.mul %low, %split : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
    %part = tile.add %high, %scaled : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
    tile.yield %part : (!tile.block<8x16xf32>) -> ()
  }
  %bias_row = tile.load %bias, %j {col = 0 : i64, row = -1 : i64} : (memref<37xf32>, index) -> !tile.block<1x16xf32>
  %x = tile.add %product, %bias_row : (!tile.block<8x16xf32>, !tile.block<1x16xf32>) -> !tile.block<8x16xf32>
  tile.store %x, %pre, %i, %j : (!tile.block<8x16xf32>, memref<19x37xf32>, index, index) -> ()
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
  %t1 = tile.add %t, %one : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %hx = tile.mul %x, %half : (!tile.block<8x16xf32>, !tile.block<1x1xf32>) -> !tile.block<8x16xf32>
  %g = tile.mul %hx, %t1 : (!tile.block<8x16xf32>, !tile.block<8x16xf32>) -> !tile.block<8x16xf32>
  tile.store %g, %y, %i, %j : (!tile.block<8x16xf32>, memref<19x37xf32>, index, index) -> ()
  tile.end
}
