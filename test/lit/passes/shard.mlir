// RUN: bluc opt %s --pass-pipeline='builtin.module(shard)' | FileCheck %s --check-prefix=DP
// RUN: bluc opt %s --pass-pipeline='builtin.module(shard{dp=2 zero=1})' | FileCheck %s --check-prefix=ZERO
// RUN: not bluc opt %s --pass-pipeline='builtin.module(shard{zero=1})' 2>&1 | FileCheck %s --check-prefix=SIZE

// The functions of training of a parameter with three elements, as one rank of many runs them.

// Any number of ranks: accumulate stays as it is, of a step's last micro-batch accumulate_last also adds up what all ranks
// have, and eval does.

// DP:       builtin.module attributes {blu.mesh = {context = "", cp = 1 : i64, dp = 0 : i64, zero = 0 : i64}}
// DP-LABEL: func.func @accumulate(
// DP-NOT:     dtms
// DP-LABEL: func.func @accumulate_last(
// DP:         %[[G:.*]] = blu.accumulate %arg1, %{{.*}}, %arg5
// DP:         %[[LG:.*]] = dtms.all_reduce %[[G]] {group = "world"} : (tensor<3xf32>) -> tensor<3xf32>
// DP:         func.return %{{.*}}, %{{.*}}, %[[LG]]
// DP-LABEL: func.func @apply(
// DP-NOT:     dtms
// DP-LABEL: func.func @eval(
// DP-COUNT-2: dtms.all_reduce {{.*}}group = "world"

// Two ranks with a shard each of the gradient and the optimizer's state, of two elements: the last one of the second is not
// used. A gradient is summed into shards whenever it is computed. The parameter's shard is updated, and gathered.

// ZERO:       blu.state @"grads/w" {persist = false, role = "gradient", shard = {group = "world", ranks = 2 : i64, shape = array<i64: 3>}, type = tensor<2xf32>}
// ZERO:       blu.state @loss_sum {{.*}}role = "accumulator", type = tensor<f32>}
// ZERO-LABEL: func.func @init(
// ZERO:         blu.constant {value = dense<0.0e+00> : tensor<2xf32>}
// ZERO-LABEL: func.func @accumulate(
// ZERO-SAME:    %arg1: tensor<2xf32> {blu.state = @"grads/w"}
// ZERO:         %[[X:.*]] = blu.pad %{{.*}} {high = array<i64: 1>
// ZERO:         %[[B:.*]] = blu.reshape %[[X]] : (tensor<4xf32>) -> tensor<2x2xf32>
// ZERO:         %[[S:.*]] = dtms.reduce_scatter %[[B]] {group = "world", ranks = 2 : i64} : (tensor<2x2xf32>) -> tensor<2xf32>
// ZERO:         blu.accumulate %arg1, %[[S]], %arg5 : (tensor<2xf32>
// ZERO-NOT:   @accumulate_last
// ZERO-LABEL: func.func @apply(
// ZERO-SAME:    %arg7: tensor<i32> {blu.scalar = "world_rank"}
// ZERO:         %[[Q:.*]] = blu.sum_squares %arg2
// ZERO:         dtms.all_reduce %[[Q]] {group = "world"}
// ZERO:         %[[I:.*]] = blu.reshape %arg7 : (tensor<i32>) -> tensor<1xi32>
// ZERO:         blu.gather %{{.*}}, %[[I]] : (tensor<2x2xf32>, tensor<1xi32>) -> tensor<1x2xf32>
// ZERO:         %[[U:.*]]:2 = blu.sgd {{.*}}weight_decay = 5.0e-01
// ZERO:         %[[A:.*]] = dtms.all_gather %[[U]]#0 {group = "world", ranks = 2 : i64} : (tensor<2xf32>) -> tensor<2x2xf32>
// ZERO:         %[[F:.*]] = blu.reshape %[[A]] : (tensor<2x2xf32>) -> tensor<4xf32>
// ZERO:         %[[P:.*]] = blu.slice %[[F]] {limits = array<i64: 3>
// ZERO:         func.return %[[P]], %[[U]]#1

