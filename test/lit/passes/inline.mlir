// RUN: bluc opt %s --pass-pipeline='builtin.module(inline)' --print-locations | FileCheck %s
// Private functions are inlined into their callers, callees first, and go; locations say where the code was called from.

// CHECK-NOT:   func.func private @leaf
// CHECK-LABEL: func.func @main
// CHECK:         arith.addi %arg0, %arg0 : (i32, i32) -> i32 loc(callsite(callsite("m.blu":1:1 at "m.blu":2:2) at "m.blu":3:3))
// CHECK-NEXT:    func.return
// CHECK-NOT:   func.func
func.func private @leaf(%x: i32) -> i32 {
  %y = arith.addi %x, %x : (i32, i32) -> i32 loc("m.blu":1:1)
  func.return %y : (i32) -> ()
}
func.func private @mid(%x: i32) -> i32 {
  %y = func.call %x {callee = @leaf} : (i32) -> i32 loc("m.blu":2:2)
  func.return %y : (i32) -> ()
}
func.func @main(%x: i32) -> i32 {
  %y = func.call %x {callee = @mid} : (i32) -> i32 loc("m.blu":3:3)
  func.return %y : (i32) -> ()
}
