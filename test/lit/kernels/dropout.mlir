// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Random numbers are drawn where they are used, in a product's epilogue too: each depends on its place in the whole tensor alone.

// CHECK-LABEL: func.func @drop
// CHECK-COUNT-1: tile.launch
// CHECK-NOT:     tile.launch
// CHECK:         func.return

// CHECK-LABEL: tile.kernel @gemm_nt_
// CHECK:         tile.random_uniform {{.*}} {pitch = 48 : i64, stream = 3 : i64}
func.func @drop(%x: tensor<64x32xf32>, %w: tensor<48x32xf32>, %seed: tensor<i64>) -> tensor<64x48xf32> {
  %0 = blu.dot %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<48x32xf32>) -> tensor<64x48xf32>
  %1 = blu.random_uniform %seed {stream = 3 : i64} : (tensor<i64>) -> tensor<64x48xf32>
  %2 = blu.constant {value = dense<1.0e-01> : tensor<64x48xf32>} : () -> tensor<64x48xf32>
  %3 = blu.compare %1, %2 {predicate = "ge"} : (tensor<64x48xf32>, tensor<64x48xf32>) -> tensor<64x48xi1>
  %4 = blu.constant {value = dense<0.0e+00> : tensor<64x48xf32>} : () -> tensor<64x48xf32>
  %5 = blu.select %3, %0, %4 : (tensor<64x48xi1>, tensor<64x48xf32>, tensor<64x48xf32>) -> tensor<64x48xf32>
  func.return %5 : (tensor<64x48xf32>) -> ()
}
