// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers)' | FileCheck %s
// A collective's memory is in use from its start to its wait. 4x6 floats take 96 bytes, 128 when aligned.

blu.state @g {persist = false, role = "gradient", type = tensor<4x6xf32>}
blu.state @p {persist = true, role = "optimizer", type = tensor<4x6xf32>}
blu.state @q {persist = true, role = "optimizer", type = tensor<3x5xf32>}

tile.kernel @shift attributes {grid = array<i64: 4>, outs = 1 : i64, steps = array<i64: 4>} (%p: memref<4x6xf32>, %q: memref<4x6xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %five = arith.constant {value = 5 : index} : () -> index
  %x = tile.load %p, %i, %one : (memref<4x6xf32>, index, index) -> !tile.block<4x5xf32>
  tile.store %x, %q, %i, %zero : (!tile.block<4x5xf32>, memref<4x6xf32>, index, index) -> ()
  %y = tile.load %p, %i, %zero : (memref<4x6xf32>, index, index) -> !tile.block<4x1xf32>
  tile.store %y, %q, %i, %five : (!tile.block<4x1xf32>, memref<4x6xf32>, index, index) -> ()
  tile.end
}

// The sum of a new gradient is made in the gradient's state, where the kernel puts it.
// CHECK-LABEL: func.func @inplace
// CHECK-SAME:    mem.arena = 0
// CHECK:         %[[G:.*]] = mem.buffer {name = "g", space = "state"}
// CHECK:         tile.launch %{{.*}}, %[[G]]
// CHECK-NEXT:    mem.collective %[[G]], %[[G]] {group = "world", id = 0 : i64, op = "all_reduce"}
// CHECK-NEXT:    mem.wait {id = 0 : i64}
// CHECK-NEXT:    func.return
func.func @inplace(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<4x6xf32> {blu.state = @g}) {
  %1 = tile.launch %a {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = dtms.all_reduce %1 {group = "world"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %2 : (tensor<4x6xf32>) -> ()
}

// Not where someone reads what was there before, once the sum has begun.
// CHECK-LABEL: func.func @readlater
// CHECK:         %[[OWN:.*]] = mem.buffer {offset = 0 : i64, space = "arena"}
// CHECK:         tile.launch %{{.*}}, %[[OWN]]
// CHECK:         %[[G:.*]] = mem.buffer {name = "g", space = "state"}
// CHECK:         mem.collective %[[OWN]], %[[G]] {group = "world"
// CHECK:         tile.launch %[[OWN]]
// CHECK-NEXT:    mem.wait
func.func @readlater(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<4x6xf32> {blu.state = @g}, tensor<4x6xf32> {blu.output = "o"}) {
  %1 = tile.launch %a {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %f = dtms.start %1 {group = "world", op = "all_reduce"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %o = tile.launch %1 {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %w = dtms.wait %f, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %w, %o : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
}

// What is sent, what is to come, and two values between lie apart.
// CHECK-LABEL: func.func @flight
// CHECK-SAME:    mem.arena = 512
// CHECK:         mem.collective
// CHECK-COUNT-3: tile.launch
// CHECK:         mem.wait
func.func @flight(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<4x6xf32> {blu.output = "x"}, tensor<4x6xf32> {blu.output = "y"}) {
  %1 = tile.launch %a {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %f = dtms.start %1 {group = "cp", op = "permute", ranks = 2 : i64, shift = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = tile.launch %a {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = tile.launch %2 {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = tile.launch %3 {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %w = dtms.wait %f, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %x = tile.launch %w {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %x, %4 : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
}

// A parameter is gathered straight into its state; one that was padded comes there when it is whole.
// CHECK-LABEL: func.func @gathered
// CHECK:         %[[STATE:.*]] = mem.buffer {name = "p", space = "state"}
// CHECK:         %[[P:.*]] = mem.view %[[STATE]]
// CHECK:         mem.collective %{{.*}}, %{{.*}}, %[[P]], %[[Q:.*]] {group = "world", id = 0 : i64, op = "all_gather", ranks = 2 : i64} : (memref<12xf32>, memref<8xf32>, memref<2x12xf32>, memref<2x8xf32>)
// CHECK-NEXT:    mem.wait
// CHECK:         %[[CUT:.*]] = mem.view %[[Q]]
// CHECK:         mem.copy %[[CUT]]
// CHECK:         tile.launch
func.func @gathered(%a: tensor<12xf32> {blu.input = "a"}, %b: tensor<8xf32> {blu.input = "b"}, %c: tensor<4x6xf32> {blu.input = "c"})
    -> (tensor<4x6xf32> {blu.state = @p}, tensor<3x5xf32> {blu.state = @q}, tensor<4x6xf32> {blu.output = "o"}) {
  %g:2 = dtms.all_gather %a, %b {group = "world", ranks = 2 : i64} : (tensor<12xf32>, tensor<8xf32>) -> (tensor<2x12xf32>, tensor<2x8xf32>)
  %p = blu.reshape %g#0 : (tensor<2x12xf32>) -> tensor<4x6xf32>
  %flat = blu.reshape %g#1 : (tensor<2x8xf32>) -> tensor<16xf32>
  %cut = blu.slice %flat {limits = array<i64: 15>, starts = array<i64: 0>, steps = array<i64: 1>} : (tensor<16xf32>) -> tensor<15xf32>
  %q = blu.reshape %cut : (tensor<15xf32>) -> tensor<3x5xf32>
  %o = tile.launch %c {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %p, %q, %o : (tensor<4x6xf32>, tensor<3x5xf32>, tensor<4x6xf32>) -> ()
}

// What is sent lies without gaps: a slice of columns is copied.
// CHECK-LABEL: func.func @columns
// CHECK:         mem.copy %{{.*}}, %[[D:.*]] :
// CHECK:         mem.collective %[[D]],
func.func @columns(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<4x2xf32> {blu.output = "o"}) {
  %s = blu.slice %a {limits = array<i64: 4, 4>, starts = array<i64: 0, 2>, steps = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %o = dtms.permute %s {group = "cp", ranks = 2 : i64, shift = -1 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %o : (tensor<4x2xf32>) -> ()
}

// A part of a new state is written from the start on, so not there while someone reads what the state was.
// CHECK-LABEL: func.func @parts
// CHECK:         %[[D:.*]] = mem.buffer {offset = 0 : i64, space = "arena"} : () -> memref<4x6xf32>
// CHECK:         %[[PART:.*]] = mem.view %[[D]]
// CHECK:         mem.collective %{{.*}}, %[[PART]] {group = "cp"
// CHECK:         %[[G:.*]] = mem.buffer {name = "g", space = "state"}
// CHECK:         tile.launch %[[G]]
// CHECK-NEXT:    mem.wait
// CHECK:         mem.copy %[[D]], %[[G]]
func.func @parts(%g: tensor<4x6xf32> {blu.state = @g}, %a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<4x6xf32> {blu.state = @g}, tensor<4x6xf32> {blu.output = "o"}) {
  %s = blu.slice %a {limits = array<i64: 2, 6>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<2x6xf32>
  %f = dtms.start %s {group = "cp", op = "permute", ranks = 2 : i64, shift = 1 : i64} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %o = tile.launch %g {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %w = dtms.wait %f, %s : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %n = blu.concat %w, %s {axis = 0 : i64} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  func.return %n, %o : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
}
