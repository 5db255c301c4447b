// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a products=templates})' | FileCheck %s
// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a products=templates thread-stores})' | FileCheck %s --check-prefix=THREADS
// Results of 16 bits are put together in shared memory, from where the copy engine stores them; or threads store them, 8 bytes at a time.

tile.kernel @linear attributes {grid = array<i64: 128, 128>, outs = 1 : i64, steps = array<i64: 128, 128>} (%x: memref<128x256xbf16>, %w: memref<128x256xbf16>, %y: memref<128x128xbf16>, %i: index, %j: index) {
  %p = tile.contract %x, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<128x256xbf16>, memref<128x256xbf16>, index, index) -> !tile.block<128x128xf32> {}
  %c = tile.cast %p : (!tile.block<128x128xf32>) -> !tile.block<128x128xbf16>
  tile.store %c, %y, %i, %j : (!tile.block<128x128xbf16>, memref<128x128xbf16>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: ptx.kernel @linear attributes
// CHECK:         ptx.wgmma
// CHECK-NOT:     ptx.st {{.*}}space = "global"
// CHECK:         ptx.tma_store
// THREADS-LABEL: ptx.kernel @linear attributes
// THREADS:         ptx.wgmma
// THREADS-NOT:     ptx.tma_store
// THREADS:         ptx.st {{.*}}space = "global"
// THREADS-NOT:     ptx.tma_store
// THREADS:         exec.func
func.func @f(%x: tensor<128x256xbf16> {blu.input = "x"}, %w: tensor<128x256xbf16> {blu.input = "w"}) -> (tensor<128x128xbf16> {blu.output = "y"}) {
  %y = tile.launch %x, %w {kernel = @linear} : (tensor<128x256xbf16>, tensor<128x256xbf16>) -> tensor<128x128xbf16>
  func.return %y : (tensor<128x128xbf16>) -> ()
}
