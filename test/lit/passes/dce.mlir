// RUN: bluc opt %s --pass-pipeline='builtin.module(dce)' | FileCheck %s
// What has no effect and no use goes, and so do private functions that nothing outside of them refers to.

// CHECK-NOT: @recursive
// CHECK-NOT: @by_unused
func.func private @recursive() {
  func.call {callee = @recursive}
  func.call {callee = @by_unused}
  func.return
}
func.func private @by_unused() {
  func.return
}
// CHECK-LABEL: func.func private @used
// CHECK-NEXT:    func.return
func.func private @used() {
  %a = arith.constant {value = 1 : i32} : () -> i32
  %b = arith.addi %a, %a : (i32, i32) -> i32
  func.return
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    func.call {callee = @used}
func.func @main() {
  func.call {callee = @used}
  func.return
}
