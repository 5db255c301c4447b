// RUN: bluc opt %s --pass-pipeline='builtin.module(recompute{mode=auto})' | FileCheck %s --check-prefix=AUTO
// RUN: bluc opt %s --pass-pipeline='builtin.module(recompute{mode=full})' | FileCheck %s --check-prefix=FULL
// RUN: bluc opt %s --pass-pipeline='builtin.module(recompute)' | FileCheck %s --check-prefix=NONE --implicit-check-not=recomputed

// Products with gelu after each, and the gradients. Of a layer, what the product gives and what gelu makes of it are needed
// late. Auto computes gelu again just before that, from what is kept.

// AUTO-LABEL: func.func @f
// AUTO:         %[[P:.*]] = blu.dot %arg0, %arg1
// AUTO-NEXT:    blu.gelu %[[P]] {approximate = "tanh"} :
// AUTO-NEXT:    %[[Q:.*]] = blu.dot
// AUTO-NEXT:    blu.gelu %[[Q]] {approximate = "tanh"} :
// AUTO-NOT:     recomputed
// AUTO:         %[[B:.*]] = blu.gelu %[[Q]] {approximate = "tanh", blu.recomputed}
// AUTO-NEXT:    blu.dot %[[B]],
// AUTO-NOT:     recomputed
// AUTO:         %[[A:.*]] = blu.gelu %[[P]] {approximate = "tanh", blu.recomputed}
// AUTO-NEXT:    blu.dot %[[A]],
// AUTO-NOT:     recomputed

// Full computes products again, too, from the values that it keeps.

// FULL-LABEL: func.func @f
// FULL:         %[[P:.*]] = blu.dot %arg0, %arg1 {blu.recomputed,
// FULL-NEXT:    %[[A:.*]] = blu.gelu %[[P]] {approximate = "tanh", blu.recomputed}
// FULL-NEXT:    blu.dot %[[A]],

// NONE-LABEL: func.func @f
func.func @f(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>, %w: tensor<64x64xf32>, %u: tensor<64x64xf32>, %d: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %p = blu.dot %x, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %a = blu.gelu %p {approximate = "tanh"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = blu.dot %a, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = blu.gelu %q {approximate = "tanh"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = blu.dot %b, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = blu.gelu %r {approximate = "tanh"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = blu.dot %c, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = blu.gelu %s {approximate = "tanh"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %ds = blu.gelu_grad %s, %d {approximate = "tanh"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dt = blu.dot %c, %ds {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dc = blu.dot %ds, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dr = blu.gelu_grad %r, %dc {approximate = "tanh"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %du = blu.dot %b, %dr {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %db = blu.dot %dr, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dq = blu.gelu_grad %q, %db {approximate = "tanh"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = blu.dot %a, %dq {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %da = blu.dot %dq, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dp = blu.gelu_grad %p, %da {approximate = "tanh"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dv = blu.dot %x, %dp {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %e, %dt, %du, %dw, %dv : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> ()
}
