// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a candidates=3})' | FileCheck %s
// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a tuning=%S/Inputs/tuning.json})' | FileCheck %s --check-prefix=TUNED
// RUN: not bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_80 tuning=%S/Inputs/tuning.json})' 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not bluc opt %s --pass-pipeline='builtin.module(buffers{align=256},program,ptx{arch=sm_90a tuning=%S/Inputs/damaged.json})' 2>&1 | FileCheck %s --check-prefix=DAMAGED
// A choice between templates is prediction's, or a table's. The kernels that lose can be made beside the one that is launched, each
// of the function that it implements and with what follows it.

// CHECK:      ptx.kernel @linear attributes {
// CHECK-SAME: launch.choices = [{choice = "wgmma bf16 tile={{.*}} split={{.*}}", key = "product bf16 m=128 n=128 k=8192 a=k:8192 b=k:8192 writes=f32"}]
// CHECK:      exec.launch {{.*}}kernel = @linear}
// CHECK:      ptx.kernel @linear.product.candidate1 attributes {
// CHECK-SAME: launch.candidate = {choice = "wgmma bf16 tile={{.*}}", key = "product bf16 m=128 n=128 k=8192 a=k:8192 b=k:8192 writes=f32", of = @linear}
// CHECK-SAME: launch.reference = "linear"
// CHECK-SAME: launch.then = @linear.product.candidate1.step2
// CHECK:      ptx.kernel @linear.product.candidate2 attributes {
// CHECK-NOT:  ptx.kernel @linear.product.candidate3

// TUNED:      builtin.module attributes {blu.tuning = {found = 1 : i64, keys = 1 : i64, sha256 = "{{[0-9a-f]+}}"}}
// TUNED:      ptx.kernel @linear attributes {
// TUNED-SAME: box = array<i64: 64, 256>
// TUNED-NOT:  launch.then
// TUNED-NOT:  ptx.kernel

// OTHER:      error: {{.*}}tuning.json: the table was measured with kernels for sm_90a (on NVIDIA H200), and can't choose among those for sm_80
// DAMAGED:    error: {{.*}}damaged.json:8:5: not a tuning table: a time is 0 microseconds, expected a positive number

tile.kernel @linear attributes {grid = array<i64: 128, 128>, outs = 1 : i64, steps = array<i64: 128, 128>} (%x: memref<128x8192xbf16>, %w: memref<128x8192xbf16>, %b: memref<128xf32>, %y: memref<128x128xf32>, %i: index, %j: index) {
  %p = tile.contract %x, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<128x8192xbf16>, memref<128x8192xbf16>, index, index) -> !tile.block<128x128xf32> {}
  %c = tile.load %b, %j : (memref<128xf32>, index) -> !tile.block<1x128xf32>
  %s = tile.add %p, %c : (!tile.block<128x128xf32>, !tile.block<1x128xf32>) -> !tile.block<128x128xf32>
  tile.store %s, %y, %i, %j : (!tile.block<128x128xf32>, memref<128x128xf32>, index, index) -> ()
  tile.end
}

func.func @f(%x: tensor<128x8192xbf16> {blu.input = "x"}, %w: tensor<128x8192xbf16> {blu.input = "w"}, %b: tensor<128xf32> {blu.input = "b"}) -> (tensor<128x128xf32> {blu.output = "y"}) {
  %y = tile.launch %x, %w, %b {kernel = @linear} : (tensor<128x8192xbf16>, tensor<128x8192xbf16>, tensor<128xf32>) -> tensor<128x128xf32>
  func.return %y : (tensor<128x128xf32>) -> ()
}
