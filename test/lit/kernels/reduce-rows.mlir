// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// The gradient of a bias: sums over many rows are made in two steps, in a fixed order; over few rows in one block.

// CHECK-LABEL: func.func @many
// CHECK:         %[[P:.*]] = tile.launch %arg0 {kernel = @reduce_sum_4096x48} : (tensor<4096x48xf32>) -> tensor<49x48xf32>
// CHECK-NEXT:    tile.launch %[[P]] {kernel = @finish_reduce_sum_49x48} : (tensor<49x48xf32>) -> tensor<48xf32>
func.func @many(%x: tensor<4096x48xf32>) -> tensor<48xf32> {
  %0 = blu.reduce_sum %x {axes = array<i64: 0>} : (tensor<4096x48xf32>) -> tensor<48xf32>
  func.return %0 : (tensor<48xf32>) -> ()
}

// CHECK-LABEL: func.func @few
// CHECK:         tile.launch {{.*}} {kernel = @reduce_sum_16x768} : (tensor<16x768xf32>) -> tensor<768xf32>
// CHECK-NOT:     tile.launch
// CHECK:         func.return
func.func @few(%x: tensor<16x12x64xf32>) -> tensor<12x64xf32> {
  %0 = blu.reduce_sum %x {axes = array<i64: 0>} : (tensor<16x12x64xf32>) -> tensor<12x64xf32>
  func.return %0 : (tensor<12x64xf32>) -> ()
}
