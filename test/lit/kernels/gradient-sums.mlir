// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// Rows that a table's gradient has besides a product's go to where that is added to the sum.
// CHECK-LABEL: func.func @tied
// CHECK:         %[[P:.*]] = tile.launch %{{.*}} {kernel = @gemm_tn_accumulate_1000x256x128}
// CHECK:         %[[R:.*]] = tile.launch %{{.*}}, %[[P]] {kernel = @scatter_into_128x256_to_1000}
// CHECK-NOT:     tile.launch
// CHECK:         func.return %[[R]]
func.func @tied(%sum: tensor<1000x256xf32>, %dl: tensor<128x1000xf32>, %x: tensor<128x256xf32>, %dy: tensor<128x256xf32>, %tokens: tensor<128xi32>, %first: tensor<i1>) -> tensor<1000x256xf32> {
  %0 = blu.dot %dl, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<128x1000xf32>, tensor<128x256xf32>) -> tensor<1000x256xf32>
  %1 = blu.scatter_add %dy, %tokens {rows = 1000 : i64} : (tensor<128x256xf32>, tensor<128xi32>) -> tensor<1000x256xf32>
  %2 = blu.add %0, %1 : (tensor<1000x256xf32>, tensor<1000x256xf32>) -> tensor<1000x256xf32>
  %3 = blu.accumulate %sum, %2, %first : (tensor<1000x256xf32>, tensor<1000x256xf32>, tensor<i1>) -> tensor<1000x256xf32>
  func.return %3 : (tensor<1000x256xf32>) -> ()
}

// A table that is only looked up begins as what was summed, or zeros.
// CHECK-LABEL: func.func @looked_up
// CHECK:         %[[T:.*]] = tile.launch %{{.*}} {kernel = @select_256000}
// CHECK:         tile.launch %{{.*}} {kernel = @scatter_into_128x256_to_1000}
func.func @looked_up(%sum: tensor<1000x256xf32>, %dy: tensor<128x256xf32>, %tokens: tensor<128xi32>, %first: tensor<i1>) -> tensor<1000x256xf32> {
  %0 = blu.scatter_add %dy, %tokens {rows = 1000 : i64} : (tensor<128x256xf32>, tensor<128xi32>) -> tensor<1000x256xf32>
  %1 = blu.accumulate %sum, %0, %first : (tensor<1000x256xf32>, tensor<1000x256xf32>, tensor<i1>) -> tensor<1000x256xf32>
  func.return %1 : (tensor<1000x256xf32>) -> ()
}
