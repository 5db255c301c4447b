// RUN: bluc opt %s --pass-pipeline='builtin.module(recompute{budget=32MiB})' | FileCheck %s --check-prefix=ENOUGH --implicit-check-not=recomputed
// RUN: bluc opt %s --pass-pipeline='builtin.module(recompute{budget=20MiB})' | FileCheck %s
// RUN: bluc opt %s --pass-pipeline='builtin.module(precision{mode=bf16 target=cuda},recompute{budget=20MiB target=cuda})' | FileCheck %s --check-prefix=ENOUGH --implicit-check-not=recomputed
// RUN: bluc opt %s --pass-pipeline='builtin.module(precision{mode=tf32 target=cuda},recompute{budget=20MiB target=cuda})' | FileCheck %s
// RUN: not bluc opt %s --pass-pipeline='builtin.module(recompute{budget=10MiB})' 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not bluc opt %s --pass-pipeline='builtin.module(recompute{mode=auto budget=1GiB})' 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not bluc opt %s --pass-pipeline='builtin.module(recompute{budget=lots})' 2>&1 | FileCheck %s --check-prefix=TEXT

// What fits is left as it is; else the cheapest values are computed again, first gelu and not products. What kernels keep in bfloat16
// takes half as much.

// ENOUGH-LABEL: func.func @f
// CHECK-LABEL: func.func @f
// CHECK-NOT:     blu.dot {{.*}}blu.recomputed
// CHECK:         blu.gelu {{.*}}blu.recomputed

// ERROR: recompute-budget.mlir:[[@LINE+3]]:1: error: function f does not fit a memory budget of 10.00 MiB: the least that recomputation leads to is {{[0-9.]+}} MiB, of which parameters are 0 B
// BOTH: error: recompute: mode=auto and a budget exclude each other
// TEXT: option budget: expected an amount of memory, as in 512MiB or 6GiB, not "lots"
func.func @f(%x: tensor<1024x1024xf32>, %v: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>, %u: tensor<1024x1024xf32>, %d: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %p = blu.dot %x, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %a = blu.gelu %p {approximate = "tanh"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %q = blu.dot %a, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %b = blu.gelu %q {approximate = "tanh"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %r = blu.dot %b, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %c = blu.gelu %r {approximate = "tanh"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %s = blu.dot %c, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %e = blu.gelu %s {approximate = "tanh"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %ds = blu.gelu_grad %s, %d {approximate = "tanh"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dt = blu.dot %c, %ds {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dc = blu.dot %ds, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dr = blu.gelu_grad %r, %dc {approximate = "tanh"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %du = blu.dot %b, %dr {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %db = blu.dot %dr, %u {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dq = blu.gelu_grad %q, %db {approximate = "tanh"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dw = blu.dot %a, %dq {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %da = blu.dot %dq, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dp = blu.gelu_grad %p, %da {approximate = "tanh"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %dv = blu.dot %x, %dp {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  func.return %e, %dt, %du, %dw, %dv : (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> ()
}
