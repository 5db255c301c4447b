// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s

// Targets that a rank takes from those of a whole sequence are gathered before the kernel that needs them, so that loss and
// gradient are one kernel, which may write the gradient over the logits.

// CHECK-LABEL: func.func @f
// CHECK:         %[[T:.*]] = tile.launch {{.*}}{kernel = @gather_4x16}
// CHECK:         tile.launch %{{.*}}, %{{.*}} {kernel = @cross_entropy_cross_entropy_grad_64x300}
// CHECK-NOT:     cross_entropy
// CHECK:         tile.launch {{.*}}{kernel = @finish_cross_entropy
// CHECK:         func.return
func.func @f(%z: tensor<4x16x300xf32>, %t: tensor<8x16xi32>, %i: tensor<4xi32>, %d: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x16x300xf32>) {
  %g = blu.gather %t, %i : (tensor<8x16xi32>, tensor<4xi32>) -> tensor<4x16xi32>
  %s:3 = blu.cross_entropy %z, %g {ignore = -1 : i64} : (tensor<4x16x300xf32>, tensor<4x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x16xf32>)
  %y = blu.cross_entropy_grad %z, %g, %s#2, %d {ignore = -1 : i64} : (tensor<4x16x300xf32>, tensor<4x16xi32>, tensor<4x16xf32>, tensor<f32>) -> tensor<4x16x300xf32>
  func.return %s#0, %s#1, %y : (tensor<f32>, tensor<f32>, tensor<4x16x300xf32>) -> ()
}
