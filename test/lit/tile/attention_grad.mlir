// RUN: bluc opt %s | FileCheck %s
// Causal attention backward with grouped queries: a grid point owns one head of keys and values and walks over its blocks; for each it goes
// over the queries of the group from the diagonal on, recomputing the probabilities from lse. dk and dv are carried by the loops, dq is summed
// in scratch memory. No matrix of queries by keys exists.

// CHECK-LABEL: tile.kernel @attention_grad
// CHECK-COUNT-3: scf.for
// CHECK:         tile.exp
tile.kernel @attention_grad attributes {grid = array<i64: 2, 2>, outs = 3 : i64, steps = array<i64: 1, 1>} (%q: memref<2x4x13x6xf32>, %k: memref<2x2x13x6xf32>, %v: memref<2x2x13x6xf32>, %o: memref<2x4x13x6xf32>, %lse: memref<2x4x13xf32>, %do: memref<2x4x13x6xf32>, %dq: memref<2x4x13x6xf32>, %dk: memref<2x2x13x6xf32>, %dv: memref<2x2x13x6xf32>, %b: index, %hk: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %group = arith.constant {value = 2 : index} : () -> index
  %nq = arith.constant {value = 13 : index} : () -> index
  %nk = arith.constant {value = 13 : index} : () -> index
  %bq = arith.constant {value = 4 : index} : () -> index
  %bk = arith.constant {value = 5 : index} : () -> index
  %d = arith.constant {value = 6 : index} : () -> index
  %scale = tile.constant {value = 0.4 : f64} : () -> !tile.block<1x1xf32>
  %zerof = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %h0 = arith.muli %hk, %group : (index, index) -> index
  %dqs = tile.scratch : () -> memref<2x13x6xf32>
  %delta = tile.scratch : () -> memref<2x13x1xf32>
  // delta = rowsum(do * o), and dq starts at 0
  scf.for %zero, %group, %one : (index, index, index) -> () (%g: index) {
    %h = arith.addi %h0, %g : (index, index) -> index
    scf.for %zero, %nq, %bq : (index, index, index) -> () (%i: index) {
      %dob = tile.load %do, %b, %h, %i, %zero : (memref<2x4x13x6xf32>, index, index, index, index) -> !tile.block<4x6xf32>
      %ob = tile.load %o, %b, %h, %i, %zero : (memref<2x4x13x6xf32>, index, index, index, index) -> !tile.block<4x6xf32>
      %doo = tile.mul %dob, %ob : (!tile.block<4x6xf32>, !tile.block<4x6xf32>) -> !tile.block<4x6xf32>
      %rows = tile.reduce %doo {axis = 1 : i64, kind = "sum"} : (!tile.block<4x6xf32>) -> !tile.block<4x1xf32>
      tile.store %rows, %delta, %g, %i, %zero : (!tile.block<4x1xf32>, memref<2x13x1xf32>, index, index, index) -> ()
      %m_left = arith.subi %nq, %i : (index, index) -> index
      %m = arith.minsi %m_left, %bq : (index, index) -> index
      %z = tile.broadcast %zerof, %m, %d : (!tile.block<1x1xf32>, index, index) -> !tile.block<4x6xf32>
      tile.store %z, %dqs, %g, %i, %zero : (!tile.block<4x6xf32>, memref<2x13x6xf32>, index, index, index) -> ()
      scf.yield
    }
    scf.yield
  }
  scf.for %zero, %nk, %bk : (index, index, index) -> () (%j: index) {
    %kb = tile.load %k, %b, %hk, %j, %zero : (memref<2x2x13x6xf32>, index, index, index, index) -> !tile.block<5x6xf32>
    %vb = tile.load %v, %b, %hk, %j, %zero : (memref<2x2x13x6xf32>, index, index, index, index) -> !tile.block<5x6xf32>
    %n_left = arith.subi %nk, %j : (index, index) -> index
    %n = arith.minsi %n_left, %bk : (index, index) -> index
    %kz = tile.broadcast %zerof, %n, %d : (!tile.block<1x1xf32>, index, index) -> !tile.block<5x6xf32>
    %cols = tile.iota %j, %n {axis = 1 : i64} : (index, index) -> !tile.block<1x5xi32>
    // the first block of queries that sees a key of this block
    %diag = arith.divsi %j, %bq : (index, index) -> index
    %first = arith.muli %diag, %bq : (index, index) -> index
    %sums:2 = scf.for %zero, %group, %one, %kz, %kz : (index, index, index, !tile.block<5x6xf32>, !tile.block<5x6xf32>) -> (!tile.block<5x6xf32>, !tile.block<5x6xf32>) (%g2: index, %dk0: !tile.block<5x6xf32>, %dv0: !tile.block<5x6xf32>) {
      %h2 = arith.addi %h0, %g2 : (index, index) -> index
      %inner:2 = scf.for %first, %nq, %bq, %dk0, %dv0 : (index, index, index, !tile.block<5x6xf32>, !tile.block<5x6xf32>) -> (!tile.block<5x6xf32>, !tile.block<5x6xf32>) (%i2: index, %dk1: !tile.block<5x6xf32>, %dv1: !tile.block<5x6xf32>) {
        %qb = tile.load %q, %b, %h2, %i2, %zero : (memref<2x4x13x6xf32>, index, index, index, index) -> !tile.block<4x6xf32>
        %dob2 = tile.load %do, %b, %h2, %i2, %zero : (memref<2x4x13x6xf32>, index, index, index, index) -> !tile.block<4x6xf32>
        %lseb = tile.load %lse, %b, %h2, %i2 {col = -1 : i64, row = 2 : i64} : (memref<2x4x13xf32>, index, index, index) -> !tile.block<4x1xf32>
        %deltab = tile.load %delta, %g2, %i2, %zero : (memref<2x13x1xf32>, index, index, index) -> !tile.block<4x1xf32>
        %s = tile.dot %qb, %kb {tb = true} : (!tile.block<4x6xf32>, !tile.block<5x6xf32>) -> !tile.block<4x5xf32>
        %ss = tile.mul %s, %scale : (!tile.block<4x5xf32>, !tile.block<1x1xf32>) -> !tile.block<4x5xf32>
        %sl = tile.sub %ss, %lseb : (!tile.block<4x5xf32>, !tile.block<4x1xf32>) -> !tile.block<4x5xf32>
        %e = tile.exp %sl : (!tile.block<4x5xf32>) -> !tile.block<4x5xf32>
        %m2_left = arith.subi %nq, %i2 : (index, index) -> index
        %m2 = arith.minsi %m2_left, %bq : (index, index) -> index
        %rowsi = tile.iota %i2, %m2 {axis = 0 : i64} : (index, index) -> !tile.block<4x1xi32>
        %visible = tile.compare %rowsi, %cols {predicate = "ge"} : (!tile.block<4x1xi32>, !tile.block<1x5xi32>) -> !tile.block<4x5xi1>
        %p = tile.select %visible, %e, %zerof : (!tile.block<4x5xi1>, !tile.block<4x5xf32>, !tile.block<1x1xf32>) -> !tile.block<4x5xf32>
        %dv2 = tile.dot %p, %dob2, %dv1 {ta = true} : (!tile.block<4x5xf32>, !tile.block<4x6xf32>, !tile.block<5x6xf32>) -> !tile.block<5x6xf32>
        %dp = tile.dot %dob2, %vb {tb = true} : (!tile.block<4x6xf32>, !tile.block<5x6xf32>) -> !tile.block<4x5xf32>
        %dpd = tile.sub %dp, %deltab : (!tile.block<4x5xf32>, !tile.block<4x1xf32>) -> !tile.block<4x5xf32>
        %pd = tile.mul %p, %dpd : (!tile.block<4x5xf32>, !tile.block<4x5xf32>) -> !tile.block<4x5xf32>
        %ds = tile.mul %pd, %scale : (!tile.block<4x5xf32>, !tile.block<1x1xf32>) -> !tile.block<4x5xf32>
        %dk2 = tile.dot %ds, %qb, %dk1 {ta = true} : (!tile.block<4x5xf32>, !tile.block<4x6xf32>, !tile.block<5x6xf32>) -> !tile.block<5x6xf32>
        %dqb = tile.load %dqs, %g2, %i2, %zero : (memref<2x13x6xf32>, index, index, index) -> !tile.block<4x6xf32>
        %dq2 = tile.dot %ds, %kb, %dqb : (!tile.block<4x5xf32>, !tile.block<5x6xf32>, !tile.block<4x6xf32>) -> !tile.block<4x6xf32>
        tile.store %dq2, %dqs, %g2, %i2, %zero : (!tile.block<4x6xf32>, memref<2x13x6xf32>, index, index, index) -> ()
        scf.yield %dk2, %dv2 : (!tile.block<5x6xf32>, !tile.block<5x6xf32>) -> ()
      }
      scf.yield %inner#0, %inner#1 : (!tile.block<5x6xf32>, !tile.block<5x6xf32>) -> ()
    }
    tile.store %sums#0, %dk, %b, %hk, %j, %zero : (!tile.block<5x6xf32>, memref<2x2x13x6xf32>, index, index, index, index) -> ()
    tile.store %sums#1, %dv, %b, %hk, %j, %zero : (!tile.block<5x6xf32>, memref<2x2x13x6xf32>, index, index, index, index) -> ()
    scf.yield
  }
  scf.for %zero, %group, %one : (index, index, index) -> () (%g3: index) {
    %h3 = arith.addi %h0, %g3 : (index, index) -> index
    scf.for %zero, %nq, %bq : (index, index, index) -> () (%i3: index) {
      %done = tile.load %dqs, %g3, %i3, %zero : (memref<2x13x6xf32>, index, index, index) -> !tile.block<4x6xf32>
      tile.store %done, %dq, %b, %h3, %i3, %zero : (!tile.block<4x6xf32>, memref<2x4x13x6xf32>, index, index, index, index) -> ()
      scf.yield
    }
    scf.yield
  }
  tile.end
}
