package ranks

// The modules are as shard, bucket and overlap leave them, so that what is tested is what the phases after them and the runtime
// make of collectives.

const head = `builtin.module @m attributes {blu.mesh = {context = "ring", cp = %d : i64, dp = %d : i64, zero = 0 : i64}, blu.model = "m", blu.phase = "graph"} {
`

// sums adds up two gradients in one bucket, in the middle of other work, and one value that is used again.
const sums = `
  blu.state @"grads/a" {persist = false, role = "gradient", type = tensor<5x7xf32>}
  blu.state @"grads/b" {persist = false, role = "gradient", type = tensor<3xf32>}
  func.func @f(%ga: tensor<5x7xf32> {blu.state = @"grads/a"}, %gb: tensor<3xf32> {blu.state = @"grads/b"}, %x: tensor<5x7xf32> {blu.input = "x"}, %y: tensor<3xf32> {blu.input = "y"})
      -> (tensor<5x7xf32> {blu.state = @"grads/a"}, tensor<3xf32> {blu.state = @"grads/b"}, tensor<5x7xf32> {blu.output = "square"}, tensor<7x5xf32> {blu.output = "total"}) {
    %a = blu.add %ga, %x : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %b = blu.add %gb, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %f:2 = dtms.start %a, %b {group = "world", op = "all_reduce"} : (tensor<5x7xf32>, tensor<3xf32>) -> (tensor<5x7xf32>, tensor<3xf32>)
    %s = blu.mul %x, %x : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %e = blu.exp %s : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %t = blu.transpose %e {perm = array<i64: 1, 0>} : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %w:2 = dtms.wait %f#0, %f#1, %a, %b : (tensor<5x7xf32>, tensor<3xf32>, tensor<5x7xf32>, tensor<3xf32>) -> (tensor<5x7xf32>, tensor<3xf32>)
    %u = dtms.all_reduce %t {group = "dp"} : (tensor<7x5xf32>) -> tensor<7x5xf32>
    %v = blu.mul %w#0, %s : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %z = blu.add %u, %t : (tensor<7x5xf32>, tensor<7x5xf32>) -> tensor<7x5xf32>
    func.return %w#0, %w#1, %v, %z : (tensor<5x7xf32>, tensor<3xf32>, tensor<5x7xf32>, tensor<7x5xf32>) -> ()
  }
}
`

// shards scatters a gradient of 15 elements over 2 ranks, padded, updates the rank's piece of a parameter, and gathers it; a parameter of
// 12 elements needs no padding.
const shards = `
  blu.param @p {dims = ["3", "5"], init = {kind = "zeros", text = "zeros"}, type = tensor<3x5xf32>}
  blu.param @q {dims = ["3", "4"], init = {kind = "zeros", text = "zeros"}, type = tensor<3x4xf32>}
  blu.state @m {persist = true, role = "optimizer", shard = {group = "world", ranks = 2 : i64, shape = array<i64: 3, 5>}, type = tensor<8xf32>}
  func.func @f(%p: tensor<3x5xf32> {blu.state = @p}, %q: tensor<3x4xf32> {blu.state = @q}, %m: tensor<8xf32> {blu.state = @m}, %g: tensor<3x5xf32> {blu.input = "g"}, %h: tensor<3x4xf32> {blu.input = "h"}, %rank: tensor<i32> {blu.scalar = "world_rank"})
      -> (tensor<3x5xf32> {blu.state = @p}, tensor<3x4xf32> {blu.state = @q}, tensor<8xf32> {blu.state = @m}, tensor<i32> {blu.output = "rank"}) {
    %flat = blu.reshape %g : (tensor<3x5xf32>) -> tensor<15xf32>
    %padded = blu.pad %flat {high = array<i64: 1>, low = array<i64: 0>, value = 0.0 : f64} : (tensor<15xf32>) -> tensor<16xf32>
    %blocks = blu.reshape %padded : (tensor<16xf32>) -> tensor<2x8xf32>
    %even = blu.reshape %h : (tensor<3x4xf32>) -> tensor<2x6xf32>
    %f:2 = dtms.start %blocks, %even {group = "world", op = "reduce_scatter", ranks = 2 : i64} : (tensor<2x8xf32>, tensor<2x6xf32>) -> (tensor<8xf32>, tensor<6xf32>)
    %w:2 = dtms.wait %f#0, %f#1, %blocks, %even : (tensor<8xf32>, tensor<6xf32>, tensor<2x8xf32>, tensor<2x6xf32>) -> (tensor<8xf32>, tensor<6xf32>)
    %n = blu.add %m, %w#0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %k = blu.neg %w#1 : (tensor<6xf32>) -> tensor<6xf32>
    %b:2 = dtms.start %n, %k {group = "world", op = "all_gather", ranks = 2 : i64} : (tensor<8xf32>, tensor<6xf32>) -> (tensor<2x8xf32>, tensor<2x6xf32>)
    %c:2 = dtms.wait %b#0, %b#1, %n, %k : (tensor<2x8xf32>, tensor<2x6xf32>, tensor<8xf32>, tensor<6xf32>) -> (tensor<2x8xf32>, tensor<2x6xf32>)
    %all = blu.reshape %c#0 : (tensor<2x8xf32>) -> tensor<16xf32>
    %cut = blu.slice %all {limits = array<i64: 15>, starts = array<i64: 0>, steps = array<i64: 1>} : (tensor<16xf32>) -> tensor<15xf32>
    %new = blu.reshape %cut : (tensor<15xf32>) -> tensor<3x5xf32>
    %other = blu.reshape %c#1 : (tensor<2x6xf32>) -> tensor<3x4xf32>
    func.return %new, %other, %n, %rank : (tensor<3x5xf32>, tensor<3x4xf32>, tensor<8xf32>, tensor<i32>) -> ()
  }
}
`

// ring passes a value on around the ranks of a sequence while each adds up what it has seen, transposed, and sends it back.
const ring = `
  func.func @f(%x: tensor<4x6xf32> {blu.input = "x"}, %rank: tensor<i32> {blu.scalar = "cp_rank"}) -> (tensor<4x6xf32> {blu.output = "y"}, tensor<2x6xf32> {blu.output = "z"}, tensor<i32> {blu.output = "rank"}) {
    %f = dtms.start %x {group = "cp", op = "permute", ranks = 2 : i64, shift = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %e = blu.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %n = dtms.wait %f, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %s = blu.sub %e, %n : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %back = dtms.permute %s {group = "cp", ranks = 2 : i64, shift = -1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %half = blu.slice %s {limits = array<i64: 4, 6>, starts = array<i64: 0, 0>, steps = array<i64: 2, 1>} : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %turned = dtms.all_to_all %half {group = "cp", ranks = 2 : i64} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    func.return %back, %turned, %rank : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<i32>) -> ()
  }
}
`
