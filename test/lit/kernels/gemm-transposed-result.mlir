// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// A product that is only used transposed is computed the other way around: no transposed stores.

// CHECK-LABEL: func.func @weights
// CHECK-SAME:      %[[X:.*]]: tensor<64x32xf32>, %[[DY:.*]]: tensor<64x48xf32>
// CHECK:         %[[A:.*]] = blu.transpose %[[DY]]
// CHECK:         %[[B:.*]] = blu.transpose %[[X]]
// CHECK:         %[[R:.*]] = tile.launch %[[A]], %[[B]] {kernel = @gemm_tn_48x32x64} : {{.*}} -> tensor<48x32xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @weights(%x: tensor<64x32xf32>, %dy: tensor<64x48xf32>) -> tensor<48x32xf32> {
  %0 = blu.dot %x, %dy {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<64x32xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %1 = blu.transpose %0 {perm = array<i64: 1, 0>} : (tensor<32x48xf32>) -> tensor<48x32xf32>
  func.return %1 : (tensor<48x32xf32>) -> ()
}
