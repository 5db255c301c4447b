// RUN: bluc opt %s | FileCheck %s
// RUN: bluc opt %s --print-generic | bluc opt | FileCheck %s
// RUN: bluc opt %s --print-generic | FileCheck %s --check-prefix=GENERIC
// The short and the generic form say the same.

// CHECK:       builtin.module {
// CHECK-LABEL:   func.func private @declared(tensor<?x4xf32> {blu.input = "x"}, f32) -> (f32 {blu.output = "y"}, f32)
// GENERIC:       "func.func"() <{arg_attrs = [{blu.input = "x"}, {}], function_type = (tensor<?x4xf32>, f32) -> (f32, f32), res_attrs = [{blu.output = "y"}, {}], sym_name = "declared", sym_visibility = "private"}> ({}) : () -> ()
func.func private @declared(tensor<?x4xf32> {blu.input = "x"}, f32) -> (f32 {blu.output = "y"}, f32)

// CHECK-LABEL:   func.func @loop(%arg0: index, %arg1: f32) -> f32 attributes {note.it} {
// CHECK-NEXT:      %0:2 = scf.for %arg0, %arg0, %arg0, %arg1, %arg1 : (index, index, index, f32, f32) -> (f32, f32) (%arg2: index, %arg3: f32, %arg4: f32) {
// CHECK-NEXT:        scf.yield %arg4, %arg3 : (f32, f32) -> ()
// CHECK-NEXT:      }
// CHECK-NEXT:      func.return %0#1 : (f32) -> ()
// GENERIC-LABEL: sym_name = "loop"
// GENERIC-NEXT:  ^bb0(%arg0: index, %arg1: f32):
// GENERIC-NEXT:    %0:2 = "scf.for"(%arg0, %arg0, %arg0, %arg1, %arg1) ({
// GENERIC-NEXT:    ^bb0(%arg2: index, %arg3: f32, %arg4: f32):
// GENERIC-NEXT:      "scf.yield"(%arg4, %arg3) : (f32, f32) -> ()
// GENERIC-NEXT:    }) : (index, index, index, f32, f32) -> (f32, f32)
// GENERIC:       }) {note.it} : () -> ()
func.func @loop(%n: index, %x: f32) -> f32 attributes {note.it} {
  %a, %b = scf.for %n, %n, %n, %x, %x : (index, index, index, f32, f32) -> (f32, f32) (%i: index, %p: f32, %q: f32) {
    scf.yield %q, %p : (f32, f32) -> ()
  }
  func.return %b : (f32) -> ()
}
