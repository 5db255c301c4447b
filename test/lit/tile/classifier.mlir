// RUN: bluc opt %s | FileCheck %s
// The classifier: logits = h w^T, the sum of cross entropies over the rows whose target is not -1, and both gradients, with the logits of one
// block of rows alone in memory. The first kernel goes over w twice for each block of rows: for lse, then for dh. The second goes over the rows
// for each block of w, recomputing the probabilities from lse.

// CHECK-LABEL: tile.kernel @classifier_rows
// CHECK:         tile.scratch : () -> memref<4x23xf32>
// CHECK:         tile.pick {{.*}} {ignore = -1 : i64}
tile.kernel @classifier_rows attributes {grid = array<i64: 11>, outs = 4 : i64, steps = array<i64: 4>} (%h: memref<11x6xf32>, %w: memref<23x6xf32>, %targets: memref<11xi32>, %loss: memref<3xf32>, %count: memref<3xf32>, %lse: memref<11xf32>, %dh: memref<11x6xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %rows = arith.constant {value = 4 : index} : () -> index
  %nr = arith.constant {value = 11 : index} : () -> index
  %nv = arith.constant {value = 23 : index} : () -> index
  %bv = arith.constant {value = 8 : index} : () -> index
  %c = arith.constant {value = 6 : index} : () -> index
  %lowest = tile.constant {value = -1.0e+30 : f64} : () -> !tile.block<1x1xf32>
  %zerof = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %onef = tile.constant {value = 1.0 : f64} : () -> !tile.block<1x1xf32>
  %ignore = tile.constant {value = -1.0 : f64} : () -> !tile.block<1x1xi32>
  %m_left = arith.subi %nr, %i : (index, index) -> index
  %m = arith.minsi %m_left, %rows : (index, index) -> index
  %logits = tile.scratch : () -> memref<4x23xf32>
  // the last block of rows is low: it uses the last rows of scratch memory, so that loads and stores there are clipped to as many
  %at = arith.subi %rows, %m : (index, index) -> index
  %t = tile.load %targets, %i {col = -1 : i64, row = 0 : i64} : (memref<11xi32>, index) -> !tile.block<4x1xi32>
  %counts = tile.compare %t, %ignore {predicate = "ne"} : (!tile.block<4x1xi32>, !tile.block<1x1xi32>) -> !tile.block<4x1xi1>
  %onei = arith.constant {value = 1 : index} : () -> index
  %max0 = tile.broadcast %lowest, %m, %onei : (!tile.block<1x1xf32>, index, index) -> !tile.block<4x1xf32>
  %sum0 = tile.broadcast %zerof, %m, %onei : (!tile.block<1x1xf32>, index, index) -> !tile.block<4x1xf32>
  // online softmax: the sum so far is rescaled when the maximum grows
  %online:2 = scf.for %zero, %nv, %bv, %max0, %sum0 : (index, index, index, !tile.block<4x1xf32>, !tile.block<4x1xf32>) -> (!tile.block<4x1xf32>, !tile.block<4x1xf32>) (%j: index, %max1: !tile.block<4x1xf32>, %sum1: !tile.block<4x1xf32>) {
    %z = tile.contract %h, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<11x6xf32>, memref<23x6xf32>, index, index) -> !tile.block<4x8xf32> {}
    tile.store %z, %logits, %at, %j : (!tile.block<4x8xf32>, memref<4x23xf32>, index, index) -> ()
    %zmax = tile.reduce %z {axis = 1 : i64, kind = "max"} : (!tile.block<4x8xf32>) -> !tile.block<4x1xf32>
    %max2 = tile.max %max1, %zmax : (!tile.block<4x1xf32>, !tile.block<4x1xf32>) -> !tile.block<4x1xf32>
    %shrink = tile.sub %max1, %max2 : (!tile.block<4x1xf32>, !tile.block<4x1xf32>) -> !tile.block<4x1xf32>
    %factor = tile.exp %shrink : (!tile.block<4x1xf32>) -> !tile.block<4x1xf32>
    %kept = tile.mul %sum1, %factor : (!tile.block<4x1xf32>, !tile.block<4x1xf32>) -> !tile.block<4x1xf32>
    %shifted = tile.sub %z, %max2 : (!tile.block<4x8xf32>, !tile.block<4x1xf32>) -> !tile.block<4x8xf32>
    %e = tile.exp %shifted : (!tile.block<4x8xf32>) -> !tile.block<4x8xf32>
    %new = tile.reduce %e {axis = 1 : i64, kind = "sum"} : (!tile.block<4x8xf32>) -> !tile.block<4x1xf32>
    %sum2 = tile.add %kept, %new : (!tile.block<4x1xf32>, !tile.block<4x1xf32>) -> !tile.block<4x1xf32>
    scf.yield %max2, %sum2 : (!tile.block<4x1xf32>, !tile.block<4x1xf32>) -> ()
  }
  %logsum = tile.log %online#1 : (!tile.block<4x1xf32>) -> !tile.block<4x1xf32>
  %l = tile.add %online#0, %logsum : (!tile.block<4x1xf32>, !tile.block<4x1xf32>) -> !tile.block<4x1xf32>
  tile.store %l, %lse, %i {col = -1 : i64, row = 0 : i64} : (!tile.block<4x1xf32>, memref<11xf32>, index) -> ()
  %right = tile.pick %logits, %t, %i, %at {ignore = -1 : i64} : (memref<4x23xf32>, !tile.block<4x1xi32>, index, index) -> !tile.block<4x1xf32>
  %nll = tile.sub %l, %right : (!tile.block<4x1xf32>, !tile.block<4x1xf32>) -> !tile.block<4x1xf32>
  %nll_counted = tile.select %counts, %nll, %zerof : (!tile.block<4x1xi1>, !tile.block<4x1xf32>, !tile.block<1x1xf32>) -> !tile.block<4x1xf32>
  %ones = tile.select %counts, %onef, %zerof : (!tile.block<4x1xi1>, !tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<4x1xf32>
  %loss_sum = tile.reduce %nll_counted {axis = 0 : i64, kind = "sum"} : (!tile.block<4x1xf32>) -> !tile.block<1x1xf32>
  %count_sum = tile.reduce %ones {axis = 0 : i64, kind = "sum"} : (!tile.block<4x1xf32>) -> !tile.block<1x1xf32>
  %panel = arith.divsi %i, %rows : (index, index) -> index
  tile.store %loss_sum, %loss, %panel {col = -1 : i64, row = -1 : i64} : (!tile.block<1x1xf32>, memref<3xf32>, index) -> ()
  tile.store %count_sum, %count, %panel {col = -1 : i64, row = -1 : i64} : (!tile.block<1x1xf32>, memref<3xf32>, index) -> ()
  %dh0 = tile.broadcast %zerof, %m, %c : (!tile.block<1x1xf32>, index, index) -> !tile.block<4x6xf32>
  %dh_sum = scf.for %zero, %nv, %bv, %dh0 : (index, index, index, !tile.block<4x6xf32>) -> !tile.block<4x6xf32> (%j2: index, %dh1: !tile.block<4x6xf32>) {
    %z2 = tile.load %logits, %at, %j2 : (memref<4x23xf32>, index, index) -> !tile.block<4x8xf32>
    %zl = tile.sub %z2, %l : (!tile.block<4x8xf32>, !tile.block<4x1xf32>) -> !tile.block<4x8xf32>
    %p = tile.exp %zl : (!tile.block<4x8xf32>) -> !tile.block<4x8xf32>
    %n_left = arith.subi %nv, %j2 : (index, index) -> index
    %n = arith.minsi %n_left, %bv : (index, index) -> index
    %classes = tile.iota %j2, %n {axis = 1 : i64} : (index, index) -> !tile.block<1x8xi32>
    %hit = tile.compare %classes, %t {predicate = "eq"} : (!tile.block<1x8xi32>, !tile.block<4x1xi32>) -> !tile.block<4x8xi1>
    %p1 = tile.sub %p, %onef : (!tile.block<4x8xf32>, !tile.block<1x1xf32>) -> !tile.block<4x8xf32>
    %dz = tile.select %hit, %p1, %p : (!tile.block<4x8xi1>, !tile.block<4x8xf32>, !tile.block<4x8xf32>) -> !tile.block<4x8xf32>
    %dlogits = tile.select %counts, %dz, %zerof : (!tile.block<4x1xi1>, !tile.block<4x8xf32>, !tile.block<1x1xf32>) -> !tile.block<4x8xf32>
    %wb = tile.load %w, %j2, %zero : (memref<23x6xf32>, index, index) -> !tile.block<8x6xf32>
    %dh2 = tile.dot %dlogits, %wb, %dh1 : (!tile.block<4x8xf32>, !tile.block<8x6xf32>, !tile.block<4x6xf32>) -> !tile.block<4x6xf32>
    scf.yield %dh2 : (!tile.block<4x6xf32>) -> ()
  }
  tile.store %dh_sum, %dh, %i, %zero : (!tile.block<4x6xf32>, memref<11x6xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: tile.kernel @classifier_weights
tile.kernel @classifier_weights attributes {grid = array<i64: 23>, outs = 1 : i64, steps = array<i64: 8>} (%h: memref<11x6xf32>, %w: memref<23x6xf32>, %targets: memref<11xi32>, %lse: memref<11xf32>, %dw: memref<23x6xf32>, %j: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %rows = arith.constant {value = 4 : index} : () -> index
  %nr = arith.constant {value = 11 : index} : () -> index
  %nv = arith.constant {value = 23 : index} : () -> index
  %bv = arith.constant {value = 8 : index} : () -> index
  %c = arith.constant {value = 6 : index} : () -> index
  %zerof = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %onef = tile.constant {value = 1.0 : f64} : () -> !tile.block<1x1xf32>
  %ignore = tile.constant {value = -1.0 : f64} : () -> !tile.block<1x1xi32>
  %nj_left = arith.subi %nv, %j : (index, index) -> index
  %nj = arith.minsi %nj_left, %bv : (index, index) -> index
  %dw0 = tile.broadcast %zerof, %nj, %c : (!tile.block<1x1xf32>, index, index) -> !tile.block<8x6xf32>
  %sum = scf.for %zero, %nr, %rows, %dw0 : (index, index, index, !tile.block<8x6xf32>) -> !tile.block<8x6xf32> (%i: index, %dw1: !tile.block<8x6xf32>) {
    %t = tile.load %targets, %i {col = -1 : i64, row = 0 : i64} : (memref<11xi32>, index) -> !tile.block<4x1xi32>
    %counts = tile.compare %t, %ignore {predicate = "ne"} : (!tile.block<4x1xi32>, !tile.block<1x1xi32>) -> !tile.block<4x1xi1>
    %l = tile.load %lse, %i {col = -1 : i64, row = 0 : i64} : (memref<11xf32>, index) -> !tile.block<4x1xf32>
    %z = tile.contract %h, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<11x6xf32>, memref<23x6xf32>, index, index) -> !tile.block<4x8xf32> {}
    %zl = tile.sub %z, %l : (!tile.block<4x8xf32>, !tile.block<4x1xf32>) -> !tile.block<4x8xf32>
    %p = tile.exp %zl : (!tile.block<4x8xf32>) -> !tile.block<4x8xf32>
    %n_left = arith.subi %nv, %j : (index, index) -> index
    %n = arith.minsi %n_left, %bv : (index, index) -> index
    %classes = tile.iota %j, %n {axis = 1 : i64} : (index, index) -> !tile.block<1x8xi32>
    %hit = tile.compare %classes, %t {predicate = "eq"} : (!tile.block<1x8xi32>, !tile.block<4x1xi32>) -> !tile.block<4x8xi1>
    %p1 = tile.sub %p, %onef : (!tile.block<4x8xf32>, !tile.block<1x1xf32>) -> !tile.block<4x8xf32>
    %dz = tile.select %hit, %p1, %p : (!tile.block<4x8xi1>, !tile.block<4x8xf32>, !tile.block<4x8xf32>) -> !tile.block<4x8xf32>
    %dlogits = tile.select %counts, %dz, %zerof : (!tile.block<4x1xi1>, !tile.block<4x8xf32>, !tile.block<1x1xf32>) -> !tile.block<4x8xf32>
    %hb = tile.load %h, %i, %zero : (memref<11x6xf32>, index, index) -> !tile.block<4x6xf32>
    %dw2 = tile.dot %dlogits, %hb, %dw1 {ta = true} : (!tile.block<4x8xf32>, !tile.block<4x6xf32>, !tile.block<8x6xf32>) -> !tile.block<8x6xf32>
    scf.yield %dw2 : (!tile.block<8x6xf32>) -> ()
  }
  tile.store %sum, %dw, %j, %zero : (!tile.block<8x6xf32>, memref<23x6xf32>, index, index) -> ()
  tile.end
}
