// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Heads are views of the projection, and the merged result is a view of attention's: no kernel moves them.

// CHECK-LABEL: func.func @attend
// CHECK:         %[[O:.*]]:2 = tile.launch {{.*}} {kernel = @attention_causal_2x4x64x16}
// CHECK:         %[[T:.*]] = blu.transpose %[[O]]#0
// CHECK:         %[[M:.*]] = blu.reshape %[[T]]
// CHECK:         tile.launch {{.*}} {kernel = @gemm_nt_128x64x64}
// CHECK-NOT:     tile.launch
// CHECK:         func.return
func.func @attend(%qkv: tensor<2x64x192xf32>, %w: tensor<64x64xf32>) -> tensor<2x64x64xf32> {
  %q0 = blu.slice %qkv {limits = array<i64: 2, 64, 64>, starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : (tensor<2x64x192xf32>) -> tensor<2x64x64xf32>
  %q1 = blu.reshape %q0 : (tensor<2x64x64xf32>) -> tensor<2x64x4x16xf32>
  %q = blu.transpose %q1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x16xf32>) -> tensor<2x4x64x16xf32>
  %k0 = blu.slice %qkv {limits = array<i64: 2, 64, 128>, starts = array<i64: 0, 0, 64>, steps = array<i64: 1, 1, 1>} : (tensor<2x64x192xf32>) -> tensor<2x64x64xf32>
  %k1 = blu.reshape %k0 : (tensor<2x64x64xf32>) -> tensor<2x64x4x16xf32>
  %k = blu.transpose %k1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x16xf32>) -> tensor<2x4x64x16xf32>
  %v0 = blu.slice %qkv {limits = array<i64: 2, 64, 192>, starts = array<i64: 0, 0, 128>, steps = array<i64: 1, 1, 1>} : (tensor<2x64x192xf32>) -> tensor<2x64x64xf32>
  %v1 = blu.reshape %v0 : (tensor<2x64x64xf32>) -> tensor<2x64x4x16xf32>
  %v = blu.transpose %v1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x16xf32>) -> tensor<2x4x64x16xf32>
  %o:2 = blu.attention %q, %k, %v {causal = true, scale = 2.5e-01 : f64} : (tensor<2x4x64x16xf32>, tensor<2x4x64x16xf32>, tensor<2x4x64x16xf32>) -> (tensor<2x4x64x16xf32>, tensor<2x4x64xf32>)
  %t = blu.transpose %o#0 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x16xf32>) -> tensor<2x64x4x16xf32>
  %m = blu.reshape %t : (tensor<2x64x4x16xf32>) -> tensor<2x64x64xf32>
  %y = blu.dot %m, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<2x64x64xf32>, tensor<64x64xf32>) -> tensor<2x64x64xf32>
  func.return %y : (tensor<2x64x64xf32>) -> ()
}
