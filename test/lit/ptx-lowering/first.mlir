// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a products=templates})' | FileCheck %s

// A product that is the first of a sum doesn't read what it replaces: the number that says so is read before.

tile.kernel @sum attributes {grid = array<i64: 256, 128>, outs = 1 : i64, steps = array<i64: 64, 128>} (%x: memref<256x64xbf16>, %w: memref<128x64xbf16>, %old: memref<256x128xf32>, %first: memref<i1>, %y: memref<256x128xf32>, %i: index, %j: index) {
  %p = tile.contract %x, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>, precision = "bf16"} : (memref<256x64xbf16>, memref<128x64xbf16>, index, index) -> !tile.block<64x128xf32> {}
  %o = tile.load %old, %i, %j : (memref<256x128xf32>, index, index) -> !tile.block<64x128xf32>
  %s = tile.add %o, %p : (!tile.block<64x128xf32>, !tile.block<64x128xf32>) -> !tile.block<64x128xf32>
  %f = tile.load %first : (memref<i1>) -> !tile.block<1x1xi1>
  %r = tile.select %f, %p, %s : (!tile.block<1x1xi1>, !tile.block<64x128xf32>, !tile.block<64x128xf32>) -> !tile.block<64x128xf32>
  tile.store %r, %y, %i, %j : (!tile.block<64x128xf32>, memref<256x128xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: ptx.kernel @sum
// CHECK:         %[[BYTE:.*]] = ptx.ld_byte
// CHECK:         %[[FIRST:.*]] = ptx.setp %[[BYTE]], {{.*}}is = "ne"
// CHECK:         %[[OTHERS:.*]] = ptx.not %[[FIRST]]
// CHECK-NOT:     ptx.ld {{%[0-9]+}} {space = "global"}
// CHECK:         ptx.ld %{{.*}}, %[[OTHERS]] {space = "global"} : (i64, i1) -> vector<4xf32>
// CHECK:         ptx.selp %[[FIRST]]
func.func @f(%x: tensor<256x64xbf16> {blu.input = "x"}, %w: tensor<128x64xbf16> {blu.input = "w"}, %o: tensor<256x128xf32> {blu.input = "o"}, %f: tensor<i1> {blu.input = "f"}) -> (tensor<256x128xf32> {blu.output = "y"}) {
  %y = tile.launch %x, %w, %o, %f {kernel = @sum} : (tensor<256x64xbf16>, tensor<128x64xbf16>, tensor<256x128xf32>, tensor<i1>) -> tensor<256x128xf32>
  func.return %y : (tensor<256x128xf32>) -> ()
}
