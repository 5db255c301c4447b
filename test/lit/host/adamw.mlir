// RUN: bluc opt %s --pass-pipeline='builtin.module(host)' | FileCheck %s
// What a step of the optimizer is made of is one instruction, in place or not, with and without decay; not where something
// else sees what is computed in between, nor where an output takes the place of what is read later.

tile.kernel @whole attributes {grid = array<i64: 128>, outs = 3 : i64, steps = array<i64: 64>, tile.shared = array<i64: 0, 5, 1, 6, 2, 7>} (%p: memref<128xf32>, %m: memref<128xf32>, %v: memref<128xf32>, %g: memref<128xf32>, %lr: memref<f32>, %np: memref<128xf32>, %nm: memref<128xf32>, %nv: memref<128xf32>, %i: index) {
  %b1 = tile.constant {value = 0.9 : f64} : () -> !tile.block<1x1xf32>
  %a1 = tile.constant {value = 0.1 : f64} : () -> !tile.block<1x1xf32>
  %b2 = tile.constant {value = 0.95 : f64} : () -> !tile.block<1x1xf32>
  %a2 = tile.constant {value = 0.05 : f64} : () -> !tile.block<1x1xf32>
  %eps = tile.constant {value = 1.0e-8 : f64} : () -> !tile.block<1x1xf32>
  %s = tile.load %lr : (memref<f32>) -> !tile.block<1x1xf32>
  %m0 = tile.load %m, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %m1 = tile.mul %m0, %b1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g0 = tile.load %g, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %g1 = tile.mul %g0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g2 = tile.mul %g1, %a1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %m2 = tile.add %m1, %g2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %m2, %nm, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %v0 = tile.load %v, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %v1 = tile.mul %v0, %b2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g3 = tile.mul %g1, %g1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %g4 = tile.mul %g3, %a2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %v2 = tile.add %v1, %g4 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %v2, %nv, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %p0 = tile.load %p, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %p1 = tile.mul %p0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %p2 = tile.sub %p0, %p1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %r0 = tile.sqrt %v2 : (!tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %r1 = tile.mul %r0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %r2 = tile.add %r1, %eps : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %d = tile.div %m2, %r2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %d1 = tile.mul %d, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %p3 = tile.sub %p2, %d1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %p3, %np, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @whole
// CHECK-NOT:     host.fma
// CHECK:         host.adamw %{{.*}} : (!host.block<1x64xf32>, !host.block<1x64xf32>, !host.block<1x64xf32>, !host.block<1x64xf32>, !host.block<1x1xf32>, !host.block<1x1xf32>, !host.block<1x1xf32>, !host.block<1x1xf32>, !host.block<1x1xf32>, !host.block<1x1xf32>, !host.block<1x1xf32>, !host.block<1x1xf32>, !host.block<1x64xf32>, !host.block<1x64xf32>, !host.block<1x64xf32>, !host.block<1x1xf32>)
// CHECK-NEXT:    host.end

tile.kernel @without_decay attributes {grid = array<i64: 128>, outs = 3 : i64, steps = array<i64: 64>} (%p: memref<128xf32>, %m: memref<128xf32>, %v: memref<128xf32>, %g: memref<128xf32>, %lr: memref<f32>, %np: memref<128xf32>, %nm: memref<128xf32>, %nv: memref<128xf32>, %i: index) {
  %b1 = tile.constant {value = 0.9 : f64} : () -> !tile.block<1x1xf32>
  %a1 = tile.constant {value = 0.1 : f64} : () -> !tile.block<1x1xf32>
  %b2 = tile.constant {value = 0.95 : f64} : () -> !tile.block<1x1xf32>
  %a2 = tile.constant {value = 0.05 : f64} : () -> !tile.block<1x1xf32>
  %eps = tile.constant {value = 1.0e-8 : f64} : () -> !tile.block<1x1xf32>
  %s = tile.load %lr : (memref<f32>) -> !tile.block<1x1xf32>
  %m0 = tile.load %m, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %m1 = tile.mul %m0, %b1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g0 = tile.load %g, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %g1 = tile.mul %g0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g2 = tile.mul %g1, %a1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %m2 = tile.add %m1, %g2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %m2, %nm, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %v0 = tile.load %v, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %v1 = tile.mul %v0, %b2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g3 = tile.mul %g1, %g1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %g4 = tile.mul %g3, %a2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %v2 = tile.add %v1, %g4 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %v2, %nv, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %p0 = tile.load %p, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %r0 = tile.sqrt %v2 : (!tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %r1 = tile.mul %r0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %r2 = tile.add %r1, %eps : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %d = tile.div %m2, %r2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %d1 = tile.mul %d, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %p3 = tile.sub %p0, %d1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %p3, %np, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @without_decay
// CHECK:         host.adamw %{{.*}} : ({{.*}}, !host.block<1x64xf32>, !host.block<1x64xf32>, !host.block<1x64xf32>) -> ()
// CHECK-NEXT:    host.end

tile.kernel @seen attributes {grid = array<i64: 128>, outs = 4 : i64, steps = array<i64: 64>} (%p: memref<128xf32>, %m: memref<128xf32>, %v: memref<128xf32>, %g: memref<128xf32>, %lr: memref<f32>, %np: memref<128xf32>, %nm: memref<128xf32>, %nv: memref<128xf32>, %extra: memref<128xf32>, %i: index) {
  %b1 = tile.constant {value = 0.9 : f64} : () -> !tile.block<1x1xf32>
  %a1 = tile.constant {value = 0.1 : f64} : () -> !tile.block<1x1xf32>
  %b2 = tile.constant {value = 0.95 : f64} : () -> !tile.block<1x1xf32>
  %a2 = tile.constant {value = 0.05 : f64} : () -> !tile.block<1x1xf32>
  %eps = tile.constant {value = 1.0e-8 : f64} : () -> !tile.block<1x1xf32>
  %s = tile.load %lr : (memref<f32>) -> !tile.block<1x1xf32>
  %m0 = tile.load %m, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %m1 = tile.mul %m0, %b1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g0 = tile.load %g, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %g1 = tile.mul %g0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g2 = tile.mul %g1, %a1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %m2 = tile.add %m1, %g2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %m2, %nm, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %v0 = tile.load %v, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %v1 = tile.mul %v0, %b2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g3 = tile.mul %g1, %g1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %g4 = tile.mul %g3, %a2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %v2 = tile.add %v1, %g4 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %v2, %nv, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %p0 = tile.load %p, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %p1 = tile.mul %p0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %p2 = tile.sub %p0, %p1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %r0 = tile.sqrt %v2 : (!tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %r0, %extra, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %r1 = tile.mul %r0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %r2 = tile.add %r1, %eps : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %d = tile.div %m2, %r2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %d1 = tile.mul %d, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %p3 = tile.sub %p2, %d1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %p3, %np, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @seen
// CHECK-NOT:     host.adamw
// CHECK:         host.unary %{{.*}}, %{{.*}} {fn = "sqrt"}
// CHECK-NOT:     host.adamw
// CHECK:         host.end

tile.kernel @overwritten attributes {grid = array<i64: 128>, outs = 3 : i64, steps = array<i64: 64>, tile.shared = array<i64: 0, 6>} (%p: memref<128xf32>, %m: memref<128xf32>, %v: memref<128xf32>, %g: memref<128xf32>, %lr: memref<f32>, %np: memref<128xf32>, %nm: memref<128xf32>, %nv: memref<128xf32>, %i: index) {
  %b1 = tile.constant {value = 0.9 : f64} : () -> !tile.block<1x1xf32>
  %a1 = tile.constant {value = 0.1 : f64} : () -> !tile.block<1x1xf32>
  %b2 = tile.constant {value = 0.95 : f64} : () -> !tile.block<1x1xf32>
  %a2 = tile.constant {value = 0.05 : f64} : () -> !tile.block<1x1xf32>
  %eps = tile.constant {value = 1.0e-8 : f64} : () -> !tile.block<1x1xf32>
  %s = tile.load %lr : (memref<f32>) -> !tile.block<1x1xf32>
  %m0 = tile.load %m, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %m1 = tile.mul %m0, %b1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g0 = tile.load %g, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %g1 = tile.mul %g0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g2 = tile.mul %g1, %a1 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %m2 = tile.add %m1, %g2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %m2, %nm, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %v0 = tile.load %v, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %v1 = tile.mul %v0, %b2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %g3 = tile.mul %g1, %g1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %g4 = tile.mul %g3, %a2 : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %v2 = tile.add %v1, %g4 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %v2, %nv, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  %p0 = tile.load %p, %i : (memref<128xf32>, index) -> !tile.block<1x64xf32>
  %p1 = tile.mul %p0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %p2 = tile.sub %p0, %p1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %r0 = tile.sqrt %v2 : (!tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %r1 = tile.mul %r0, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %r2 = tile.add %r1, %eps : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %d = tile.div %m2, %r2 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  %d1 = tile.mul %d, %s : (!tile.block<1x64xf32>, !tile.block<1x1xf32>) -> !tile.block<1x64xf32>
  %p3 = tile.sub %p2, %d1 : (!tile.block<1x64xf32>, !tile.block<1x64xf32>) -> !tile.block<1x64xf32>
  tile.store %p3, %np, %i : (!tile.block<1x64xf32>, memref<128xf32>, index) -> ()
  tile.end
}

// CHECK-LABEL: host.kernel @overwritten
// CHECK-NOT:     host.adamw
// CHECK:         host.end
