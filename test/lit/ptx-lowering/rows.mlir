// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a})' | FileCheck %s
// Four rows at a time, a warp each: accesses of 16 bytes, rows beyond the last are predicated off, a sum over columns is a
// butterfly over the lanes of the warp, and what has one row is read by all.

tile.kernel @softmax attributes {grid = array<i64: 10>, outs = 1 : i64, steps = array<i64: 4>} (%x: memref<10x128xf32>, %g: memref<128xf32>, %y: memref<10x128xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %a = tile.load %x, %i, %zero : (memref<10x128xf32>, index, index) -> !tile.block<4x128xf32>
  %b = tile.load %g, %zero : (memref<128xf32>, index) -> !tile.block<1x128xf32>
  %c = tile.mul %a, %b : (!tile.block<4x128xf32>, !tile.block<1x128xf32>) -> !tile.block<4x128xf32>
  %e = tile.reduce %c {axis = 1 : i64, kind = "sum"} : (!tile.block<4x128xf32>) -> !tile.block<4x1xf32>
  %f = tile.div %c, %e : (!tile.block<4x128xf32>, !tile.block<4x1xf32>) -> !tile.block<4x128xf32>
  tile.store %f, %y, %i, %zero : (!tile.block<4x128xf32>, memref<10x128xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: ptx.kernel @softmax
// CHECK-SAME:    launch.blocks = 3 : i64
// CHECK-SAME:    launch.outs = 1 : i64
// CHECK-SAME:    threads = 128 : i64
// CHECK-NOT:     bar_sync
// CHECK:         %[[INSIDE:.*]] = ptx.setp
// CHECK:         ptx.ld %{{.*}}, %[[INSIDE]] {space = "global"} : (i64, i1) -> vector<4xf32>
// CHECK:         ptx.ld %{{.*}} {space = "global"} : (i64) -> vector<4xf32>
// CHECK-COUNT-5: ptx.shfl {{.*}} {mode = "bfly"}
// CHECK:         ptx.st %{{.*}}, %{{.*}}, %[[INSIDE]] {space = "global"} : (i64, vector<4xf32>, i1)
// CHECK:         ptx.return
// CHECK:         exec.launch
func.func @f(%x: tensor<10x128xf32> {blu.input = "x"}, %g: tensor<128xf32> {blu.input = "g"}) -> (tensor<10x128xf32> {blu.output = "y"}) {
  %y = tile.launch %x, %g {kernel = @softmax} : (tensor<10x128xf32>, tensor<128xf32>) -> tensor<10x128xf32>
  func.return %y : (tensor<10x128xf32>) -> ()
}
