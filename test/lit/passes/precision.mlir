// RUN: bluc opt %s --pass-pipeline='builtin.module(precision{mode=bf16})' | FileCheck %s
// RUN: bluc opt %s --pass-pipeline='builtin.module(precision)' | FileCheck %s --check-prefix=FP32 --implicit-check-not=blu.cast
// RUN: bluc opt %s --pass-pipeline='builtin.module(precision{mode=tf32 target=cuda})' | FileCheck %s --check-prefix=CUDA --implicit-check-not=blu.cast
// RUN: not bluc opt %s --pass-pipeline='builtin.module(precision{mode=tf32})' 2>&1 | FileCheck %s --check-prefix=TF32

// The operands of a product are rounded to bfloat16 and back, each once however many products read it; what else reads them
// reads them as they are. Two views of one value that only products read are views of the rounded value.

// CHECK-LABEL: func.func @f
// CHECK:         %[[H:.*]] = blu.cast %arg0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT:    %[[X:.*]] = blu.cast %[[H]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[V:.*]] = blu.cast %arg1
// CHECK-NEXT:    %[[W:.*]] = blu.cast %[[V]]
// CHECK-NEXT:    %[[P:.*]] = blu.dot %[[X]], %[[W]]
// CHECK-NEXT:    %[[I:.*]] = blu.cast %[[P]]
// CHECK-NEXT:    %[[R:.*]] = blu.cast %[[I]]
// CHECK-DAG:     %[[A:.*]] = blu.slice %[[R]] {limits = array<i64: 4, 2>
// CHECK-DAG:     %[[B:.*]] = blu.slice %[[R]] {limits = array<i64: 4, 4>
// CHECK:         blu.dot %[[A]], %[[B]]
// CHECK:         blu.exp %arg0

// FP32-LABEL: func.func @f
// FP32:         blu.dot %arg0, %arg1 {lhs_batch

// CUDA-LABEL: func.func @f
// CUDA-COUNT-2: blu.dot {{.*}}blu.precision = "tf32"

// TF32: precision.mlir:1:1: error: precision tf32: target cpu has no tf32 products; use fp32, or bf16 for operands of fewer bits
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
  %p = blu.dot %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %a = blu.slice %p {starts = array<i64: 0, 0>, limits = array<i64: 4, 2>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %b = blu.slice %p {starts = array<i64: 0, 2>, limits = array<i64: 4, 4>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %q = blu.dot %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  %e = blu.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %q, %e : (tensor<4x4xf32>, tensor<4x8xf32>) -> ()
}
