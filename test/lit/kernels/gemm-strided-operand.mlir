// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// A transposed operand is read where it is, by strides; one without a dimension of stride 1 is copied first.

// CHECK-LABEL: func.func @transposed
// CHECK:         %[[T:.*]] = blu.transpose
// CHECK-NOT:     tile.launch {{.*}}copy
// CHECK:         tile.launch %[[T]], {{.*}} {kernel = @gemm_tt_
func.func @transposed(%x: tensor<32x64xf32>, %w: tensor<48x32xf32>) -> tensor<64x48xf32> {
  %0 = blu.transpose %x {perm = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %1 = blu.dot %0, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<48x32xf32>) -> tensor<64x48xf32>
  func.return %1 : (tensor<64x48xf32>) -> ()
}

// CHECK-LABEL: func.func @every_other_column
// CHECK:         %[[C:.*]] = tile.launch {{.*}} {kernel = @copy_2048}
// CHECK:         %[[R:.*]] = blu.reshape %[[C]]
// CHECK:         tile.launch %[[R]], {{.*}} {kernel = @gemm_nt_64x48x32}
func.func @every_other_column(%x: tensor<64x64xf32>, %w: tensor<48x32xf32>) -> tensor<64x48xf32> {
  %0 = blu.slice %x {limits = array<i64: 64, 64>, starts = array<i64: 0, 0>, steps = array<i64: 1, 2>} : (tensor<64x64xf32>) -> tensor<64x32xf32>
  %1 = blu.dot %0, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<48x32xf32>) -> tensor<64x48xf32>
  func.return %1 : (tensor<64x48xf32>) -> ()
}
