// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// An operation on values of the forward pass that only the backward pass uses is computed there: the small statistics are kept, not what follows from them.

// CHECK-LABEL: func.func @train
// CHECK:         %[[F:.*]]:2 = tile.launch %arg0 {kernel = @reduce_sum_{{.*}}} : {{.*}} -> (tensor<64xf32>, tensor<64x32xf32>)
// CHECK:         tile.launch {{.*}} {kernel = @gemm_nn_sub_mul_64x32x32}
// CHECK-NOT:     tile.launch
// CHECK:         func.return
func.func @train(%x: tensor<64x32xf32>, %w: tensor<32x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %s = blu.reduce_sum %x {axes = array<i64: 1>} : (tensor<64x32xf32>) -> tensor<64xf32>
  %b = blu.broadcast %s {axes = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x32xf32>
  %y = blu.mul %x, %b : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %h = blu.sub %x, %b : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %d = blu.dot %y, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %g = blu.mul %d, %h : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  func.return %y, %g : (tensor<64x32xf32>, tensor<64x32xf32>) -> ()
}

// A number widened from 16 bits that is read in two arrangements is in memory once: here shifted by half a row, and as it is.
// CHECK-LABEL: func.func @shifted
// CHECK:         tile.launch {{.*}} {kernel = @cast_64} : (tensor<64xbf16>) -> tensor<64xf32>
// CHECK:         tile.launch {{.*}} {kernel = @silu_mul_add_64} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
// CHECK:         func.return
func.func @shifted(%p: tensor<2x32xbf16> {blu.input = "p"}) -> (tensor<2x32xf32> {blu.output = "y"}) {
  %o = blu.cast %p : (tensor<2x32xbf16>) -> tensor<2x32xf32>
  %s = blu.silu %o : (tensor<2x32xf32>) -> tensor<2x32xf32>
  %m = blu.mul %s, %o : (tensor<2x32xf32>, tensor<2x32xf32>) -> tensor<2x32xf32>
  %a = blu.slice %o {limits = array<i64: 2, 32>, starts = array<i64: 0, 16>, steps = array<i64: 1, 1>} : (tensor<2x32xf32>) -> tensor<2x16xf32>
  %b = blu.slice %o {limits = array<i64: 2, 16>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x32xf32>) -> tensor<2x16xf32>
  %c = blu.concat %a, %b {axis = 1 : i64} : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x32xf32>
  %y = blu.add %m, %c : (tensor<2x32xf32>, tensor<2x32xf32>) -> tensor<2x32xf32>
  func.return %y : (tensor<2x32xf32>) -> ()
}

// So is one that the kernel of what it is rounded from widens: beside its transpose, as it is.
// CHECK-LABEL: func.func @turned
// CHECK:         tile.launch {{.*}} {kernel = @rmsnorm_cast_add_2x3}
// CHECK:         tile.launch {{.*}} {kernel = @sub_2x3} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK:         func.return
func.func @turned(%x: tensor<2x3xf32> {blu.input = "x"}, %g: tensor<3xf32> {blu.input = "g"}, %h: tensor<2x3xf32> {blu.input = "h"}) -> (tensor<2x3xf32> {blu.output = "y"}, tensor<2x3xf32> {blu.output = "z"}) {
  %n:2 = blu.rmsnorm %x, %g {eps = 1.0 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  %20 = blu.cast %n#0 : (tensor<2x3xf32>) -> tensor<2x3xf16>
  %21 = blu.cast %20 : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %22 = blu.add %n#0, %n#0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %24 = blu.transpose %21 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %25 = blu.reshape %24 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %26 = blu.sub %21, %25 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %22, %26 : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
}
