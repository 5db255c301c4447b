// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a products=general})' | FileCheck %s
// A product: 256 threads have 8x8 elements each, the operands' panels go through shared memory eight elements of the
// contracted dimension at a time, and the epilogue works on the registers.

tile.kernel @linear attributes {grid = array<i64: 256, 128>, outs = 1 : i64, steps = array<i64: 128, 128>} (%x: memref<256x64xf32>, %w: memref<128x64xf32>, %b: memref<128xf32>, %y: memref<256x128xf32>, %i: index, %j: index) {
  %p = tile.contract %x, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<256x64xf32>, memref<128x64xf32>, index, index) -> !tile.block<128x128xf32> {}
  %c = tile.load %b, %j : (memref<128xf32>, index) -> !tile.block<1x128xf32>
  %s = tile.add %p, %c : (!tile.block<128x128xf32>, !tile.block<1x128xf32>) -> !tile.block<128x128xf32>
  tile.store %s, %y, %i, %j : (!tile.block<128x128xf32>, memref<256x128xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: ptx.kernel @linear
// CHECK-SAME:    blocks_per_sm = 2 : i64
// CHECK-SAME:    launch.blocks = 2 : i64
// CHECK-SAME:    shared = 8448 : i64
// CHECK-SAME:    threads = 256 : i64
// CHECK:         ptx.for
// CHECK:           ptx.bar_sync
// CHECK-COUNT-8:   ptx.st {{.*}}space = "shared"
// CHECK-NEXT:      ptx.bar_sync
// CHECK-COUNT-2:   ptx.ld {{.*}}space = "global"
// CHECK-COUNT-32:  ptx.ld {{.*}}space = "shared"{{.*}}vector<4xf32>
// CHECK:           ptx.yield
// CHECK-COUNT-16: ptx.st {{.*}}space = "global"{{.*}}vector<4xf32>
func.func @f(%x: tensor<256x64xf32> {blu.input = "x"}, %w: tensor<128x64xf32> {blu.input = "w"}, %b: tensor<128xf32> {blu.input = "b"}) -> (tensor<256x128xf32> {blu.output = "y"}) {
  %y = tile.launch %x, %w, %b {kernel = @linear} : (tensor<256x64xf32>, tensor<128x64xf32>, tensor<128xf32>) -> tensor<256x128xf32>
  func.return %y : (tensor<256x128xf32>) -> ()
}
