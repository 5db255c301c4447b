// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Rows too long for a block are gone over in pieces, once for each reduction and once to store; the exponentials are computed again rather than kept.

// CHECK-LABEL: tile.kernel @softmax_8x50257 attributes {grid = array<i64: 8>,
// CHECK:         scf.for {{.*}} -> !tile.block<1x1xf32>
// CHECK:           tile.reduce {{.*}} kind = "max"
// CHECK:         scf.for {{.*}} -> !tile.block<1x1xf32>
// CHECK:           tile.exp
// CHECK:           tile.reduce {{.*}} kind = "sum"
// CHECK:         scf.for {{.*}} -> () (
// CHECK:           tile.exp
// CHECK:           %[[Y:.*]] = tile.div
// CHECK:           tile.store %[[Y]]
// CHECK:         tile.end
func.func @softmax(%x: tensor<8x50257xf32>) -> tensor<8x50257xf32> {
  %0 = blu.softmax %x {axis = 1 : i64} : (tensor<8x50257xf32>) -> tensor<8x50257xf32>
  func.return %0 : (tensor<8x50257xf32>) -> ()
}
