// RUN: bluc opt %s --pass-pipeline='builtin.module(shard{cp=2},canonicalize,cse)' | FileCheck %s --check-prefix=RING
// RUN: bluc opt %s --pass-pipeline='builtin.module(shard{cp=2 context=ulysses},canonicalize,cse)' | FileCheck %s --check-prefix=HEADS
// RUN: bluc opt %s --pass-pipeline='builtin.module(shard{cp=2 context=gather},canonicalize,cse)' | FileCheck %s --check-prefix=GATHER
// RUN: not bluc opt %s --pass-pipeline='builtin.module(shard{cp=3})' 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: not bluc opt %s --pass-pipeline='builtin.module(shard{cp=4 context=ulysses})' 2>&1 | FileCheck %s --check-prefix=SHARE

// Attention of eight tokens by two heads, and its gradient, on two ranks.

// In a ring the tokens are cut into four chunks: rank r has chunk r and chunk 3-r.

// RING-LABEL: func.func @accumulate(
// RING-SAME:    %arg5: tensor<i32> {blu.scalar = "cp_rank"}
// RING:         %[[CHUNKS:.*]] = blu.reshape %arg3 : (tensor<1x8xi32>) -> tensor<4x2xi32>
// RING:         %[[SECOND:.*]] = blu.sub %{{.*}}, %[[R:.*]] : (tensor<1x2xi32>, tensor<1x2xi32>)
// RING:         %[[CHUNK:.*]] = blu.select %{{.*}}, %[[SECOND]], %[[R]]
// RING:         %[[AT:.*]] = blu.add %{{.*}}, %[[CHUNK]]
// RING:         %[[TAKEN:.*]] = blu.gather %[[CHUNKS]], %[[AT]]
// RING:         %[[TOKENS:.*]] = blu.reshape %[[TAKEN]] : (tensor<1x2x2xi32>) -> tensor<1x4xi32>
// RING:         blu.gather %arg0, %[[TOKENS]]

// The keys and values of the other rank are on their way while the rank attends to its own. Then its second chunk attends to
// the other rank's first, and, where the other rank comes before it, its first chunk to that, too; else its second one to the
// other's second.

// RING:         %[[K:.*]] = blu.neg %[[Q:.*]] : (tensor<1x2x4x2xf32>)
// RING:         %[[V:.*]] = blu.exp %[[Q]]
// RING-NEXT:    %[[KV:.*]]:2 = dtms.permute %[[K]], %[[V]] {group = "cp", ranks = 2 : i64, shift = 1 : i64}
// RING-NEXT:    %[[OWN:.*]]:2 = blu.attention %[[Q]], %[[K]], %[[V]] {causal = true
// RING-DAG:     %[[QA:.*]] = blu.slice %[[Q]] {limits = array<i64: 1, 2, 2, 2>, starts = array<i64: 0, 0, 0, 0>
// RING-DAG:     %[[QB:.*]] = blu.slice %[[Q]] {limits = array<i64: 1, 2, 4, 2>, starts = array<i64: 0, 0, 2, 0>
// RING-DAG:     %[[KA:.*]] = blu.slice %[[KV]]#0 {limits = array<i64: 1, 2, 2, 2>, starts = array<i64: 0, 0, 0, 0>
// RING-DAG:     %[[KB:.*]] = blu.slice %[[KV]]#0 {limits = array<i64: 1, 2, 4, 2>, starts = array<i64: 0, 0, 2, 0>
// RING-DAG:     %[[VA:.*]] = blu.slice %[[KV]]#1 {limits = array<i64: 1, 2, 2, 2>, starts = array<i64: 0, 0, 0, 0>
// RING:         %[[BEFORE:.*]] = blu.compare %arg5, %{{.*}} {predicate = "ge"}
// RING:         blu.attention %[[QB]], %[[KA]], %[[VA]] {causal = false
// RING:         %[[Q2:.*]] = blu.select %{{.*}}, %[[QA]], %[[QB]]
// RING:         %[[K2:.*]] = blu.select %{{.*}}, %[[KA]], %[[KB]]
// RING:         blu.attention %[[Q2]], %[[K2]], %{{.*}} {causal = false
// RING:         %[[O:.*]] = blu.concat %{{.*}}, %{{.*}} {axis = 2 : i64}
// RING:         %[[SUM:.*]] = blu.reduce_sum %[[O]]
// RING:         blu.accumulate %arg2, %[[SUM]], %arg4

// For the gradient they go around again, and their gradients come back while the first chunk's own are computed.

// RING:         %[[KV2:.*]]:2 = dtms.permute %[[K]], %[[V]] {blu.recomputed, group = "cp"
// RING:         blu.attention_grad %[[QB]], %[[K]], %[[V]], {{.*}}causal = true
// RING:         blu.attention_grad %[[QB]], {{.*}}causal = false
// RING:         blu.attention_grad {{.*}}causal = false
// RING:         %[[HOME:.*]]:2 = dtms.permute %{{.*}}, %{{.*}} {group = "cp"
// RING:         blu.attention_grad %[[QA]], {{.*}}causal = true
// RING:         blu.add %{{.*}}, %[[HOME]]#0
// RING:         blu.add %{{.*}}, %[[HOME]]#1
// RING:         %[[G:.*]] = blu.scatter_add %{{.*}}, %[[TOKENS]] {rows = 3 : i64}
// RING:         blu.accumulate %arg1, %[[G]], %arg4

// Only then are sums of all ranks taken.

