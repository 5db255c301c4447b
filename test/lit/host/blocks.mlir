// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers,program,host)' | FileCheck %s
// Loads are windows, the result is computed where it is stored, and a chain writes over what has died: one scratch block.

tile.kernel @chain attributes {grid = array<i64: 10>, outs = 1 : i64, steps = array<i64: 4>} (%x: memref<10x64xf32>, %g: memref<64xf32>, %y: memref<10x64xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %a = tile.load %x, %i, %zero : (memref<10x64xf32>, index, index) -> !tile.block<4x64xf32>
  %b = tile.load %g, %zero : (memref<64xf32>, index) -> !tile.block<1x64xf32>
  %c = tile.mul %a, %b : (!tile.block<4x64xf32>, !tile.block<1x64xf32>) -> !tile.block<4x64xf32>
  %d = tile.exp %c : (!tile.block<4x64xf32>) -> !tile.block<4x64xf32>
  %e = tile.reduce %d {axis = 1 : i64, kind = "sum"} : (!tile.block<4x64xf32>) -> !tile.block<4x1xf32>
  %f = tile.div %d, %e : (!tile.block<4x64xf32>, !tile.block<4x1xf32>) -> !tile.block<4x64xf32>
  tile.store %f, %y, %i, %zero : (!tile.block<4x64xf32>, memref<10x64xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @chain
// CHECK-SAME:    scratch = 1088
// CHECK:         %[[ROWS:.*]] = arith.minsi
// CHECK:         %[[X:.*]] = host.window %{{.*}}, %[[ROWS]], %{{.*}} : (memref<10x64xf32>
// CHECK:         %[[S:.*]] = host.scratch %[[ROWS]], %{{.*}} -> !host.block<4x64xf32>
// CHECK-NEXT:    host.binary %[[X]], %{{.*}}, %[[S]] {fn = "mul"}
// CHECK-NEXT:    host.unary %[[S]], %[[S]] {fn = "exp"}
// CHECK:         host.reduce %[[S]], %[[SUM:.*]] {axis = 1 : i64, fn = "sum"}
// CHECK:         %[[Y:.*]] = host.window
// CHECK-NEXT:    host.binary %[[S]], %[[SUM]], %[[Y]] {fn = "div"}
// CHECK-NEXT:    host.end
func.func @f(%x: tensor<10x64xf32> {blu.input = "x"}, %g: tensor<64xf32> {blu.input = "g"}) -> (tensor<10x64xf32> {blu.output = "y"}) {
  %y = tile.launch %x, %g {kernel = @chain} : (tensor<10x64xf32>, tensor<64xf32>) -> tensor<10x64xf32>
  func.return %y : (tensor<10x64xf32>) -> ()
}
