// RUN: bluc opt %s --pass-pipeline='builtin.module(cse)' | FileCheck %s
// Equal pure operations become one, also when their operands are commuted.

// CHECK-LABEL: func.func @commuted
// CHECK:         %[[S:.*]] = blu.add %arg0, %arg1
// CHECK-NOT:     blu.add
// CHECK:         blu.mul %[[S]], %[[S]]
func.func @commuted(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = blu.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = blu.add %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = blu.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c : (tensor<4xf32>) -> ()
}

// Subtraction doesn't commute, and an attribute makes a difference.

// CHECK-LABEL: func.func @different
// CHECK-COUNT-2: blu.sub
// CHECK-COUNT-2: blu.reduce_sum
func.func @different(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = blu.sub %x, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = blu.sub %y, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = blu.mul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = blu.reduce_sum %c {axes = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4xf32>
  %s = blu.reduce_sum %c {axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  func.return %r, %s : (tensor<4xf32>, tensor<4xf32>) -> ()
}

// What was computed before a branch is there in it; what one branch computes is not there after it.

// CHECK-LABEL: func.func @regions
// CHECK:         %[[A:.*]] = arith.addi %arg1, %arg1
// CHECK:         scf.if
// CHECK-NEXT:      scf.yield %[[A]]
// CHECK:           arith.muli
// CHECK:         arith.muli
func.func @regions(%c: i1, %x: i32) -> i32 {
  %a = arith.addi %x, %x : (i32, i32) -> i32
  %r = scf.if %c : (i1) -> i32 {
    %b = arith.addi %x, %x : (i32, i32) -> i32
    scf.yield %b : (i32) -> ()
  } {
    %m = arith.muli %x, %x : (i32, i32) -> i32
    scf.yield %m : (i32) -> ()
  }
  %n = arith.muli %x, %x : (i32, i32) -> i32
  %s = arith.xori %n, %a : (i32, i32) -> i32
  %t = arith.subi %r, %s : (i32, i32) -> i32
  func.return %t : (i32) -> ()
}
