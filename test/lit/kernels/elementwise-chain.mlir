// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// A chain of any length over one shape is one kernel, whatever views are between its operations; what only it uses is never stored.

// CHECK-LABEL: func.func @chain
// CHECK-COUNT-1: tile.launch
// CHECK-NOT:     tile.launch
// CHECK:         func.return

// CHECK-LABEL: tile.kernel @{{.*}}_6x40 attributes {grid = array<i64>, outs = 1 : i64
func.func @chain(%x: tensor<6x8x5xf32>, %y: tensor<6x40xf32>) -> tensor<8x5x6xf32> {
  %0 = blu.exp %x : (tensor<6x8x5xf32>) -> tensor<6x8x5xf32>
  %1 = blu.reshape %0 : (tensor<6x8x5xf32>) -> tensor<6x40xf32>
  %2 = blu.mul %1, %y : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %3 = blu.tanh %2 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %4 = blu.reshape %3 : (tensor<6x40xf32>) -> tensor<6x8x5xf32>
  %5 = blu.transpose %4 {perm = array<i64: 1, 2, 0>} : (tensor<6x8x5xf32>) -> tensor<8x5x6xf32>
  %6 = blu.neg %5 : (tensor<8x5x6xf32>) -> tensor<8x5x6xf32>
  func.return %6 : (tensor<8x5x6xf32>) -> ()
}
