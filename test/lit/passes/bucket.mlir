// RUN: bluc opt %s --pass-pipeline='builtin.module(bucket{size=64})' | FileCheck %s
// RUN: bluc opt %s --pass-pipeline='builtin.module(bucket)' | FileCheck %s --check-prefix=ONE
// RUN: bluc opt %s --pass-pipeline='builtin.module(bucket{size=16})' | FileCheck %s --check-prefix=GROWS
// RUN: not bluc opt %s --pass-pipeline='builtin.module(bucket{size=many})' 2>&1 | FileCheck %s --check-prefix=SIZE

// Gradients are computed from the last layer, %c, to the first, %a, and stored in the order of the layers. Buckets of 64
// bytes, or four tensors of these, are filled in the order in which the gradients are ready, each where its last one is, with
// the sums continued before. The last gradient is of another type: it can't be with the others.

// CHECK-LABEL: func.func @gradients
// CHECK:         %[[E:.*]] = blu.exp %arg0
// CHECK-NEXT:    %[[GE:.*]] = blu.accumulate %arg5, %[[E]]
// CHECK-NEXT:    %[[D:.*]] = blu.exp %[[E]]
// CHECK-NEXT:    %[[GD:.*]] = blu.accumulate %arg4, %[[D]]
// CHECK-NEXT:    %[[C:.*]] = blu.exp %[[D]]
// CHECK-NEXT:    %[[GC:.*]] = blu.accumulate %arg3, %[[C]]
// CHECK-NEXT:    %[[B:.*]] = blu.exp %[[C]]
// CHECK-NEXT:    %[[GB:.*]] = blu.accumulate %arg2, %[[B]]
// CHECK-NEXT:    %[[R:.*]]:4 = dtms.all_reduce %[[GE]], %[[GD]], %[[GC]], %[[GB]] {group = "world"}
// CHECK-NEXT:    %[[A:.*]] = blu.exp %[[B]]
// CHECK-NEXT:    %[[GA:.*]] = blu.accumulate %arg1, %[[A]]
// CHECK-NEXT:    %[[S:.*]] = dtms.all_reduce %[[GA]] {group = "world"}
// CHECK-NEXT:    %[[H:.*]] = blu.cast
// CHECK-NEXT:    %[[T:.*]] = dtms.all_reduce %[[H]] {group = "world"} : (tensor<4xbf16>)
// CHECK-NEXT:    func.return %[[S]], %[[R]]#3, %[[R]]#2, %[[R]]#1, %[[R]]#0, %[[T]]

// Early buckets are larger: as large as what comes after them, the last not counted, and at most four times the size.

// GROWS-LABEL: func.func @layers
// GROWS:         = dtms.all_reduce %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {group
// GROWS:         = dtms.all_reduce %{{[^,]*}}, %{{[^,]*}} {group
// GROWS-COUNT-3: = dtms.all_reduce %{{[^,]*}} {group

// What is larger than any bucket goes alone, and doesn't end a bucket; those before it shrink towards it, so that it needn't wait for them.

// GROWS-LABEL: func.func @table
// GROWS:         = dtms.all_reduce %{{[^,]*}}, %{{[^,]*}} {group
// GROWS:         = dtms.all_reduce %{{[^,]*}} {group = "world"} : (tensor<32xf32>)
// GROWS:         = dtms.all_reduce %{{[^,]*}}, %{{[^,]*}} {group
// GROWS:         = dtms.all_reduce %{{[^,]*}} {group

// ONE-LABEL: func.func @gradients
// ONE:         %{{.*}}:5 = dtms.all_reduce

// What is needed before the next is ready is not put off for it: the second gathers what the first is needed for.

// CHECK-LABEL: func.func @needed
// CHECK:         dtms.all_gather %arg0 {group = "cp", ranks = 2 : i64} : (tensor<4xf32>) -> tensor<2x4xf32>
// CHECK:         dtms.all_gather %{{.*}} {group = "cp", ranks = 2 : i64} : (tensor<8xf32>) -> tensor<2x8xf32>
// ONE-LABEL: func.func @needed
// ONE-COUNT-2: = dtms.all_gather

// Views through which results are stored come after the bucket.

// CHECK-LABEL: func.func @stored
// CHECK:         %[[G:.*]]:2 = dtms.all_gather
// CHECK-NEXT:    blu.reshape %[[G]]#0
// CHECK-NEXT:    blu.reshape %[[G]]#1

