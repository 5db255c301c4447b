// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Rows of the table are loaded where they are used: lookup, positions and the first norm are one kernel.

// CHECK-LABEL: tile.kernel @gather_add_layernorm_
// CHECK:         %[[ROWS:.*]] = tile.gather
// CHECK:         %[[POS:.*]] = tile.load
// CHECK:         %[[X:.*]] = tile.add %[[ROWS]], %[[POS]]
// CHECK:         tile.store %[[X]]
// CHECK:         tile.reduce %[[X]]
func.func @embed(%wte: tensor<100x64xf32>, %wpe: tensor<32x64xf32>, %tokens: tensor<4x32xi32>, %g: tensor<64xf32>, %b: tensor<64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32x64xf32>) {
  %0 = blu.gather %wte, %tokens : (tensor<100x64xf32>, tensor<4x32xi32>) -> tensor<4x32x64xf32>
  %1 = blu.broadcast %wpe {axes = array<i64: 1, 2>} : (tensor<32x64xf32>) -> tensor<4x32x64xf32>
  %2 = blu.add %0, %1 : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %3:3 = blu.layernorm %2, %g, %b {eps = 1.0e-05 : f64} : (tensor<4x32x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32xf32>, tensor<4x32xf32>)
  func.return %2, %3#0 : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> ()
}
