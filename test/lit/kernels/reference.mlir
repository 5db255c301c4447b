// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// For each kernel, the nested module @reference holds the function it implements.

// CHECK-LABEL: tile.kernel @exp_mul_4800
// CHECK-LABEL: builtin.module @reference
// CHECK-NEXT:    func.func @exp_mul_4800(%[[X:.*]]: tensor<4800xf32>) -> tensor<4800xf32>
// CHECK-NEXT:      %[[R:.*]] = blu.reshape %[[X]]
// CHECK-NEXT:      %[[E:.*]] = blu.exp %[[R]]
// CHECK-NEXT:      %[[M:.*]] = blu.mul %[[E]], %[[R]]
// CHECK-NEXT:      %[[Y:.*]] = blu.reshape %[[M]]
// CHECK-NEXT:      func.return %[[Y]]
func.func @f(%x: tensor<60x80xf32>) -> tensor<60x80xf32> {
  %0 = blu.exp %x : (tensor<60x80xf32>) -> tensor<60x80xf32>
  %1 = blu.mul %0, %x : (tensor<60x80xf32>, tensor<60x80xf32>) -> tensor<60x80xf32>
  func.return %1 : (tensor<60x80xf32>) -> ()
}
