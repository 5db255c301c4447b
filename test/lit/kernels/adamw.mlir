// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// One kernel an update: parameter and both moments, read and written once. What all updates share is computed once, in kernels of its own.

// CHECK-LABEL: func.func @update
// CHECK-COUNT-2: tile.launch {{.*}} {kernel = @adamw_1024} : {{.*}} -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
// CHECK-NOT:     tile.launch
// CHECK:         func.return

// CHECK-LABEL: tile.kernel @adamw_1024 attributes {{{.*}}outs = 3 : i64
// CHECK-NOT:     tile.tanh
// CHECK:         tile.sqrt
// CHECK:         tile.end
func.func @update(%p: tensor<32x32xf32>, %m: tensor<32x32xf32>, %v: tensor<32x32xf32>, %g: tensor<32x32xf32>,
    %p2: tensor<1024xf32>, %m2: tensor<1024xf32>, %v2: tensor<1024xf32>, %g2: tensor<1024xf32>, %lr: tensor<f32>, %scale: tensor<f32>, %step: tensor<f32>)
    -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) {
  %0:3 = blu.adamw %p, %m, %v, %g, %lr, %scale, %step {beta1 = 9.0e-01 : f64, beta2 = 9.5e-01 : f64, eps = 1.0e-08 : f64, weight_decay = 1.0e-01 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>)
  %1:3 = blu.adamw %p2, %m2, %v2, %g2, %lr, %scale, %step {beta1 = 9.0e-01 : f64, beta2 = 9.5e-01 : f64, eps = 1.0e-08 : f64, weight_decay = 1.0e-01 : f64} : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
  func.return %0#0, %0#1, %0#2, %1#0, %1#1, %1#2 : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> ()
}
