// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_80})' | FileCheck %s
// Rows of 37 elements start anywhere: a thread has one column at a time, so that a warp's accesses still lie together.

tile.kernel @double attributes {grid = array<i64: 6>, outs = 1 : i64, steps = array<i64: 6>} (%x: memref<6x37xf32>, %y: memref<6x37xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %a = tile.load %x, %i, %zero : (memref<6x37xf32>, index, index) -> !tile.block<6x37xf32>
  %b = tile.add %a, %a : (!tile.block<6x37xf32>, !tile.block<6x37xf32>) -> !tile.block<6x37xf32>
  tile.store %b, %y, %i, %zero : (!tile.block<6x37xf32>, memref<6x37xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: ptx.kernel @double
// CHECK-SAME:    target = "sm_80"
// CHECK-NOT:     vector
// CHECK:         ptx.ld %[[AT:.*]] {space = "global"} : (i64) -> f32
// CHECK:         ptx.ld %[[AT]], %[[INSIDE:.*]] {offset = 128 : i64, space = "global"} : (i64, i1) -> f32
// CHECK:         ptx.st %{{.*}}, %{{.*}}, %[[INSIDE]] {offset = 128 : i64, space = "global"} : (i64, f32, i1)
func.func @f(%x: tensor<6x37xf32> {blu.input = "x"}) -> (tensor<6x37xf32> {blu.output = "y"}) {
  %y = tile.launch %x {kernel = @double} : (tensor<6x37xf32>) -> tensor<6x37xf32>
  func.return %y : (tensor<6x37xf32>) -> ()
}
