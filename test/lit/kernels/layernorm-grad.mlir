// RUN: bluc opt %s --pass-pipeline='builtin.module(kernels)' | FileCheck %s
// The gradient of a norm reads its inputs once: dx, and the column sums for gain and bias as partial results of panels of rows, which a second kernel adds in order.

// CHECK-LABEL: func.func @grad
// CHECK:         %[[P:.*]]:3 = tile.launch {{.*}} {kernel = @layernorm_grad_512x256} : {{.*}} -> (tensor<512x256xf32>, tensor<8x256xf32>, tensor<8x256xf32>)
// CHECK-NEXT:    tile.launch %[[P]]#1, %[[P]]#2 {kernel = @finish_layernorm_grad_8x256} : {{.*}} -> (tensor<256xf32>, tensor<256xf32>)
// CHECK-NEXT:    func.return

// CHECK-LABEL: tile.kernel @layernorm_grad_512x256
// CHECK:         scf.for
// CHECK:         tile.store
// CHECK-COUNT-2: tile.reduce {{.*}} {axis = 0 : i64, kind = "sum"}
func.func @grad(%x: tensor<512x256xf32>, %g: tensor<256xf32>, %mean: tensor<512xf32>, %rstd: tensor<512xf32>, %dy: tensor<512x256xf32>) -> (tensor<512x256xf32>, tensor<256xf32>, tensor<256xf32>) {
  %0:3 = blu.layernorm_grad %x, %g, %mean, %rstd, %dy : (tensor<512x256xf32>, tensor<256xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512x256xf32>) -> (tensor<512x256xf32>, tensor<256xf32>, tensor<256xf32>)
  func.return %0#0, %0#1, %0#2 : (tensor<512x256xf32>, tensor<256xf32>, tensor<256xf32>) -> ()
}
