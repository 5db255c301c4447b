// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// A sum of squares of many tensors: each in two steps in a fixed order, then their sum.

// CHECK-LABEL: func.func @norm
// CHECK:         tile.launch %arg0 {kernel = @sum_squares_512x256} : (tensor<512x256xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[S:.*]] = tile.launch {{.*}} {kernel = @finish_sum_squares_8}
// CHECK-NEXT:    tile.launch %arg1, %[[S]] {kernel = @sum_squares_sqrt_256} : (tensor<256xf32>, tensor<f32>) -> tensor<f32>
func.func @norm(%x: tensor<512x256xf32>, %y: tensor<256xf32>) -> tensor<f32> {
  %0 = blu.sum_squares %x, %y : (tensor<512x256xf32>, tensor<256xf32>) -> tensor<f32>
  %1 = blu.sqrt %0 : (tensor<f32>) -> tensor<f32>
  func.return %1 : (tensor<f32>) -> ()
}
