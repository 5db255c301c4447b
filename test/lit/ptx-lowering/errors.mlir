// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a})' | FileCheck %s
// An index out of range lowers an error record, whose address is the last parameter, and row 0 is read in its place.

tile.kernel @rows attributes {grid = array<i64: 8>, outs = 1 : i64, steps = array<i64: 8>} (%t: memref<50x32xf32>, %n: memref<8xi32>, %y: memref<8x32xf32>, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %a = tile.load %n, %i {row = 0 : i64, col = -1 : i64} : (memref<8xi32>, index) -> !tile.block<8x1xi32>
  %b = tile.gather %t, %a, %i, %zero : (memref<50x32xf32>, !tile.block<8x1xi32>, index, index) -> !tile.block<8x32xf32>
  tile.store %b, %y, %i, %zero : (!tile.block<8x32xf32>, memref<8x32xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: ptx.kernel @rows
// CHECK-SAME:    launch.errors = [{extent = 50 : i64, what = "the table has %d rows"}]
// CHECK-SAME:    %[[ERRORS:arg3]]: i64
// CHECK:         %[[N:.*]] = ptx.ld {{.*}} -> i32
// CHECK:         %[[BAD:.*]] = ptx.setp %[[N]], %{{.*}} {is = "hs"}
// CHECK:         %[[SAFE:.*]] = ptx.selp %[[BAD]], %{{.*}}, %[[N]]
// CHECK:         %[[RECORD:.*]] = ptx.join %[[N]], %{{.*}}
// CHECK:         ptx.red_min %[[ERRORS]], %[[RECORD]], %[[BAD]]
// CHECK:         ptx.mul_wide %[[SAFE]]
func.func @f(%t: tensor<50x32xf32> {blu.input = "t"}, %n: tensor<8xi32> {blu.input = "n"}) -> (tensor<8x32xf32> {blu.output = "y"}) {
  %y = tile.launch %t, %n {kernel = @rows} : (tensor<50x32xf32>, tensor<8xi32>) -> tensor<8x32xf32>
  func.return %y : (tensor<8x32xf32>) -> ()
}
