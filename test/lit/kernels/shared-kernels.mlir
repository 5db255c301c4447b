// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Equal groups launch one kernel, also when shapes differ that the kernel does not see.

// CHECK-LABEL: func.func @twice
// CHECK-COUNT-3: tile.launch {{.*}} {kernel = @exp_4800}
// CHECK:         func.return
// CHECK-COUNT-1: tile.kernel
// CHECK-NOT:     tile.kernel
func.func @twice(%x: tensor<60x80xf32>, %y: tensor<4800xf32>, %z: tensor<2x40x60xf32>) -> (tensor<60x80xf32>, tensor<4800xf32>, tensor<2x40x60xf32>) {
  %0 = blu.exp %x : (tensor<60x80xf32>) -> tensor<60x80xf32>
  %1 = blu.exp %y : (tensor<4800xf32>) -> tensor<4800xf32>
  %2 = blu.exp %z : (tensor<2x40x60xf32>) -> tensor<2x40x60xf32>
  func.return %0, %1, %2 : (tensor<60x80xf32>, tensor<4800xf32>, tensor<2x40x60xf32>) -> ()
}
