// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// What follows a product element by element becomes its epilogue. Both the argument of gelu and its value are stored; the product alone is not.

// CHECK-LABEL: func.func @linear
// CHECK:         tile.launch {{.*}} {kernel = @gemm_nt_bias_gelu_64x48x32} : ({{.*}}) -> (tensor<64x48xf32>, tensor<64x48xf32>)
// CHECK-NOT:     tile.launch
// CHECK:         func.return

// CHECK-LABEL: tile.kernel @gemm_nt_bias_gelu_64x48x32
// CHECK:         %[[X:.*]] = tile.contract
// CHECK:         %[[B:.*]] = tile.load {{.*}} -> !tile.block<1x48xf32>
// CHECK:         %[[PRE:.*]] = tile.add %[[X]], %[[B]]
// CHECK:         tile.store %[[PRE]]
// CHECK:         %[[Y:.*]] = tile.gelu %[[PRE]]
// CHECK:         tile.store %[[Y]]
// CHECK-NEXT:    tile.end
func.func @linear(%x: tensor<64x32xf32>, %w: tensor<48x32xf32>, %b: tensor<48xf32>) -> (tensor<64x48xf32>, tensor<64x48xf32>) {
  %0 = blu.dot %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<48x32xf32>) -> tensor<64x48xf32>
  %1 = blu.broadcast %b {axes = array<i64: 1>} : (tensor<48xf32>) -> tensor<64x48xf32>
  %2 = blu.add %0, %1 : (tensor<64x48xf32>, tensor<64x48xf32>) -> tensor<64x48xf32>
  %3 = blu.gelu %2 {approximate = "tanh"} : (tensor<64x48xf32>) -> tensor<64x48xf32>
  func.return %2, %3 : (tensor<64x48xf32>, tensor<64x48xf32>) -> ()
}
