// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Collectives stay between kernels: what they send is in memory, and what needs their result comes after the wait.

// CHECK-LABEL: func.func @beside
// CHECK:         %[[L:.*]] = tile.launch {{.*}} {kernel = @add
// CHECK-NEXT:    %[[A:.*]] = blu.reshape %[[L]]
// CHECK-NEXT:    %[[F:.*]] = dtms.start %[[A]] {group = "world", op = "all_reduce"}
// CHECK-NEXT:    %[[E:.*]] = tile.launch %arg2
// CHECK-NEXT:    %[[W:.*]] = dtms.wait %[[F]], %[[A]]
// CHECK-NEXT:    %[[Y:.*]] = tile.launch %[[W]], %[[E]]
// CHECK-NEXT:    func.return %[[W]], %[[Y]]
func.func @beside(%g: tensor<32x32xf32>, %x: tensor<32x32xf32>, %z: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32xf32>) {
  %a = blu.add %g, %x : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %f = dtms.start %a {group = "world", op = "all_reduce"} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = blu.exp %z : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = blu.reduce_sum %e {axes = array<i64: 1>} : (tensor<32x32xf32>) -> tensor<32xf32>
  %w = dtms.wait %f, %a : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %t = blu.reduce_sum %w {axes = array<i64: 1>} : (tensor<32x32xf32>) -> tensor<32xf32>
  %y = blu.mul %s, %t : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  func.return %w, %y : (tensor<32x32xf32>, tensor<32xf32>) -> ()
}

// What is added to the result of a collective is no epilogue of a product that comes before it.
// CHECK-LABEL: func.func @after
// CHECK:         %[[P:.*]] = tile.launch {{.*}} {kernel = @gemm
// CHECK-NEXT:    %[[G:.*]] = dtms.permute %arg0 {group = "cp", ranks = 2 : i64, shift = 1 : i64}
// CHECK:         %[[R:.*]] = blu.reshape %[[G]]
// CHECK-NEXT:    tile.launch %{{.*}}, %[[R]] {kernel = @add
func.func @after(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %p = blu.dot %x, %y {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %g = dtms.permute %x {group = "cp", ranks = 2 : i64, shift = 1 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %s = blu.add %p, %g : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  func.return %s : (tensor<32x32xf32>) -> ()
}
