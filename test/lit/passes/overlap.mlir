// RUN: bluc opt %s --pass-pipeline='builtin.module(overlap)' | FileCheck %s

// A sum starts where its operand is ready and ends where it is stored, or needed.

// CHECK-LABEL: func.func @sums
// CHECK:         %[[B:.*]] = blu.exp %arg0
// CHECK-NEXT:    %[[GB:.*]] = blu.accumulate %arg2, %[[B]]
// CHECK-NEXT:    %[[F:.*]] = dtms.start %[[GB]] {group = "world", op = "all_reduce"}
// CHECK-NEXT:    %[[A:.*]] = blu.exp %[[B]]
// CHECK-NEXT:    %[[GA:.*]] = blu.accumulate %arg1, %[[A]]
// CHECK-NEXT:    %[[E:.*]] = dtms.start %[[GA]]
// CHECK-NEXT:    %[[C:.*]] = blu.exp %[[A]]
// CHECK-NEXT:    %[[RB:.*]] = dtms.wait %[[F]], %[[GB]]
// CHECK-NEXT:    %[[RA:.*]] = dtms.wait %[[E]], %[[GA]]
// CHECK-NEXT:    func.return %[[RA]], %[[RB]], %[[C]]

// The step of a ring passes on what the next step needs while this one works on it, and one whose result is needed at once
// stays whole.

// CHECK-LABEL: func.func @ring
// CHECK-NEXT:    %[[F:.*]] = dtms.start %arg0 {group = "cp", op = "permute", ranks = 2 : i64, shift = 1 : i64}
// CHECK-NEXT:    %[[X:.*]] = blu.exp %arg0
// CHECK-NEXT:    %[[K:.*]] = dtms.wait %[[F]], %arg0
// CHECK-NEXT:    %[[Y:.*]] = blu.mul %[[X]], %[[K]]
// CHECK-NEXT:    %[[Z:.*]] = dtms.all_reduce %[[Y]]
// CHECK-NEXT:    blu.neg %[[Z]]

// At most two reduce_scatters are under way: each keeps a whole gradient alive.

// CHECK-LABEL: func.func @scatters
// CHECK:         %[[F1:.*]] = dtms.start
// CHECK:         %[[F2:.*]] = dtms.start
// CHECK:         %[[S1:.*]] = dtms.wait %[[F1]]
// CHECK-NEXT:    %[[A1:.*]] = blu.accumulate %arg1, %[[S1]]
// CHECK-NEXT:    %[[F3:.*]] = dtms.start
// CHECK-NEXT:    blu.neg
// CHECK-NEXT:    %[[S2:.*]] = dtms.wait %[[F2]]
// CHECK-NEXT:    %[[A2:.*]] = blu.accumulate %arg1, %[[S2]]
// CHECK-NEXT:    %[[S3:.*]] = dtms.wait %[[F3]]
// CHECK-NEXT:    %[[A3:.*]] = blu.accumulate %arg1, %[[S3]]
// CHECK-NEXT:    func.return %[[A1]], %[[A2]], %[[A3]]
func.func @sums(%x: tensor<4xf32>, %sa: tensor<4xf32>, %sb: tensor<4xf32>, %first: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %b = blu.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %a = blu.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %c = blu.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %gb = blu.accumulate %sb, %b, %first : (tensor<4xf32>, tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  %rb = dtms.all_reduce %gb {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %ga = blu.accumulate %sa, %a, %first : (tensor<4xf32>, tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  %ra = dtms.all_reduce %ga {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %ra, %rb, %c : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
}
func.func @ring(%k: tensor<4xf32>) -> tensor<4xf32> {
  %x = blu.exp %k : (tensor<4xf32>) -> tensor<4xf32>
  %l = dtms.permute %k {group = "cp", ranks = 2 : i64, shift = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %y = blu.mul %x, %l : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = dtms.all_reduce %y {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %n = blu.neg %z : (tensor<4xf32>) -> tensor<4xf32>
  func.return %n : (tensor<4xf32>) -> ()
}
func.func @scatters(%x: tensor<4xf32>, %s: tensor<2xf32>, %first: tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) {
  %a = blu.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %p = blu.reshape %a : (tensor<4xf32>) -> tensor<2x2xf32>
  %ra = dtms.reduce_scatter %p {group = "world", ranks = 2 : i64} : (tensor<2x2xf32>) -> tensor<2xf32>
  %sa = blu.accumulate %s, %ra, %first : (tensor<2xf32>, tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
  %b = blu.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %q = blu.reshape %b : (tensor<4xf32>) -> tensor<2x2xf32>
  %rb = dtms.reduce_scatter %q {group = "world", ranks = 2 : i64} : (tensor<2x2xf32>) -> tensor<2xf32>
  %sb = blu.accumulate %s, %rb, %first : (tensor<2xf32>, tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
  %c = blu.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %r = blu.reshape %c : (tensor<4xf32>) -> tensor<2x2xf32>
  %rc = dtms.reduce_scatter %r {group = "world", ranks = 2 : i64} : (tensor<2x2xf32>) -> tensor<2xf32>
  %sc = blu.accumulate %s, %rc, %first : (tensor<2xf32>, tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
  %n = blu.neg %c : (tensor<4xf32>) -> tensor<4xf32>
  func.return %sa, %sb, %sc, %n : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) -> ()
}
