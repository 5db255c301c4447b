// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Both halves of a rotation are one kernel, which writes them straight into the joined result.

// CHECK-LABEL: func.func @turn
// CHECK:         %[[H:.*]]:2 = tile.launch {{.*}} {kernel = @rope_
// CHECK-NOT:     tile.launch
// CHECK:         blu.concat
// CHECK:         func.return
func.func @turn(%x: tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32> {
  %0 = blu.rope %x {base = 1.0e+04 : f64, inverse = false} : (tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  func.return %0 : (tensor<2x4x16x8xf32>) -> ()
}
