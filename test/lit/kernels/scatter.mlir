// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// The gradient of a lookup fills the table a strip of columns at a time, rows added in order.

// CHECK-LABEL: tile.kernel @scatter_add_128x256_to_1000 attributes {grid = array<i64: 256>, outs = 1 : i64, steps = array<i64: 64>}
// CHECK-NEXT:    tile.scatter_add {{.*}} {cols = 64 : i64}
// CHECK-NEXT:    tile.end
func.func @grad(%dy: tensor<4x32x256xf32>, %tokens: tensor<4x32xi32>) -> tensor<1000x256xf32> {
  %0 = blu.scatter_add %dy, %tokens {rows = 1000 : i64} : (tensor<4x32x256xf32>, tensor<4x32xi32>) -> tensor<1000x256xf32>
  func.return %0 : (tensor<1000x256xf32>) -> ()
}
