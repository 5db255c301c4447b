// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Loss and gradient go over the logits in one kernel; a target is looked up, and checked, by tile.pick. Sum and count are partial results.

// CHECK-LABEL: func.func @classify
// CHECK:         tile.launch {{.*}} {kernel = @cross_entropy_cross_entropy_grad_256x1000} : {{.*}} -> (tensor<256x1000xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK:         tile.launch {{.*}} {kernel = @finish_cross_entropy_4}
// CHECK-NOT:     tile.launch
// CHECK:         func.return

// CHECK-LABEL: tile.kernel @cross_entropy_cross_entropy_grad_256x1000
// CHECK:         tile.pick {{.*}} {ignore = -1 : i64}
func.func @classify(%logits: tensor<256x1000xf32>, %targets: tensor<256xi32>) -> (tensor<f32>, tensor<f32>, tensor<256x1000xf32>) {
  %0:3 = blu.cross_entropy %logits, %targets {ignore = -1 : i64} : (tensor<256x1000xf32>, tensor<256xi32>) -> (tensor<f32>, tensor<f32>, tensor<256xf32>)
  %1 = blu.constant {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = blu.cross_entropy_grad %logits, %targets, %0#2, %1 {ignore = -1 : i64} : (tensor<256x1000xf32>, tensor<256xi32>, tensor<256xf32>, tensor<f32>) -> tensor<256x1000xf32>
  func.return %0#0, %0#1, %2 : (tensor<f32>, tensor<f32>, tensor<256x1000xf32>) -> ()
}
