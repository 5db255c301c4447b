// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers)' | FileCheck %s
// What lives at the same time lies apart; what has died gives its place to others. 4x6 floats take 96 bytes, 128 when aligned.

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

// A chain of three that can't work in place needs two places.
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    mem.arena = 256
// CHECK-DAG:     %[[A:.*]] = mem.buffer {offset = 0 : i64, space = "arena"}
// CHECK-DAG:     %[[B:.*]] = mem.buffer {offset = 128 : i64, space = "arena"}
// CHECK:         tile.launch
func.func @chain(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<4x6xf32> {blu.output = "o"}) {
  %1 = tile.launch %a {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = tile.launch %1 {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = tile.launch %2 {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = tile.launch %3 {kernel = @shift} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %4 : (tensor<4x6xf32>) -> ()
}
