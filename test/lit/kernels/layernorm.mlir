// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// A norm is one kernel: the row is held in a block while its statistics are computed and used.

// CHECK-LABEL: func.func @norm
// CHECK-COUNT-1: tile.launch
// CHECK-NOT:     tile.launch
// CHECK:         func.return

// CHECK-LABEL: tile.kernel @layernorm_512x256 attributes {grid = array<i64: 512>, outs = 3 : i64, steps = array<i64: 16>}
// CHECK-COUNT-1: tile.load {{.*}} -> !tile.block<16x256xf32>
// CHECK-COUNT-2: tile.reduce {{.*}} {axis = 1 : i64, kind = "sum"}
// CHECK-NOT:     scf.for
// CHECK:         tile.end
func.func @norm(%x: tensor<512x256xf32>, %g: tensor<256xf32>, %b: tensor<256xf32>) -> (tensor<512x256xf32>, tensor<512xf32>, tensor<512xf32>) {
  %0:3 = blu.layernorm %x, %g, %b {eps = 1.0e-05 : f64} : (tensor<512x256xf32>, tensor<256xf32>, tensor<256xf32>) -> (tensor<512x256xf32>, tensor<512xf32>, tensor<512xf32>)
  func.return %0#0, %0#1, %0#2 : (tensor<512x256xf32>, tensor<512xf32>, tensor<512xf32>) -> ()
}