// SIZE: expected an amount of memory, as in 512MiB or 6GiB, not "many"
func.func @gradients(%x: tensor<4xf32>, %sa: tensor<4xf32>, %sb: tensor<4xf32>, %sc: tensor<4xf32>, %sd: tensor<4xf32>, %se: tensor<4xf32>, %first: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>) {
  %e = blu.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %d = blu.exp %e : (tensor<4xf32>) -> tensor<4xf32>
  %c = blu.exp %d : (tensor<4xf32>) -> tensor<4xf32>
  %b = blu.exp %c : (tensor<4xf32>) -> tensor<4xf32>
  %a = blu.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %h = blu.cast %a : (tensor<4xf32>) -> tensor<4xbf16>
  %ga = blu.accumulate %sa, %a, %first : (tensor<4xf32>, tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  %gb = blu.accumulate %sb, %b, %first : (tensor<4xf32>, tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  %gc = blu.accumulate %sc, %c, %first : (tensor<4xf32>, tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  %gd = blu.accumulate %sd, %d, %first : (tensor<4xf32>, tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  %ge = blu.accumulate %se, %e, %first : (tensor<4xf32>, tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  %ra = dtms.all_reduce %ga {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rb = dtms.all_reduce %gb {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rc = dtms.all_reduce %gc {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rd = dtms.all_reduce %gd {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %re = dtms.all_reduce %ge {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rh = dtms.all_reduce %h {group = "world"} : (tensor<4xbf16>) -> tensor<4xbf16>
  func.return %ra, %rb, %rc, %rd, %re, %rh : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>) -> ()
}
func.func @needed(%x: tensor<4xf32>) -> tensor<2x8xf32> {
  %g = dtms.all_gather %x {group = "cp", ranks = 2 : i64} : (tensor<4xf32>) -> tensor<2x4xf32>
  %r = blu.reshape %g : (tensor<2x4xf32>) -> tensor<8xf32>
  %e = blu.exp %r : (tensor<8xf32>) -> tensor<8xf32>
  %h = dtms.all_gather %e {group = "cp", ranks = 2 : i64} : (tensor<8xf32>) -> tensor<2x8xf32>
  func.return %h : (tensor<2x8xf32>) -> ()
}
func.func @stored(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %g = dtms.all_gather %x {group = "world", ranks = 2 : i64} : (tensor<4xf32>) -> tensor<2x4xf32>
  %r = blu.reshape %g : (tensor<2x4xf32>) -> tensor<8xf32>
  %e = blu.exp %y : (tensor<2xf32>) -> tensor<2xf32>
  %h = dtms.all_gather %e {group = "world", ranks = 2 : i64} : (tensor<2xf32>) -> tensor<2x2xf32>
  %s = blu.reshape %h : (tensor<2x2xf32>) -> tensor<4xf32>
  func.return %r, %s : (tensor<8xf32>, tensor<4xf32>) -> ()
}
func.func @layers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = blu.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = blu.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %c = blu.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %d = blu.exp %c : (tensor<4xf32>) -> tensor<4xf32>
  %e = blu.exp %d : (tensor<4xf32>) -> tensor<4xf32>
  %f = blu.exp %e : (tensor<4xf32>) -> tensor<4xf32>
  %g = blu.exp %f : (tensor<4xf32>) -> tensor<4xf32>
  %h = blu.exp %g : (tensor<4xf32>) -> tensor<4xf32>
  %ra = dtms.all_reduce %a {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rb = dtms.all_reduce %b {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rc = dtms.all_reduce %c {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rd = dtms.all_reduce %d {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %re = dtms.all_reduce %e {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rf = dtms.all_reduce %f {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rg = dtms.all_reduce %g {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  %rh = dtms.all_reduce %h {group = "world"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %ra, %rb, %rc, %rd, %re, %rf, %rg, %rh : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
}
func.func @table(%x: tensor<2xf32>, %y: tensor<32xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<32xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = blu.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %b = blu.exp %a : (tensor<2xf32>) -> tensor<2xf32>
  %c = blu.exp %b : (tensor<2xf32>) -> tensor<2xf32>
  %t = blu.exp %y : (tensor<32xf32>) -> tensor<32xf32>
  %d = blu.exp %c : (tensor<2xf32>) -> tensor<2xf32>
  %e = blu.exp %d : (tensor<2xf32>) -> tensor<2xf32>
  %ra = dtms.all_reduce %a {group = "world"} : (tensor<2xf32>) -> tensor<2xf32>
  %rb = dtms.all_reduce %b {group = "world"} : (tensor<2xf32>) -> tensor<2xf32>
  %rc = dtms.all_reduce %c {group = "world"} : (tensor<2xf32>) -> tensor<2xf32>
  %rt = dtms.all_reduce %t {group = "world"} : (tensor<32xf32>) -> tensor<32xf32>
  %rd = dtms.all_reduce %d {group = "world"} : (tensor<2xf32>) -> tensor<2xf32>
  %re = dtms.all_reduce %e {group = "world"} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %ra, %rb, %rc, %rt, %rd, %re : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<32xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
}
