// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// A large constant that must be in memory is written by a kernel; it is not part of the program.

// CHECK-LABEL: func.func @zeros
// CHECK-NOT:     blu.constant
// CHECK:         tile.launch {kernel = @fill_786432} : () -> tensor<786432xf32>
func.func @zeros() -> tensor<1024x768xf32> {
  %0 = blu.constant {value = dense<0.0e+00> : tensor<1024x768xf32>} : () -> tensor<1024x768xf32>
  func.return %0 : (tensor<1024x768xf32>) -> ()
}
