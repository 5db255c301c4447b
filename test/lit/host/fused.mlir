// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers,program,host)' | FileCheck %s
// An addition takes in the multiplication before it, a sum along rows that of its terms; a difference only where one factor
// has one column, and nothing takes in a product that others use too.

tile.kernel @fused attributes {grid = array<i64: 8>, outs = 4 : i64, steps = array<i64: 4>} (%x: memref<8x64xf32>, %g: memref<64xf32>, %y: memref<8x64xf32>, %s: memref<8xf32>, %z: memref<8x64xf32>, %w: memref<8x64xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %a = tile.load %x, %i, %zero : (memref<8x64xf32>, index, index) -> !tile.block<4x64xf32>
  %b = tile.load %g, %zero : (memref<64xf32>, index) -> !tile.block<1x64xf32>
  %p = tile.mul %a, %b : (!tile.block<4x64xf32>, !tile.block<1x64xf32>) -> !tile.block<4x64xf32>
  %q = tile.add %p, %a : (!tile.block<4x64xf32>, !tile.block<4x64xf32>) -> !tile.block<4x64xf32>
  tile.store %q, %y, %i, %zero : (!tile.block<4x64xf32>, memref<8x64xf32>, index, index) -> ()
  %c = tile.mul %a, %a : (!tile.block<4x64xf32>, !tile.block<4x64xf32>) -> !tile.block<4x64xf32>
  %r = tile.reduce %c {axis = 1 : i64, kind = "sum"} : (!tile.block<4x64xf32>) -> !tile.block<4x1xf32>
  tile.store %r, %s, %i {col = -1 : i64, row = 0 : i64} : (!tile.block<4x1xf32>, memref<8xf32>, index) -> ()
  %d = tile.mul %a, %r : (!tile.block<4x64xf32>, !tile.block<4x1xf32>) -> !tile.block<4x64xf32>
  %e = tile.sub %b, %d : (!tile.block<1x64xf32>, !tile.block<4x64xf32>) -> !tile.block<4x64xf32>
  tile.store %e, %z, %i, %zero : (!tile.block<4x64xf32>, memref<8x64xf32>, index, index) -> ()
  %f = tile.mul %a, %b : (!tile.block<4x64xf32>, !tile.block<1x64xf32>) -> !tile.block<4x64xf32>
  %h = tile.sub %e, %f : (!tile.block<4x64xf32>, !tile.block<4x64xf32>) -> !tile.block<4x64xf32>
  tile.store %h, %w, %i, %zero : (!tile.block<4x64xf32>, memref<8x64xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @fused
// CHECK:         host.fma %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {negate = false} : (!host.block<4x64xf32>, !host.block<1x64xf32>, !host.block<4x64xf32>, !host.block<4x64xf32>)
// CHECK:         host.inner %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64} : (!host.block<4x64xf32>, !host.block<4x64xf32>, !host.block<4x1xf32>)
// CHECK:         host.fma %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {negate = true} : (!host.block<4x64xf32>, !host.block<4x1xf32>, !host.block<1x64xf32>, !host.block<4x64xf32>)
// CHECK:         host.binary %{{.*}} {fn = "mul"}
// CHECK:         host.binary %{{.*}} {fn = "sub"}
// CHECK:         host.end

// Scratch memory is added to where it is; a value that a loop carries starts where its initial value is.
tile.kernel @sums attributes {grid = array<i64>, outs = 1 : i64, steps = array<i64>} (%x: memref<16x16xf32>, %y: memref<16x16xf32>) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %four = arith.constant {value = 4 : index} : () -> index
  %n = arith.constant {value = 16 : index} : () -> index
  %m = tile.scratch : () -> memref<16x16xf32>
  %a = tile.load %x, %zero, %zero : (memref<16x16xf32>, index, index) -> !tile.block<16x16xf32>
  tile.store %a, %m, %zero, %zero : (!tile.block<16x16xf32>, memref<16x16xf32>, index, index) -> ()
  %e = tile.exp %a : (!tile.block<16x16xf32>) -> !tile.block<16x16xf32>
  %t = scf.for %zero, %n, %four, %e : (index, index, index, !tile.block<16x16xf32>) -> !tile.block<16x16xf32> (%i: index, %c: !tile.block<16x16xf32>) {
    %old = tile.load %m, %i, %zero : (memref<16x16xf32>, index, index) -> !tile.block<4x16xf32>
    %row = tile.load %x, %i, %zero : (memref<16x16xf32>, index, index) -> !tile.block<4x16xf32>
    %new = tile.dot %row, %a, %old : (!tile.block<4x16xf32>, !tile.block<16x16xf32>, !tile.block<4x16xf32>) -> !tile.block<4x16xf32>
    tile.store %new, %m, %i, %zero : (!tile.block<4x16xf32>, memref<16x16xf32>, index, index) -> ()
    %next = tile.dot %row, %row, %c {ta = true} : (!tile.block<4x16xf32>, !tile.block<4x16xf32>, !tile.block<16x16xf32>) -> !tile.block<16x16xf32>
    scf.yield %next : (!tile.block<16x16xf32>) -> ()
  }
  %u = tile.load %m, %zero, %zero : (memref<16x16xf32>, index, index) -> !tile.block<16x16xf32>
  %v = tile.sub %u, %t : (!tile.block<16x16xf32>, !tile.block<16x16xf32>) -> !tile.block<16x16xf32>
  tile.store %v, %y, %zero, %zero : (!tile.block<16x16xf32>, memref<16x16xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @sums
// CHECK:         %[[M:.*]] = host.memory
// CHECK:         %[[CARRIED:.*]] = host.scratch %{{.*}} -> !host.block<16x16xf32>
// CHECK-NEXT:    host.unary %{{.*}}, %[[CARRIED]] {fn = "exp"}
// CHECK-NEXT:    scf.for
// CHECK:           %[[OLD:.*]] = host.window %[[M]]
// CHECK:           %[[NEW:.*]] = host.window %[[M]]
// CHECK:           host.dot %{{.*}}, %[[NEW]] {accumulate = true
// CHECK:           host.dot %{{.*}}, %[[CARRIED]] {accumulate = true
// CHECK-NEXT:      scf.yield
// CHECK:         %[[U:.*]] = host.window %[[M]]
// CHECK:         host.binary %[[U]], %[[CARRIED]], %{{.*}} {fn = "sub"}
func.func @f(%x: tensor<8x64xf32> {blu.input = "x"}, %g: tensor<64xf32> {blu.input = "g"}, %m: tensor<16x16xf32> {blu.input = "m"}) -> (tensor<8x64xf32> {blu.output = "y"}, tensor<8xf32> {blu.output = "s"}, tensor<8x64xf32> {blu.output = "z"}, tensor<8x64xf32> {blu.output = "w"}, tensor<16x16xf32> {blu.output = "t"}) {
  %y, %s, %z, %w = tile.launch %x, %g {kernel = @fused} : (tensor<8x64xf32>, tensor<64xf32>) -> (tensor<8x64xf32>, tensor<8xf32>, tensor<8x64xf32>, tensor<8x64xf32>)
  %t = tile.launch %m {kernel = @sums} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %y, %s, %z, %w, %t : (tensor<8x64xf32>, tensor<8xf32>, tensor<8x64xf32>, tensor<8x64xf32>, tensor<16x16xf32>) -> ()
}
