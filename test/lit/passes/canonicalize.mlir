// RUN: bluc opt %s --pass-pipeline='builtin.module(canonicalize)' | FileCheck %s
// Constants are folded, and what nothing needs any more goes.

// CHECK-LABEL: func.func @fold
// CHECK-NEXT:    %[[C:.*]] = arith.constant {value = 7 : index}
// CHECK-NEXT:    func.return %[[C]]
func.func @fold() -> index {
  %a = arith.constant {value = 2 : index} : () -> index
  %b = arith.constant {value = 3 : index} : () -> index
  %c = arith.muli %a, %b : (index, index) -> index
  %d = arith.constant {value = 1 : index} : () -> index
  %e = arith.addi %d, %c : (index, index) -> index
  func.return %e : (index) -> ()
}

// The constant of a commutative operation stands on the right.

// CHECK-LABEL: func.func @right
// CHECK:         arith.addi %arg0, %{{.*}} : (i32, i32) -> i32
func.func @right(%x: i32) -> i32 {
  %c = arith.constant {value = 5 : i32} : () -> i32
  %s = arith.addi %c, %x : (i32, i32) -> i32
  func.return %s : (i32) -> ()
}

// Two transpositions that undo each other are nothing.

// CHECK-LABEL: func.func @transposed_twice
// CHECK-NEXT:    func.return %arg0
func.func @transposed_twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %t = blu.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %u = blu.transpose %t {perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return %u : (tensor<2x3xf32>) -> ()
}

// Division by zero is not folded: it fails where it is run.

// CHECK-LABEL: func.func @by_zero
// CHECK:         arith.divsi
func.func @by_zero() -> i32 {
  %a = arith.constant {value = 2 : i32} : () -> i32
  %z = arith.constant {value = 0 : i32} : () -> i32
  %q = arith.divsi %a, %z : (i32, i32) -> i32
  func.return %q : (i32) -> ()
}
