// RUN: rm -rf %t && split-file %s %t
// RUN: bluc opt %t/step.mlir --pass-pipeline='builtin.module(copies)' | FileCheck %s
// RUN: bluc opt %t/step.mlir --pass-pipeline='builtin.module(copies,copies)' | FileCheck %s
// RUN: bluc opt %t/others.mlir --pass-pipeline='builtin.module(copies)' | FileCheck %s --check-prefix=OTHERS --implicit-check-not=bf16/ --implicit-check-not=@refresh
// RUN: not bluc opt %t/taken.mlir --pass-pipeline='builtin.module(copies)' 2>&1 | FileCheck %s --check-prefix=TAKEN

// A parameter that products of precision bf16 multiply has a copy, which these read through the same views; what else reads it has it in
// float32. Functions that write it write the copy right behind it, and one makes all copies anew. A bias has none.

//--- step.mlir
// CHECK:         blu.param @w
// CHECK:         blu.state @"bf16/w" {of = @w, persist = false, role = "copy", type = tensor<8x4xbf16>}
// CHECK-NOT:     blu.state
blu.param @w {init = {kind = "ones", text = "ones"}, type = tensor<8x4xf32>}
blu.param @b {init = {kind = "ones", text = "ones"}, type = tensor<8xf32>}

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %arg3: tensor<8x4xbf16> {blu.state = @"bf16/w"}
// CHECK-NEXT:    %[[W:.*]] = blu.cast %arg3 : (tensor<8x4xbf16>) -> tensor<8x4xf32>
// CHECK-NEXT:    %[[X:.*]] = blu.dot %arg2, %[[W]] {blu.precision = "bf16"
// CHECK-NEXT:    %[[A:.*]] = blu.slice %arg0
// CHECK-NEXT:    %[[E:.*]] = blu.exp %[[A]]
// CHECK-NEXT:    %[[B:.*]] = blu.slice %[[W]]
// CHECK-NEXT:    %[[T:.*]] = blu.transpose %[[B]]
// CHECK-NEXT:    blu.dot %[[E]], %[[T]]
func.func @forward(%w: tensor<8x4xf32> {blu.state = @w}, %b: tensor<8xf32> {blu.state = @b}, %x: tensor<2x4xf32> {blu.input = "x"})
    -> (tensor<2x8xf32> {blu.output = "y"}, tensor<2x2xf32> {blu.output = "z"}) {
  %0 = blu.dot %x, %w {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %1 = blu.slice %w {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %2 = blu.exp %1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = blu.transpose %1 {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %4 = blu.dot %2, %3 {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  %5 = blu.broadcast %b {axes = array<i64: 1>} : (tensor<8xf32>) -> tensor<2x8xf32>
  %6 = blu.add %0, %5 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %6, %4 : (tensor<2x8xf32>, tensor<2x2xf32>) -> ()
}

// CHECK-LABEL: func.func @apply(
// CHECK-SAME:    -> (tensor<8xf32> {blu.state = @b}, tensor<8x4xf32> {blu.state = @w}, tensor<8x4xbf16> {blu.state = @"bf16/w"}, tensor<8xf32> {blu.output = "old"})
// CHECK-NEXT:    %[[W:.*]] = blu.neg %arg0
// CHECK-NEXT:    %[[B:.*]] = blu.neg %arg1
// CHECK-NEXT:    %[[C:.*]] = blu.cast %[[W]] : (tensor<8x4xf32>) -> tensor<8x4xbf16>
// CHECK-NEXT:    func.return %[[B]], %[[W]], %[[C]], %arg1
func.func @apply(%w: tensor<8x4xf32> {blu.state = @w}, %b: tensor<8xf32> {blu.state = @b})
    -> (tensor<8xf32> {blu.state = @b}, tensor<8x4xf32> {blu.state = @w}, tensor<8xf32> {blu.output = "old"}) {
  %0 = blu.neg %w : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = blu.neg %b : (tensor<8xf32>) -> tensor<8xf32>
  func.return %1, %0, %b : (tensor<8xf32>, tensor<8x4xf32>, tensor<8xf32>) -> ()
}

// CHECK-LABEL: func.func @refresh(
// CHECK-SAME:    %arg0: tensor<8x4xf32> {blu.state = @w}) -> (tensor<8x4xbf16> {blu.state = @"bf16/w"})
// CHECK-NEXT:    %[[C:.*]] = blu.cast %arg0
// CHECK-NEXT:    func.return %[[C]]

// Products of other precisions have none, nor have those that round their operands themselves, inputs that no program keeps, and
// numbers that are bfloat16 already.

//--- others.mlir
// OTHERS-LABEL: func.func @f(
// OTHERS-COUNT-4: blu.dot
blu.param @w {init = {kind = "ones", text = "ones"}, type = tensor<4x4xf32>}
blu.param @h {init = {kind = "ones", text = "ones"}, type = tensor<4x4xbf16>}
func.func @f(%w: tensor<4x4xf32> {blu.state = @w}, %h: tensor<4x4xbf16> {blu.state = @h}, %x: tensor<4x4xf32> {blu.input = "x"}) -> (tensor<4x4xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %w {blu.precision = "tf32", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = blu.cast %w : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %2 = blu.cast %1 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %3 = blu.dot %0, %2 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = blu.dot %3, %x {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = blu.cast %h : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %6 = blu.dot %4, %5 {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %6 : (tensor<4x4xf32>) -> ()
}

//--- taken.mlir
// TAKEN: taken.mlir:3:1: error: a model's function can't be called refresh: a program that keeps copies of parameters has one of that name
blu.param @w {init = {kind = "ones", text = "ones"}, type = tensor<4x4xf32>}
func.func @refresh(%w: tensor<4x4xf32> {blu.state = @w}, %x: tensor<4x4xf32> {blu.input = "x"}) -> (tensor<4x4xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %w {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %0 : (tensor<4x4xf32>) -> ()
}
