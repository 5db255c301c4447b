// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// With bf16 a loss and its gradient read the same logits, rounded where the product leaves them: one kernel for both, and probabilities add up to one.

// CHECK-LABEL: func.func @classify
// CHECK:         [[LOGITS:%[0-9]+]] = tile.launch {{.*}} {kernel = @gemm_nt_cast_256x1000x64} : {{.*}} -> tensor<256x1000xbf16>
// CHECK-NEXT:    {{.*}} = tile.launch [[LOGITS]], {{.*}} {kernel = @cross_entropy_cast_cross_entropy_grad_256x1000} : (tensor<256x1000xbf16>, tensor<256xi32>) -> (tensor<256x1000xbf16>, tensor<4xf32>, tensor<4xf32>)
// CHECK-NOT:     cross_entropy_grad
// CHECK:         func.return
func.func @classify(%x: tensor<256x64xbf16>, %w: tensor<1000x64xbf16>, %targets: tensor<256xi32>) -> (tensor<f32>, tensor<f32>, tensor<256x64xf32>) {
  %wide = blu.cast %x : (tensor<256x64xbf16>) -> tensor<256x64xf32>
  %table = blu.cast %w : (tensor<1000x64xbf16>) -> tensor<1000x64xf32>
  %logits = blu.dot %wide, %table {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<256x64xf32>, tensor<1000x64xf32>) -> tensor<256x1000xf32>
  %0:3 = blu.cross_entropy %logits, %targets {ignore = -1 : i64} : (tensor<256x1000xf32>, tensor<256xi32>) -> (tensor<f32>, tensor<f32>, tensor<256xf32>)
  %1 = blu.constant {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = blu.cross_entropy_grad %logits, %targets, %0#2, %1 {ignore = -1 : i64} : (tensor<256x1000xf32>, tensor<256xi32>, tensor<256xf32>, tensor<f32>) -> tensor<256x1000xf32>
  %3 = blu.dot %2, %table {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<256x1000xf32>, tensor<1000x64xf32>) -> tensor<256x64xf32>
  func.return %0#0, %0#1, %3 : (tensor<f32>, tensor<f32>, tensor<256x64xf32>) -> ()
}
