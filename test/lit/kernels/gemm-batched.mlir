// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Batch dimensions are grid axes; rows of several dimensions are one where they are evenly spaced.

// CHECK-LABEL: tile.kernel @gemm_nt_6x16x20x8 attributes {grid = array<i64: 6, 16, 20>,
// CHECK:         tile.contract %{{.*}}, %{{.*}}, %[[B:.*]], %[[I:.*]], %[[B]], %[[J:.*]] attributes
func.func @scores(%q: tensor<2x3x16x8xf32>, %k: tensor<2x3x20x8xf32>) -> tensor<2x3x16x20xf32> {
  %0 = blu.dot %q, %k {lhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_batch = array<i64: 0, 1>, rhs_contract = array<i64: 3>} : (tensor<2x3x16x8xf32>, tensor<2x3x20x8xf32>) -> tensor<2x3x16x20xf32>
  func.return %0 : (tensor<2x3x16x20xf32>) -> ()
}
