// RUN: bluc opt %s --pass-pipeline='builtin.module(narrow)' | FileCheck %s

// What is only multiplied as bfloat16 comes from the other rank as such, through views and choices too.

// CHECK-LABEL: func.func @keys
// CHECK:         %[[A:.*]] = blu.cast %arg0 : (tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xbf16>
// CHECK-NEXT:    %[[B:.*]] = blu.cast %arg1 : (tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xbf16>
// CHECK-NEXT:    %[[P:.*]]:2 = dtms.permute %[[A]], %[[B]] {group = "cp", ranks = 2 : i64, shift = 1 : i64}
// CHECK-NEXT:    %[[K:.*]] = blu.cast %[[P]]#0 : (tensor<1x2x8x4xbf16>) -> tensor<1x2x8x4xf32>
// CHECK-NEXT:    %[[V:.*]] = blu.cast %[[P]]#1
// CHECK:         blu.attention %{{.*}}, %[[K]], %[[V]]
func.func @keys(%k: tensor<1x2x8x4xf32>, %v: tensor<1x2x8x4xf32>, %q: tensor<1x2x4x4xf32>, %first: tensor<1x2x4x4xi1>) -> (tensor<1x2x4x4xf32>) {
  %0:2 = dtms.permute %k, %v {group = "cp", ranks = 2 : i64, shift = 1 : i64} : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>)
  %1:2 = blu.attention %q, %0#0, %0#1 {blu.precision = "bf16", causal = false, scale = 0.5 : f64} : (tensor<1x2x4x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>)
  %2 = blu.slice %0#0 {limits = array<i64: 1, 2, 4, 4>, starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x2x8x4xf32>) -> tensor<1x2x4x4xf32>
  %3 = blu.slice %0#0 {limits = array<i64: 1, 2, 8, 4>, starts = array<i64: 0, 0, 4, 0>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x2x8x4xf32>) -> tensor<1x2x4x4xf32>
  %4 = blu.select %first, %2, %3 : (tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %5:2 = blu.attention %1#0, %4, %4 {blu.precision = "bf16", causal = false, scale = 0.5 : f64} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>)
  func.return %5#0 : (tensor<1x2x4x4xf32>) -> ()
}

// What attention of that precision gives is sent as such, whatever reads it.

// CHECK-LABEL: func.func @heads
// CHECK:         %[[O:.*]] = blu.cast %{{.*}} : (tensor<2x1x4x4xf32>) -> tensor<2x1x4x4xbf16>
// CHECK-NEXT:    dtms.all_to_all %[[O]]
func.func @heads(%q: tensor<1x2x4x4xf32>) -> (tensor<2x1x4x4xf32>) {
  %0:2 = blu.attention %q, %q, %q {blu.precision = "bf16", causal = false, scale = 0.5 : f64} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>)
  %1 = blu.reshape %0#0 : (tensor<1x2x4x4xf32>) -> tensor<2x1x4x4xf32>
  %2 = dtms.all_to_all %1 {group = "cp", ranks = 2 : i64} : (tensor<2x1x4x4xf32>) -> tensor<2x1x4x4xf32>
  %3 = blu.exp %2 : (tensor<2x1x4x4xf32>) -> tensor<2x1x4x4xf32>
  func.return %3 : (tensor<2x1x4x4xf32>) -> ()
}

// Not what is read as float32 besides, nor the statistics of attention, nor sums, nor a bucket of which a part is needed whole.

// CHECK-LABEL: func.func @whole
// CHECK-NOT:     bf16>
// CHECK:         func.return
func.func @whole(%k: tensor<1x2x4x4xf32>, %q: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %0 = dtms.permute %k {group = "cp", ranks = 2 : i64, shift = 1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %1:2 = blu.attention %q, %0, %0 {blu.precision = "bf16", causal = false, scale = 0.5 : f64} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>)
  %2 = blu.add %0, %1#0 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %3 = dtms.permute %1#1 {group = "cp", ranks = 2 : i64, shift = 1 : i64} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %4 = dtms.all_reduce %1#0 {group = "cp"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %5:2 = dtms.permute %k, %1#0 {group = "cp", ranks = 2 : i64, shift = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
  func.return %2, %3, %4, %5#0 : (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> ()
}
