// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers)' | FileCheck %s
// A sum of several terms grows in the state it goes to, from the first term on; but not while anybody reads what is there.

tile.kernel @add attributes {grid = array<i64: 100>, outs = 1 : i64, steps = array<i64: 32>} (%p: memref<100xf32>, %g: memref<100xf32>, %q: memref<100xf32>, %i: index) {
  %x = tile.load %p, %i : (memref<100xf32>, index) -> !tile.block<1x32xf32>
  %d = tile.load %g, %i : (memref<100xf32>, index) -> !tile.block<1x32xf32>
  %y = tile.add %x, %d : (!tile.block<1x32xf32>, !tile.block<1x32xf32>) -> !tile.block<1x32xf32>
  tile.store %y, %q, %i : (!tile.block<1x32xf32>, memref<100xf32>, index) -> ()
  tile.end
}

tile.kernel @rows attributes {grid = array<i64: 10>, outs = 1 : i64, steps = array<i64: 8>} (%x: memref<3x10xf32>, %n: memref<3xi32>, %t: memref<10x10xf32>, %y: memref<10x10xf32>, %j: index) {
  tile.scatter_add %x, %n, %j, %y, %t {cols = 8 : i64} : (memref<3x10xf32>, memref<3xi32>, index, memref<10x10xf32>, memref<10x10xf32>) -> ()
  tile.end
}

blu.param @w {init = {kind = "zeros", text = "zeros"}, type = tensor<10x10xf32>}

// CHECK-LABEL: func.func @in_place
// CHECK-SAME:    mem.arena = 0
// CHECK:         %[[W:.*]] = mem.buffer {name = "w", space = "state"}
// CHECK:         %[[V:.*]] = mem.view %[[W]]
// CHECK:         %[[G:.*]] = mem.buffer {name = "g", space = "input"}
// CHECK:         tile.launch %[[V]], %[[G]], %[[V]]
// CHECK:         tile.launch %[[V]], %[[G]], %[[V]]
// CHECK:         tile.launch %{{.*}}, %{{.*}}, %[[W]], %[[W]] {kernel = @rows.s1}
// CHECK-NEXT:    func.return
func.func @in_place(%w: tensor<10x10xf32> {blu.state = @w}, %g: tensor<100xf32> {blu.input = "g"}, %x: tensor<3x10xf32> {blu.input = "x"}, %n: tensor<3xi32> {blu.input = "n"}) -> (tensor<10x10xf32> {blu.state = @w}) {
  %p = blu.reshape %w : (tensor<10x10xf32>) -> tensor<100xf32>
  %a = tile.launch %p, %g {kernel = @add} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  %b = tile.launch %a, %g {kernel = @add} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  %t = blu.reshape %b : (tensor<100xf32>) -> tensor<10x10xf32>
  %r = tile.launch %x, %n, %t {kernel = @rows} : (tensor<3x10xf32>, tensor<3xi32>, tensor<10x10xf32>) -> tensor<10x10xf32>
  func.return %r : (tensor<10x10xf32>) -> ()
}

// The first sum is read again, through a view, after the second was made of it: only the second is in the state's place.
// CHECK-LABEL: func.func @first_read_again
// CHECK:         %[[W:.*]] = mem.buffer {name = "w", space = "state"}
// CHECK:         %[[A:.*]] = mem.buffer {offset = 0 : i64, space = "arena"}
// CHECK:         tile.launch %{{.*}}, %{{.*}}, %[[A]]
// CHECK:         tile.launch %[[A]], %{{.*}}, %[[V:.*]] {
// CHECK:         tile.launch %[[A]], %{{.*}}, %{{.*}} {
func.func @first_read_again(%w: tensor<10x10xf32> {blu.state = @w}, %g: tensor<100xf32> {blu.input = "g"}) -> (tensor<10x10xf32> {blu.state = @w}, tensor<100xf32> {blu.output = "o"}) {
  %p = blu.reshape %w : (tensor<10x10xf32>) -> tensor<100xf32>
  %a = tile.launch %p, %g {kernel = @add} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  %v = blu.reshape %a : (tensor<100xf32>) -> tensor<10x10xf32>
  %b = tile.launch %a, %g {kernel = @add} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  %r = blu.reshape %b : (tensor<100xf32>) -> tensor<10x10xf32>
  %again = blu.reshape %v : (tensor<10x10xf32>) -> tensor<100xf32>
  %o = tile.launch %again, %g {kernel = @add} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  func.return %r, %o : (tensor<10x10xf32>, tensor<100xf32>) -> ()
}

// The state's old value is still to be read when the first sum is made: that waits elsewhere.
// CHECK-LABEL: func.func @state_read_later
// CHECK:         %[[A:.*]] = mem.buffer {offset = 0 : i64, space = "arena"}
// CHECK:         tile.launch %{{.*}}, %{{.*}}, %[[A]]
// CHECK:         tile.launch %[[V:.*]], %[[A]], %[[V]]
// CHECK-NEXT:    func.return
func.func @state_read_later(%w: tensor<10x10xf32> {blu.state = @w}, %g: tensor<100xf32> {blu.input = "g"}) -> (tensor<10x10xf32> {blu.state = @w}) {
  %p = blu.reshape %w : (tensor<10x10xf32>) -> tensor<100xf32>
  %a = tile.launch %g, %g {kernel = @add} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  %b = tile.launch %p, %a {kernel = @add} : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
  %r = blu.reshape %b : (tensor<100xf32>) -> tensor<10x10xf32>
  func.return %r : (tensor<10x10xf32>) -> ()
}
