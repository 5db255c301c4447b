// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Logits that only a loss and its gradient need never exist all at once: rows go through product, loss and both gradient products in chunks. What is a row for each row is joined, sums over rows go on from chunk to chunk in the products' epilogues.

// CHECK-LABEL: func.func @classify
// CHECK-NOT:     4096x50257
// CHECK:         tile.launch {{.*}} {kernel = @gemm_nt_1024x50257x64}
// CHECK:         tile.launch {{.*}} {kernel = @cross_entropy_cross_entropy_grad_1024x50257}
// CHECK:         %[[DX0:.*]] = tile.launch {{.*}} {kernel = @gemm_nn_1024x64x50257}
// CHECK:         %[[DW0:.*]] = tile.launch {{.*}} {kernel = @gemm_tn_50257x64x1024}
// CHECK:         tile.launch {{.*}} {kernel = @cross_entropy_cross_entropy_grad_1024x50257_2}
// CHECK:         tile.launch {{.*}}, %[[DW0]] {kernel = @gemm_tn_residual_50257x64x1024}
// CHECK:         blu.concat %[[DX0]], {{.*}} -> tensor<4096x64xf32>
// CHECK:         func.return
func.func @classify(%x: tensor<4096x64xf32>, %w: tensor<50257x64xf32>, %t: tensor<4096xi32>) -> (tensor<f32>, tensor<4096x64xf32>, tensor<50257x64xf32>) {
  %l = blu.dot %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<4096x64xf32>, tensor<50257x64xf32>) -> tensor<4096x50257xf32>
  %0:3 = blu.cross_entropy %l, %t {ignore = -1 : i64} : (tensor<4096x50257xf32>, tensor<4096xi32>) -> (tensor<f32>, tensor<f32>, tensor<4096xf32>)
  %1 = blu.constant {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
  %d = blu.cross_entropy_grad %l, %t, %0#2, %1 {ignore = -1 : i64} : (tensor<4096x50257xf32>, tensor<4096xi32>, tensor<4096xf32>, tensor<f32>) -> tensor<4096x50257xf32>
  %dx = blu.dot %d, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<4096x50257xf32>, tensor<50257x64xf32>) -> tensor<4096x64xf32>
  %dw = blu.dot %d, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<4096x50257xf32>, tensor<4096x64xf32>) -> tensor<50257x64xf32>
  func.return %0#0, %dx, %dw : (tensor<f32>, tensor<4096x64xf32>, tensor<50257x64xf32>) -> ()
}
