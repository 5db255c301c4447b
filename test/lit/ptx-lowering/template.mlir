// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a products=templates})' | FileCheck %s
// A product by a template: tensor maps describe the operands, the epilogue is what the kernel does with the product, and a
// long contraction is cut in parts, which a second kernel adds.

tile.kernel @linear attributes {grid = array<i64: 128, 128>, outs = 1 : i64, steps = array<i64: 128, 128>} (%x: memref<128x8192xbf16>, %w: memref<128x8192xbf16>, %b: memref<128xf32>, %y: memref<128x128xf32>, %i: index, %j: index) {
  %p = tile.contract %x, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<128x8192xbf16>, memref<128x8192xbf16>, index, index) -> !tile.block<128x128xf32> {}
  %c = tile.load %b, %j : (memref<128xf32>, index) -> !tile.block<1x128xf32>
  %s = tile.add %p, %c : (!tile.block<128x128xf32>, !tile.block<1x128xf32>) -> !tile.block<128x128xf32>
  tile.store %s, %y, %i, %j : (!tile.block<128x128xf32>, memref<128x128xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: ptx.kernel @linear attributes
// CHECK-SAME:    launch.params = [{box = array<i64: 64, 128>, dims = array<i64: 8192, 128>, map = "bf16", ref = 0 : i64, strides = array<i64: 16384>}
// CHECK-SAME:    {scratch = 0 : i64}]
// CHECK-SAME:    launch.then = @linear.step2
// CHECK:         ptx.tma_load
// CHECK:         ptx.wgmma
// CHECK-LABEL: ptx.kernel @linear.step2 attributes
// CHECK-SAME:    launch.params = [{scratch = 0 : i64}, {ref = 2 : i64}, {ref = 3 : i64}]
// CHECK-SAME:    launch.reference = ""
func.func @f(%x: tensor<128x8192xbf16> {blu.input = "x"}, %w: tensor<128x8192xbf16> {blu.input = "w"}, %b: tensor<128xf32> {blu.input = "b"}) -> (tensor<128x128xf32> {blu.output = "y"}) {
  %y = tile.launch %x, %w, %b {kernel = @linear} : (tensor<128x8192xbf16>, tensor<128x8192xbf16>, tensor<128xf32>) -> tensor<128x128xf32>
  func.return %y : (tensor<128x128xf32>) -> ()
}
