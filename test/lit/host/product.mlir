// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers,program,host)' | FileCheck %s
// A contraction over the whole grid becomes one product; the rest of the kernel its epilogue, on pieces.

tile.kernel @linear attributes {grid = array<i64: 45, 150>, outs = 1 : i64, steps = array<i64: 32, 128>} (%a: memref<45x70xf32>, %w: memref<150x70xf32>, %b: memref<150xf32>, %y: memref<45x150xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<45x70xf32>, memref<150x70xf32>, index, index) -> !tile.block<32x128xf32> {}
  %bias = tile.load %b, %j : (memref<150xf32>, index) -> !tile.block<1x128xf32>
  %s = tile.add %acc, %bias : (!tile.block<32x128xf32>, !tile.block<1x128xf32>) -> !tile.block<32x128xf32>
  tile.store %s, %y, %i, %j : (!tile.block<32x128xf32>, memref<45x150xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @linear
// CHECK-SAME:    grid = array<i64>
// CHECK-SAME:    (%[[A:.*]]: memref<45x70xf32>, %[[W:.*]]: memref<150x70xf32>, %[[BIAS:.*]]: memref<150xf32>, %[[Y:.*]]: memref<45x150xf32>)
// CHECK:         %[[C:.*]] = host.window %[[Y]]
// CHECK:         host.gemm %{{.*}}, %{{.*}}, %[[C]] attributes {piece = array<i64: 32, 128>, ta = false, tb = true}
// CHECK:           host.binary %{{.*}}, %{{.*}}, %{{.*}} {fn = "add"} : (!host.block<32x128xf32>, !host.block<1x128xf32>, !host.block<32x128xf32>)
// CHECK-NOT:       host.copy
// CHECK:           host.end

// The gradient sum is added to by the product itself, unless this is the first part of it.
tile.kernel @accumulate attributes {grid = array<i64: 45, 150>, outs = 1 : i64, steps = array<i64: 32, 128>} (%a: memref<45x70xf32>, %w: memref<150x70xf32>, %g: memref<45x150xf32>, %f: memref<i1>, %y: memref<45x150xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<45x70xf32>, memref<150x70xf32>, index, index) -> !tile.block<32x128xf32> {}
  %first = tile.load %f : (memref<i1>) -> !tile.block<1x1xi1>
  %old = tile.load %g, %i, %j : (memref<45x150xf32>, index, index) -> !tile.block<32x128xf32>
  %sum = tile.add %old, %acc : (!tile.block<32x128xf32>, !tile.block<32x128xf32>) -> !tile.block<32x128xf32>
  %new = tile.select %first, %acc, %sum : (!tile.block<1x1xi1>, !tile.block<32x128xf32>, !tile.block<32x128xf32>) -> !tile.block<32x128xf32>
  tile.store %new, %y, %i, %j : (!tile.block<32x128xf32>, memref<45x150xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @accumulate
// CHECK:         host.unary %{{.*}}, %[[BETA:.*]] {fn = "not"}
// CHECK:         host.gemm %{{.*}}, %{{.*}}, %{{.*}}, %[[BETA]]
// CHECK-NEXT:      host.end
blu.state @grads {persist = false, role = "gradient", type = tensor<45x150xf32>}
func.func @f(%a: tensor<45x70xf32> {blu.input = "a"}, %w: tensor<150x70xf32> {blu.input = "w"}, %b: tensor<150xf32> {blu.input = "b"}, %g: tensor<45x150xf32> {blu.state = @grads}, %f: tensor<i1> {blu.scalar = "first"}) -> (tensor<45x150xf32> {blu.output = "y"}, tensor<45x150xf32> {blu.state = @grads}) {
  %y = tile.launch %a, %w, %b {kernel = @linear} : (tensor<45x70xf32>, tensor<150x70xf32>, tensor<150xf32>) -> tensor<45x150xf32>
  %n = tile.launch %a, %w, %g, %f {kernel = @accumulate} : (tensor<45x70xf32>, tensor<150x70xf32>, tensor<45x150xf32>, tensor<i1>) -> tensor<45x150xf32>
  func.return %y, %n : (tensor<45x150xf32>, tensor<45x150xf32>) -> ()
}
