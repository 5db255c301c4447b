// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers)' | FileCheck %s
// A kernel that reads of a state exactly what it writes of the new state works in place: no copy, no arena.

tile.kernel @step attributes {grid = array<i64: 100>, outs = 1 : i64, steps = array<i64: 32>} (%p: memref<100xf32>, %g: memref<100xf32>, %q: memref<100xf32>, %i: index) {
  %x = tile.load %p, %i : (memref<100xf32>, index) -> !tile.block<1x32xf32>
  %d = tile.load %g, %i : (memref<100xf32>, index) -> !tile.block<1x32xf32>
  %y = tile.sub %x, %d : (!tile.block<1x32xf32>, !tile.block<1x32xf32>) -> !tile.block<1x32xf32>
  tile.store %y, %q, %i : (!tile.block<1x32xf32>, memref<100xf32>, index) -> ()
  tile.end
}

// The old value is read again after the new one was computed: it must not be overwritten before.
tile.kernel @twice attributes {grid = array<i64: 100>, outs = 1 : i64, steps = array<i64: 32>} (%p: memref<100xf32>, %q: memref<100xf32>, %i: index) {
  %x = tile.load %p, %i : (memref<100xf32>, index) -> !tile.block<1x32xf32>
  %y = tile.add %x, %x : (!tile.block<1x32xf32>, !tile.block<1x32xf32>) -> !tile.block<1x32xf32>
  tile.store %y, %q, %i : (!tile.block<1x32xf32>, memref<100xf32>, index) -> ()
  tile.end
}

blu.param @w {init = {kind = "zeros", text = "zeros"}, type = tensor<10x10xf32>}

// CHECK-LABEL: func.func @through_views
// CHECK-SAME:    mem.arena = 0
// CHECK:         %[[W:.*]] = mem.buffer {name = "w", space = "state"} : () -> memref<10x10xf32>
// CHECK:         %[[V:.*]] = mem.view %[[W]]
// CHECK:         tile.launch %[[V]], %{{.*}}, %[[V]] {kernel = @step.s1}
// CHECK-NOT:     mem.copy
func.func @through_views(%w: tensor<10x10xf32> {blu.state = @w}, %g: tensor<100xf32> {blu.input = "g"}) -> (tensor<10x10xf32> {blu.state = @w}) {
  %p = blu.reshape %w : (tensor<10x10xf32>) -> tensor<100xf32>
  %q = tile.launch %p, %g {kernel = @step} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  %r = blu.reshape %q : (tensor<100xf32>) -> tensor<10x10xf32>
  func.return %r : (tensor<10x10xf32>) -> ()
}

// CHECK-LABEL: func.func @read_later
// CHECK:         %[[W:.*]] = mem.buffer {name = "w", space = "state"}
// CHECK:         %[[A:.*]] = mem.buffer {offset = 0 : i64, space = "arena"}
// CHECK:         tile.launch {{.*}}, %[[A]] {kernel = @twice}
// CHECK:         tile.launch
// CHECK:         mem.copy %{{.*}}, %[[W]]
func.func @read_later(%w: tensor<10x10xf32> {blu.state = @w}) -> (tensor<10x10xf32> {blu.state = @w}, tensor<100xf32> {blu.output = "o"}) {
  %p = blu.reshape %w : (tensor<10x10xf32>) -> tensor<100xf32>
  %q = tile.launch %p {kernel = @twice} : (tensor<100xf32>) -> tensor<100xf32>
  %r = blu.reshape %q : (tensor<100xf32>) -> tensor<10x10xf32>
  %o = tile.launch %p {kernel = @twice} : (tensor<100xf32>) -> tensor<100xf32>
  func.return %r, %o : (tensor<10x10xf32>, tensor<100xf32>) -> ()
}
