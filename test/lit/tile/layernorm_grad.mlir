// RUN: bluc opt %s | FileCheck %s
// Layer norm backward: dx, and the gradients of gain and bias, sums over all rows, in two steps. A grid point takes a panel of rows, block by block,
// and carries its column sums; the second kernel adds the panels in order.

// CHECK-LABEL: tile.kernel @layernorm_grad
// CHECK:         scf.for
tile.kernel @layernorm_grad attributes {grid = array<i64: 29>, outs = 3 : i64, steps = array<i64: 9>} (%x: memref<29x10xf32>, %gain: memref<10xf32>, %mean: memref<29xf32>, %rstd: memref<29xf32>, %dy: memref<29x10xf32>, %dx: memref<29x10xf32>, %dgain: memref<4x10xf32>, %dbias: memref<4x10xf32>, %p: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %panel = arith.constant {value = 9 : index} : () -> index
  %rows = arith.constant {value = 3 : index} : () -> index
  %nr = arith.constant {value = 29 : index} : () -> index
  %c = arith.constant {value = 10 : index} : () -> index
  %zerof = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %inv = tile.constant {value = 0.1 : f64} : () -> !tile.block<1x1xf32>
  %pend = arith.addi %p, %panel : (index, index) -> index
  %end = arith.minsi %pend, %nr : (index, index) -> index
  %g = tile.load %gain, %zero {col = 0 : i64, row = -1 : i64} : (memref<10xf32>, index) -> !tile.block<1x10xf32>
  %z = tile.broadcast %zerof, %one, %c : (!tile.block<1x1xf32>, index, index) -> !tile.block<1x10xf32>
  %sums:2 = scf.for %p, %end, %rows, %z, %z : (index, index, index, !tile.block<1x10xf32>, !tile.block<1x10xf32>) -> (!tile.block<1x10xf32>, !tile.block<1x10xf32>) (%i: index, %dg0: !tile.block<1x10xf32>, %db0: !tile.block<1x10xf32>) {
    // a panel is a whole number of blocks: loads are clipped where the tensor ends, not where the panel does
    %xb = tile.load %x, %i, %zero : (memref<29x10xf32>, index, index) -> !tile.block<3x10xf32>
    %dyb = tile.load %dy, %i, %zero : (memref<29x10xf32>, index, index) -> !tile.block<3x10xf32>
    %mu = tile.load %mean, %i {col = -1 : i64, row = 0 : i64} : (memref<29xf32>, index) -> !tile.block<3x1xf32>
    %r = tile.load %rstd, %i {col = -1 : i64, row = 0 : i64} : (memref<29xf32>, index) -> !tile.block<3x1xf32>
    %xc = tile.sub %xb, %mu : (!tile.block<3x10xf32>, !tile.block<3x1xf32>) -> !tile.block<3x10xf32>
    %xhat = tile.mul %xc, %r : (!tile.block<3x10xf32>, !tile.block<3x1xf32>) -> !tile.block<3x10xf32>
    %dyg = tile.mul %dyb, %g : (!tile.block<3x10xf32>, !tile.block<1x10xf32>) -> !tile.block<3x10xf32>
    %s1 = tile.reduce %dyg {axis = 1 : i64, kind = "sum"} : (!tile.block<3x10xf32>) -> !tile.block<3x1xf32>
    %m1 = tile.mul %s1, %inv : (!tile.block<3x1xf32>, !tile.block<1x1xf32>) -> !tile.block<3x1xf32>
    %t = tile.mul %dyg, %xhat : (!tile.block<3x10xf32>, !tile.block<3x10xf32>) -> !tile.block<3x10xf32>
    %s2 = tile.reduce %t {axis = 1 : i64, kind = "sum"} : (!tile.block<3x10xf32>) -> !tile.block<3x1xf32>
    %m2 = tile.mul %s2, %inv : (!tile.block<3x1xf32>, !tile.block<1x1xf32>) -> !tile.block<3x1xf32>
    %a = tile.sub %dyg, %m1 : (!tile.block<3x10xf32>, !tile.block<3x1xf32>) -> !tile.block<3x10xf32>
    %bb = tile.mul %xhat, %m2 : (!tile.block<3x10xf32>, !tile.block<3x1xf32>) -> !tile.block<3x10xf32>
    %cc = tile.sub %a, %bb : (!tile.block<3x10xf32>, !tile.block<3x10xf32>) -> !tile.block<3x10xf32>
    %dxb = tile.mul %cc, %r : (!tile.block<3x10xf32>, !tile.block<3x1xf32>) -> !tile.block<3x10xf32>
    tile.store %dxb, %dx, %i, %zero : (!tile.block<3x10xf32>, memref<29x10xf32>, index, index) -> ()
    %dyx = tile.mul %dyb, %xhat : (!tile.block<3x10xf32>, !tile.block<3x10xf32>) -> !tile.block<3x10xf32>
    %dgr = tile.reduce %dyx {axis = 0 : i64, kind = "sum"} : (!tile.block<3x10xf32>) -> !tile.block<1x10xf32>
    %dbr = tile.reduce %dyb {axis = 0 : i64, kind = "sum"} : (!tile.block<3x10xf32>) -> !tile.block<1x10xf32>
    %dg1 = tile.add %dg0, %dgr : (!tile.block<1x10xf32>, !tile.block<1x10xf32>) -> !tile.block<1x10xf32>
    %db1 = tile.add %db0, %dbr : (!tile.block<1x10xf32>, !tile.block<1x10xf32>) -> !tile.block<1x10xf32>
    scf.yield %dg1, %db1 : (!tile.block<1x10xf32>, !tile.block<1x10xf32>) -> ()
  }
  %n = arith.divsi %p, %panel : (index, index) -> index
  tile.store %sums#0, %dgain, %n, %zero {col = 1 : i64, row = -1 : i64} : (!tile.block<1x10xf32>, memref<4x10xf32>, index, index) -> ()
  tile.store %sums#1, %dbias, %n, %zero {col = 1 : i64, row = -1 : i64} : (!tile.block<1x10xf32>, memref<4x10xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: tile.kernel @sum_panels
tile.kernel @sum_panels attributes {grid = array<i64: 10>, outs = 2 : i64, steps = array<i64: 4>} (%dgain: memref<4x10xf32>, %dbias: memref<4x10xf32>, %dg: memref<10xf32>, %db: memref<10xf32>, %j: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %dgain_p = tile.load %dgain, %zero, %j : (memref<4x10xf32>, index, index) -> !tile.block<4x4xf32>
  %dgain_s = tile.reduce %dgain_p {axis = 0 : i64, kind = "sum"} : (!tile.block<4x4xf32>) -> !tile.block<1x4xf32>
  tile.store %dgain_s, %dg, %j {col = 0 : i64, row = -1 : i64} : (!tile.block<1x4xf32>, memref<10xf32>, index) -> ()
  %dbias_p = tile.load %dbias, %zero, %j : (memref<4x10xf32>, index, index) -> !tile.block<4x4xf32>
  %dbias_s = tile.reduce %dbias_p {axis = 0 : i64, kind = "sum"} : (!tile.block<4x4xf32>) -> !tile.block<1x4xf32>
  tile.store %dbias_s, %db, %j {col = 0 : i64, row = -1 : i64} : (!tile.block<1x4xf32>, memref<10xf32>, index) -> ()
  tile.end
}
