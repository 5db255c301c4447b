// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// A weight gradient is added to the sum of gradients in the product's epilogue, in the form that buffers and targets know: first ? product : sum + product.

// CHECK-LABEL: tile.kernel @gemm_tn_accumulate_48x32x64
// CHECK:         %[[P:.*]] = tile.contract
// CHECK:         %[[OLD:.*]] = tile.load {{.*}} -> !tile.block<32x32xf32>
// CHECK:         %[[SUM:.*]] = tile.add %[[OLD]], %[[P]]
// CHECK:         %[[FIRST:.*]] = tile.load {{.*}} -> !tile.block<1x1xi1>
// CHECK:         %[[NEW:.*]] = tile.select %[[FIRST]], %[[P]], %[[SUM]]
// CHECK:         tile.store %[[NEW]]
// CHECK-NEXT:    tile.end
func.func @weights(%dy: tensor<64x48xf32>, %x: tensor<64x32xf32>, %sum: tensor<48x32xf32>, %first: tensor<i1>) -> tensor<48x32xf32> {
  %0 = blu.dot %dy, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<64x48xf32>, tensor<64x32xf32>) -> tensor<48x32xf32>
  %1 = blu.accumulate %sum, %0, %first : (tensor<48x32xf32>, tensor<48x32xf32>, tensor<i1>) -> tensor<48x32xf32>
  func.return %1 : (tensor<48x32xf32>) -> ()
}
