// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Attention never holds more scores than a block of queries by a block of keys. With a causal mask the blocks of keys that no query of the block sees are skipped, and those that all see need no mask.

// CHECK-LABEL: tile.kernel @attention_causal_1x2x256x32 attributes {grid = array<i64: 1, 2, 256>, outs = 2 : i64, steps = array<i64: 1, 1, 64>}
// CHECK-NOT:     tile.scratch
// CHECK:         scf.for
// CHECK-NOT:     tile.compare {predicate = "ge"}
// CHECK:         scf.yield
// CHECK:         scf.for
// CHECK:           tile.compare {{.*}} {predicate = "ge"} : (!tile.block<64x1xi32>, !tile.block<1x128xi32>) -> !tile.block<64x128xi1>
// CHECK:         scf.yield
func.func @attend(%q: tensor<1x2x256x32xf32>, %k: tensor<1x2x256x32xf32>, %v: tensor<1x2x256x32xf32>) -> tensor<1x2x256x32xf32> {
  %o:2 = blu.attention %q, %k, %v {causal = true, scale = 2.5e-01 : f64} : (tensor<1x2x256x32xf32>, tensor<1x2x256x32xf32>, tensor<1x2x256x32xf32>) -> (tensor<1x2x256x32xf32>, tensor<1x2x256xf32>)
  func.return %o#0 : (tensor<1x2x256x32xf32>) -> ()
}