// SIZE: shard.mlir:[[#]]:1: error: shard: zero=1 cuts states into one shard a rank, so the number of ranks must be known
builtin.module {
  blu.param @w {init = {kind = "zeros", text = "zeros"}, type = tensor<3xf32>, weight_decay = 5.0e-01 : f64}
  blu.state @"grads/w" {persist = false, role = "gradient", type = tensor<3xf32>}
  blu.state @"sgd.momentum/w" {persist = true, role = "optimizer", type = tensor<3xf32>}
  blu.state @loss_sum {persist = false, role = "accumulator", type = tensor<f32>}
  blu.state @count {persist = false, role = "accumulator", type = tensor<f32>}
  func.func @init(%seed: tensor<i64> {blu.scalar = "seed"}) -> (tensor<3xf32> {blu.state = @w}, tensor<3xf32> {blu.state = @"sgd.momentum/w"}) {
    %w = blu.constant {value = dense<0.0> : tensor<3xf32>} : () -> tensor<3xf32>
    func.return %w, %w : (tensor<3xf32>, tensor<3xf32>) -> ()
  }
  func.func @accumulate(%w: tensor<3xf32> {blu.state = @w}, %g: tensor<3xf32> {blu.state = @"grads/w"}, %l: tensor<f32> {blu.state = @loss_sum}, %n: tensor<f32> {blu.state = @count}, %x: tensor<3xf32> {blu.input = "x"}, %first: tensor<i1> {blu.scalar = "first"}) -> (tensor<f32> {blu.state = @loss_sum}, tensor<f32> {blu.state = @count}, tensor<3xf32> {blu.state = @"grads/w"}) {
    %p = blu.mul %w, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %s = blu.reduce_sum %p {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %one = blu.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %l2 = blu.accumulate %l, %s, %first : (tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<f32>
    %n2 = blu.accumulate %n, %one, %first : (tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<f32>
    %g2 = blu.accumulate %g, %x, %first : (tensor<3xf32>, tensor<3xf32>, tensor<i1>) -> tensor<3xf32>
    func.return %l2, %n2, %g2 : (tensor<f32>, tensor<f32>, tensor<3xf32>) -> ()
  }
  func.func @apply(%w: tensor<3xf32> {blu.state = @w}, %m: tensor<3xf32> {blu.state = @"sgd.momentum/w"}, %g: tensor<3xf32> {blu.state = @"grads/w"}, %l: tensor<f32> {blu.state = @loss_sum}, %n: tensor<f32> {blu.state = @count}, %lr: tensor<f32> {blu.scalar = "lr"}, %step: tensor<f32> {blu.scalar = "step"}) -> (tensor<3xf32> {blu.state = @w}, tensor<3xf32> {blu.state = @"sgd.momentum/w"}, tensor<f32> {blu.output = "loss"}, tensor<f32> {blu.output = "grad_norm"}) {
    %one = blu.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %scale = blu.div %one, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %squares = blu.sum_squares %g : (tensor<3xf32>) -> tensor<f32>
    %w2, %m2 = blu.sgd %w, %m, %g, %lr, %scale {momentum = 0.9, nesterov = false, weight_decay = 0.5} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
    %loss = blu.mul %l, %scale : (tensor<f32>, tensor<f32>) -> tensor<f32>
    func.return %w2, %m2, %loss, %squares : (tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> ()
  }
  func.func @eval(%w: tensor<3xf32> {blu.state = @w}, %x: tensor<3xf32> {blu.input = "x"}) -> (tensor<f32> {blu.output = "loss_sum"}, tensor<f32> {blu.output = "count"}) {
    %p = blu.mul %w, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %s = blu.reduce_sum %p {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %one = blu.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    func.return %s, %one : (tensor<f32>, tensor<f32>) -> ()
  }
}
