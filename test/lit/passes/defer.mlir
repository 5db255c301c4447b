// RUN: bluc opt %s --pass-pipeline='builtin.module(defer{bucket=64 intensity=1})' | FileCheck %s
// RUN: bluc opt %s --pass-pipeline='builtin.module(defer{bucket=64 intensity=1},bucket{size=64},overlap)' | FileCheck %s --check-prefix=APART
// RUN: bluc opt %s --pass-pipeline='builtin.module(defer{bucket=64 intensity=100})' | FileCheck %s --check-prefix=COSTLY
// RUN: bluc opt %s --pass-pipeline='builtin.module(defer{bucket=64})' | FileCheck %s --check-prefix=COSTLY
// RUN: not bluc opt %s --pass-pipeline='builtin.module(bucket,defer)' 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not bluc opt %s --pass-pipeline='builtin.module(defer{intensity=-1})' 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// The gradient of the table, which is large, is ready last. While its sum is under way the weights' gradients are computed that it doesn't
// depend on, the last ones of the function, as many as leave least to wait for: a byte takes as long as an operation here, the table's sum
// 896 + 32 and each product 512, with a sum of 64 + 32 that follows. Two take as long as the table's sum and theirs but one, which is
// waited for; of three the last would be waited for too.

// CHECK-LABEL: func.func @accumulate_last
// CHECK:         %[[W:.*]] = blu.dot %arg1, %arg0
// CHECK-NEXT:    %[[S:.*]] = dtms.all_reduce %[[W]]
// CHECK-NEXT:    %[[E:.*]] = blu.exp %arg1
// CHECK-NEXT:    %[[D:.*]] = blu.exp %[[E]]
// CHECK-NEXT:    %[[T:.*]] = blu.scatter_add %[[D]]
// CHECK-NEXT:    dtms.all_reduce %[[T]]
// CHECK-NEXT:    %[[V:.*]] = blu.dot %[[E]], %arg0
// CHECK-NEXT:    %[[A:.*]] = blu.accumulate %arg3, %[[V]]
// CHECK-NEXT:    dtms.all_reduce %[[A]]
// CHECK-NEXT:    %[[U:.*]] = blu.dot %[[D]], %arg0
// CHECK-NEXT:    dtms.all_reduce %[[U]]

// APART-LABEL: func.func @accumulate_last
// APART:         dtms.start
// APART:         blu.scatter_add
// APART-NEXT:    %[[T:.*]] = dtms.start
// APART-NEXT:    blu.dot
// APART-NEXT:    blu.accumulate
// APART-NEXT:    %[[V:.*]] = dtms.start
// APART-NEXT:    blu.dot
// APART-NEXT:    dtms.start
// APART-NEXT:    dtms.wait
// APART-NEXT:    dtms.wait %[[T]]
// APART-NEXT:    dtms.wait %[[V]]

// Products that take less time than their own sums stay where they are.

// COSTLY-LABEL: func.func @accumulate_last
// COSTLY-COUNT-3: blu.dot
// COSTLY:         blu.scatter_add

// What is computed again for a product alone stays before it, and so does the product.

// CHECK-LABEL: func.func @again
// CHECK:         blu.gelu
// CHECK-NEXT:    blu.dot
// CHECK:         blu.scatter_add

// What is put off may keep more memory, but not more than the function needs at its peak.

// CHECK-LABEL: func.func @full
// CHECK:         blu.dot
// CHECK:         blu.scatter_add

// NEGATIVE: defer: an intensity of -1: expected floating-point operations for a byte, or 0
// ORDER: pass pipeline: defer must run before bucket: when a value is ready depends on where it is computed
builtin.module attributes {blu.mesh = {context = "ring", cp = 1 : i64, dp = 2 : i64, zero = 0 : i64}} {
  func.func @accumulate_last(%x: tensor<16x4xf32>, %y: tensor<16x4xf32>, %at: tensor<16xi32>, %s: tensor<4x4xf32>, %first: tensor<i1>) -> (tensor<56x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
    %w = blu.dot %y, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %e = blu.exp %y : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %v = blu.dot %e, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %a = blu.accumulate %s, %v, %first : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<i1>) -> tensor<4x4xf32>
    %d = blu.exp %e : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %u = blu.dot %d, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %t = blu.scatter_add %d, %at {rows = 56 : i64} : (tensor<16x4xf32>, tensor<16xi32>) -> tensor<56x4xf32>
    %rt = dtms.all_reduce %t {group = "world"} : (tensor<56x4xf32>) -> tensor<56x4xf32>
    %ra = dtms.all_reduce %a {group = "world"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %rw = dtms.all_reduce %w {group = "world"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %ru = dtms.all_reduce %u {group = "world"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %rt, %rw, %ra, %ru : (tensor<56x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> ()
  }
  func.func @again(%x: tensor<16x4xf32>, %y: tensor<16x4xf32>, %at: tensor<16xi32>) -> (tensor<56x4xf32>, tensor<4x4xf32>) {
    %g = blu.gelu %x {approximate = "tanh", blu.recomputed} : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %v = blu.dot %y, %g {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %d = blu.exp %y : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %t = blu.scatter_add %d, %at {rows = 56 : i64} : (tensor<16x4xf32>, tensor<16xi32>) -> tensor<56x4xf32>
    %rt = dtms.all_reduce %t {group = "world"} : (tensor<56x4xf32>) -> tensor<56x4xf32>
    %rv = dtms.all_reduce %v {group = "world"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %rt, %rv : (tensor<56x4xf32>, tensor<4x4xf32>) -> ()
  }
  func.func @full(%x: tensor<64x4xf32>, %z: tensor<64x4xf32>, %at: tensor<64xi32>) -> (tensor<256x4xf32>, tensor<4x4xf32>) {
    %e = blu.softmax %x {axis = 1 : i64} : (tensor<64x4xf32>) -> tensor<64x4xf32>
    %v = blu.dot %e, %z {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<4x4xf32>
    %d = blu.softmax %z {axis = 1 : i64} : (tensor<64x4xf32>) -> tensor<64x4xf32>
    %t = blu.scatter_add %d, %at {rows = 256 : i64} : (tensor<64x4xf32>, tensor<64xi32>) -> tensor<256x4xf32>
    %rt = dtms.all_reduce %t {group = "world"} : (tensor<256x4xf32>) -> tensor<256x4xf32>
    %rv = dtms.all_reduce %v {group = "world"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %rt, %rv : (tensor<256x4xf32>, tensor<4x4xf32>) -> ()
  }
}
