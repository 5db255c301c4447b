// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels{target=cuda})' | FileCheck %s
// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// The copy of a parameter that products read is written with it: by the kernel that has the new value at hand, the first's too, before
// which go the numbers that all have in common.

// CHECK-LABEL: func.func @update
// CHECK-COUNT-2: tile.launch {{.*}} {kernel = @adamw_cast_1024} : {{.*}} -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xbf16>)
// CHECK-NOT:     tile.launch
// CHECK:         func.return
func.func @update(%p: tensor<32x32xf32>, %m: tensor<32x32xf32>, %v: tensor<32x32xf32>, %g: tensor<32x32xf32>,
    %p2: tensor<1024xf32>, %m2: tensor<1024xf32>, %v2: tensor<1024xf32>, %g2: tensor<1024xf32>, %lr: tensor<f32>, %scale: tensor<f32>, %step: tensor<f32>)
    -> (tensor<32x32xf32>, tensor<32x32xbf16>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<1024xf32>, tensor<1024xbf16>, tensor<1024xf32>, tensor<1024xf32>) {
  %0:3 = blu.adamw %p, %m, %v, %g, %lr, %scale, %step {beta1 = 9.0e-01 : f64, beta2 = 9.5e-01 : f64, eps = 1.0e-08 : f64, weight_decay = 1.0e-01 : f64} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>)
  %1:3 = blu.adamw %p2, %m2, %v2, %g2, %lr, %scale, %step {beta1 = 9.0e-01 : f64, beta2 = 9.5e-01 : f64, eps = 1.0e-08 : f64, weight_decay = 1.0e-01 : f64} : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
  %2 = blu.cast %0#0 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %3 = blu.cast %1#0 : (tensor<1024xf32>) -> tensor<1024xbf16>
  func.return %0#0, %2, %0#1, %0#2, %1#0, %3, %1#1, %1#2 : (tensor<32x32xf32>, tensor<32x32xbf16>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<1024xf32>, tensor<1024xbf16>, tensor<1024xf32>, tensor<1024xf32>) -> ()
}
