// RUN: bluc opt %s | FileCheck %s
// RUN: bluc opt %s --elide-above=-1 | FileCheck %s --check-prefix=WHOLE
// Large constants are left out of what is printed unless asked for; splats are short anyway.

// CHECK: dense_resource<__elided__> : tensor<17xi8>
// CHECK: dense<1> : tensor<99xi8>
// CHECK: dense<[1, 2]> : tensor<2xi8>
// WHOLE: dense<[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]> : tensor<17xi8>
func.func @constants() {
  %a = blu.constant {value = dense<[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]> : tensor<17xi8>} : () -> tensor<17xi8>
  %b = blu.constant {value = dense<1> : tensor<99xi8>} : () -> tensor<99xi8>
  %c = blu.constant {value = dense<[1, 2]> : tensor<2xi8>} : () -> tensor<2xi8>
  func.return
}
