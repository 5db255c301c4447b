// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels{target=cuda})' | FileCheck %s

// What gated layers multiply is rounded where products leave it, as the argument of the activation is: with bf16, nothing
// of their size is kept in float32. Each kernel that reads such a number widens it itself.

// CHECK-LABEL: func.func @forward
// CHECK:         {kernel = @gemm_nt_cast_64x96x32} {{.*}} -> tensor<64x96xbf16>
// CHECK:         {kernel = @gemm_nt_cast_silu_mul_64x96x32} {{.*}} -> (tensor<64x96xbf16>, tensor<64x96xbf16>)
// CHECK:         func.return
func.func @forward(%x: tensor<64x32xf32> {blu.input = "x"}, %a: tensor<96x32xf32> {blu.input = "a"}, %b: tensor<96x32xf32> {blu.input = "b"}, %c: tensor<32x96xf32> {blu.input = "c"})
    -> (tensor<64x32xf32> {blu.output = "y"}, tensor<64x96xbf16> {blu.output = "up"}) {
  %0 = blu.dot %x, %a {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %1 = blu.silu %0 : (tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = blu.dot %x, %b {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %3 = blu.mul %1, %2 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %4 = blu.dot %3, %c {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x96xf32>, tensor<32x96xf32>) -> tensor<64x32xf32>
  %5 = blu.cast %2 : (tensor<64x96xf32>) -> tensor<64x96xbf16>
  func.return %4, %5 : (tensor<64x32xf32>, tensor<64x96xbf16>) -> ()
}

// What a product leaves is rotated in bfloat16 for attention, which reads nothing else.

// CHECK-LABEL: func.func @rotated
// CHECK:         {kernel = @gemm_nt_cast_64x32x32} {{.*}} -> tensor<64x32xbf16>
// CHECK:         {kernel = @rope_2x64x8} {{.*}} -> (tensor<2x64x8xbf16>, tensor<2x64x8xbf16>)
// CHECK:         {kernel = @attention_causal{{.*}}} : (tensor<1x2x64x16xbf16>,
func.func @rotated(%x: tensor<64x32xf32> {blu.input = "x"}, %a: tensor<32x32xf32> {blu.input = "a"}) -> (tensor<1x2x64x16xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %a {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %1 = blu.reshape %0 : (tensor<64x32xf32>) -> tensor<1x64x2x16xf32>
  %2 = blu.transpose %1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x64x2x16xf32>) -> tensor<1x2x64x16xf32>
  %3 = blu.rope %2 {base = 10000.0 : f64, inverse = false} : (tensor<1x2x64x16xf32>) -> tensor<1x2x64x16xf32>
  %4:2 = blu.attention %3, %3, %3 {blu.precision = "bf16", causal = true, scale = 0.25 : f64} : (tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>) -> (tensor<1x2x64x16xf32>, tensor<1x2x64xf32>)
  func.return %4#0 : (tensor<1x2x64x16xf32>) -> ()
}

// Results with a bias, on either side, and sums of results are what products leave; what is added to anything else is float32.

// CHECK-LABEL: func.func @bias_right
// CHECK:         {kernel = @gemm_nt_bias_cast_64x96x32{{(_2)?}}}
// CHECK:         {kernel = @gemm_nt_cast_mul_64x96x32}
func.func @bias_right(%x: tensor<64x32xf32> {blu.input = "x"}, %a: tensor<96x32xf32> {blu.input = "a"}, %b: tensor<96x32xf32> {blu.input = "b"}, %v: tensor<96xf32> {blu.input = "v"}, %s: tensor<64x96xf32> {blu.input = "s"})
    -> (tensor<64x96xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %a {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %1 = blu.dot %x, %b {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %2 = blu.broadcast %v {axes = array<i64: 1>} : (tensor<96xf32>) -> tensor<64x96xf32>
  %3 = blu.add %0, %2 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %4 = blu.mul %3, %1 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  func.return %4 : (tensor<64x96xf32>) -> ()
}

// CHECK-LABEL: func.func @bias_left
// CHECK:         {kernel = @gemm_nt_bias_cast_64x96x32{{(_2)?}}}
// CHECK:         {kernel = @gemm_nt_cast_mul_64x96x32}
func.func @bias_left(%x: tensor<64x32xf32> {blu.input = "x"}, %a: tensor<96x32xf32> {blu.input = "a"}, %b: tensor<96x32xf32> {blu.input = "b"}, %v: tensor<96xf32> {blu.input = "v"}, %s: tensor<64x96xf32> {blu.input = "s"})
    -> (tensor<64x96xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %a {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %1 = blu.dot %x, %b {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %2 = blu.broadcast %v {axes = array<i64: 1>} : (tensor<96xf32>) -> tensor<64x96xf32>
  %3 = blu.add %2, %0 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %4 = blu.mul %3, %1 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  func.return %4 : (tensor<64x96xf32>) -> ()
}

// CHECK-LABEL: func.func @sum
// CHECK:         {kernel = @gemm_nt_residual_cast_mul_64x96x32{{(_2)?}}}
func.func @sum(%x: tensor<64x32xf32> {blu.input = "x"}, %a: tensor<96x32xf32> {blu.input = "a"}, %b: tensor<96x32xf32> {blu.input = "b"}, %v: tensor<96xf32> {blu.input = "v"}, %s: tensor<64x96xf32> {blu.input = "s"})
    -> (tensor<64x96xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %a {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %1 = blu.dot %x, %b {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %3 = blu.add %0, %1 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %4 = blu.mul %3, %1 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  func.return %4 : (tensor<64x96xf32>) -> ()
}

// CHECK-LABEL: func.func @stream_right
// CHECK:         {kernel = @gemm_nt_residual_64x96x32{{(_2)?}}}
// CHECK:         {kernel = @gemm_nt_mul_64x96x32}
func.func @stream_right(%x: tensor<64x32xf32> {blu.input = "x"}, %a: tensor<96x32xf32> {blu.input = "a"}, %b: tensor<96x32xf32> {blu.input = "b"}, %v: tensor<96xf32> {blu.input = "v"}, %s: tensor<64x96xf32> {blu.input = "s"})
    -> (tensor<64x96xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %a {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %1 = blu.dot %x, %b {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %3 = blu.add %0, %s : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %4 = blu.mul %3, %1 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  func.return %4 : (tensor<64x96xf32>) -> ()
}

// CHECK-LABEL: func.func @stream_left
// CHECK:         {kernel = @gemm_nt_residual_64x96x32{{(_2)?}}}
// CHECK:         {kernel = @gemm_nt_mul_64x96x32}
func.func @stream_left(%x: tensor<64x32xf32> {blu.input = "x"}, %a: tensor<96x32xf32> {blu.input = "a"}, %b: tensor<96x32xf32> {blu.input = "b"}, %v: tensor<96xf32> {blu.input = "v"}, %s: tensor<64x96xf32> {blu.input = "s"})
    -> (tensor<64x96xf32> {blu.output = "y"}) {
  %0 = blu.dot %x, %a {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %1 = blu.dot %x, %b {blu.precision = "bf16", lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<64x32xf32>, tensor<96x32xf32>) -> tensor<64x96xf32>
  %3 = blu.add %s, %0 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  %4 = blu.mul %3, %1 : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  func.return %4 : (tensor<64x96xf32>) -> ()
}
