// RUN: bluc opt %s --pass-pipeline='builtin.module(host)' | FileCheck %s
// What shares memory is read where it is used and written where it is computed, as long as that comes in this order; else it is read and written where the kernel does.

// CHECK-LABEL: host.kernel @in_order
// CHECK-NOT:     host.copy
// CHECK:         host.end
tile.kernel @in_order attributes {grid = array<i64>, outs = 1 : i64, steps = array<i64>, tile.shared = array<i64: 0, 1>} (%x: memref<f32>, %y: memref<f32>) {
  %a = tile.load %x : (memref<f32>) -> !tile.block<1x1xf32>
  %b = tile.sqrt %a : (!tile.block<1x1xf32>) -> !tile.block<1x1xf32>
  tile.store %b, %y : (!tile.block<1x1xf32>, memref<f32>) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @used_later
// CHECK:         %[[X:.*]] = host.window %arg0
// CHECK:         host.copy %[[X]], %[[COPY:.*]] :
// CHECK:         host.unary %[[COPY]]
// CHECK:         host.binary %[[COPY]]
// CHECK:         host.end
tile.kernel @used_later attributes {grid = array<i64>, outs = 2 : i64, steps = array<i64>, tile.shared = array<i64: 0, 1>} (%x: memref<f32>, %y: memref<f32>, %z: memref<f32>) {
  %a = tile.load %x : (memref<f32>) -> !tile.block<1x1xf32>
  %b = tile.sqrt %a : (!tile.block<1x1xf32>) -> !tile.block<1x1xf32>
  tile.store %b, %y : (!tile.block<1x1xf32>, memref<f32>) -> ()
  %c = tile.add %a, %b : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
  tile.store %c, %z : (!tile.block<1x1xf32>, memref<f32>) -> ()
  tile.end
}

// A zero that a sum begins with stays a zero where the loop reads it.
// CHECK-LABEL: host.kernel @zero_in_loop
// CHECK:         %[[ZERO:.*]] = host.scratch
// CHECK-NEXT:    host.fill %[[ZERO]] {value = 0.0e+00
// CHECK:         host.copy %[[ZERO]], %[[SUM:.*]] :
// CHECK:         scf.for
// CHECK:         host.binary {{.*}}, %[[ZERO]], {{.*}} {fn = "max"}
// CHECK:         host.binary %[[SUM]]
tile.kernel @zero_in_loop attributes {grid = array<i64>, outs = 1 : i64, steps = array<i64>} (%x: memref<6x2xf32>, %y: memref<f32>) {
  %none = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %six = arith.constant {value = 6 : index} : () -> index
  %zero = tile.constant {value = 0.0e+00 : f64} : () -> !tile.block<1x1xf32>
  %sum = scf.for %none, %six, %one, %zero : (index, index, index, !tile.block<1x1xf32>) -> !tile.block<1x1xf32> (%i: index, %s: !tile.block<1x1xf32>) {
    %a = tile.load %x, %i, %none {row = -1 : i64} : (memref<6x2xf32>, index, index) -> !tile.block<1x2xf32>
    %b = tile.max %a, %zero : (!tile.block<1x2xf32>, !tile.block<1x1xf32>) -> !tile.block<1x2xf32>
    %c = tile.reduce %b {axis = 1 : i64, kind = "sum"} : (!tile.block<1x2xf32>) -> !tile.block<1x1xf32>
    %d = tile.add %s, %c : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>
    scf.yield %d : (!tile.block<1x1xf32>) -> ()
  }
  tile.store %sum, %y : (!tile.block<1x1xf32>, memref<f32>) -> ()
  tile.end
}