// RING-LABEL: func.func @accumulate_last(
// RING-COUNT-2: dtms.all_reduce %{{.*}} {group = "world"}

// By heads: one rank's tokens for all heads become one head of all tokens, and back.

// HEADS-LABEL: func.func @accumulate(
// HEADS:         %[[IN:.*]]:3 = dtms.all_to_all %{{.*}}, %{{.*}}, %{{.*}} {group = "cp", ranks = 2 : i64} : (tensor<2x1x1x4x2xf32>,
// HEADS:         %[[ALL:.*]]:2 = blu.attention %[[Q:.*]], %[[K:.*]], %[[V:.*]] {causal = true, {{.*}} : (tensor<1x1x8x2xf32>,
// HEADS:         dtms.all_to_all %{{.*}} {group = "cp"
// HEADS-NOT:     dtms
// HEADS:         blu.attention_grad %[[Q]], %[[K]], %[[V]], %[[ALL]]#0, %[[ALL]]#1,
// HEADS:         dtms.all_to_all %{{.*}}, %{{.*}}, %{{.*}} {group = "cp"
// HEADS-NOT:     dtms
// HEADS-LABEL: func.func @accumulate_last(

// Keys and values gathered once: what the ring passes on is taken from them.

// GATHER-LABEL: func.func @accumulate(
// GATHER:         %[[ALL:.*]]:2 = dtms.all_gather %{{.*}}, %{{.*}} {group = "cp", ranks = 2 : i64}
// GATHER:         %[[STEP:.*]] = blu.select %{{.*}} : (tensor<1xi1>, tensor<1xi32>, tensor<1xi32>)
// GATHER:         blu.gather %[[ALL]]#0, %[[STEP]] : (tensor<2x1x2x4x2xf32>, tensor<1xi32>)
// GATHER-NOT:     dtms
// GATHER:         dtms.reduce_scatter %{{.*}}, %{{.*}} {group = "cp", ranks = 2 : i64} : (tensor<2x1x2x4x2xf32>,
// GATHER-NOT:     dtms
// GATHER-LABEL: func.func @accumulate_last(

// UNEVEN: shard-context.mlir:[[#]]:3: error: shard: S = 8 can't be divided by 6: cp=3 cuts a sequence into 6 chunks, two a rank, {{.*}}; S = 6 and S = 12 can
// SHARE: shard-context.mlir:[[#]]:16: error: shard: ulysses with cp=4 gives each rank an equal number of heads, and the heads of this attention are 2; cp = 2 can, and --context ring takes any number of heads
builtin.module attributes {blu.train = {batch = {B = 1 : i64, S = 8 : i64}}} {
  blu.param @w {init = {kind = "zeros", text = "zeros"}, type = tensor<3x4xf32>}
  blu.state @"grads/w" {persist = false, role = "gradient", type = tensor<3x4xf32>}
  blu.state @loss_sum {persist = false, role = "accumulator", type = tensor<f32>}
  func.func @accumulate(%w: tensor<3x4xf32> {blu.state = @w}, %g: tensor<3x4xf32> {blu.state = @"grads/w"}, %l: tensor<f32> {blu.state = @loss_sum}, %tokens: tensor<1x8xi32> {blu.input = "tokens"}, %first: tensor<i1> {blu.scalar = "first"}) -> (tensor<3x4xf32> {blu.state = @"grads/w"}, tensor<f32> {blu.state = @loss_sum}) {
    %0 = blu.gather %w, %tokens : (tensor<3x4xf32>, tensor<1x8xi32>) -> tensor<1x8x4xf32>
    %1 = blu.reshape %0 : (tensor<1x8x4xf32>) -> tensor<1x8x2x2xf32>
    %q = blu.transpose %1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x8x2x2xf32>) -> tensor<1x2x8x2xf32>
    %k = blu.neg %q : (tensor<1x2x8x2xf32>) -> tensor<1x2x8x2xf32>
    %v = blu.exp %q : (tensor<1x2x8x2xf32>) -> tensor<1x2x8x2xf32>
    %o, %lse = blu.attention %q, %k, %v {causal = true, scale = 1.0} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> (tensor<1x2x8x2xf32>, tensor<1x2x8xf32>)
    %s = blu.reduce_sum %o {axes = array<i64: 0, 1, 2, 3>} : (tensor<1x2x8x2xf32>) -> tensor<f32>
    %l2 = blu.accumulate %l, %s, %first : (tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<f32>
    %dq, %dk, %dv = blu.attention_grad %q, %k, %v, %o, %lse, %o {causal = true, scale = 1.0} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8xf32>, tensor<1x2x8x2xf32>) -> (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>)
    %dkv = blu.mul %dk, %dv : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> tensor<1x2x8x2xf32>
    %d = blu.add %dq, %dkv : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> tensor<1x2x8x2xf32>
    %2 = blu.transpose %d {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x2x8x2xf32>) -> tensor<1x8x2x2xf32>
    %3 = blu.reshape %2 : (tensor<1x8x2x2xf32>) -> tensor<1x8x4xf32>
    %4 = blu.scatter_add %3, %tokens {rows = 3 : i64} : (tensor<1x8x4xf32>, tensor<1x8xi32>) -> tensor<3x4xf32>
    %g2 = blu.accumulate %g, %4, %first : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<i1>) -> tensor<3x4xf32>
    func.return %g2, %l2 : (tensor<3x4xf32>, tensor<f32>) -> ()
  }
}
