// RUN: bluc opt %s --pass-pipeline='builtin.module(buffers)' | FileCheck %s
// Results are computed where their consumers want them: in a slice of a concatenation, or transposed.

tile.kernel @double attributes {grid = array<i64: 4, 6>, outs = 1 : i64, steps = array<i64: 4, 6>} (%p: memref<4x6xf32>, %q: memref<4x6xf32>, %i: index, %j: index) {
  %x = tile.load %p, %i, %j : (memref<4x6xf32>, index, index) -> !tile.block<4x6xf32>
  %y = tile.add %x, %x : (!tile.block<4x6xf32>, !tile.block<4x6xf32>) -> !tile.block<4x6xf32>
  tile.store %y, %q, %i, %j : (!tile.block<4x6xf32>, memref<4x6xf32>, index, index) -> ()
  tile.end
}

// CHECK-LABEL: func.func @concat
// CHECK:         %[[OUT:.*]] = mem.buffer {name = "o", space = "output"} : () -> memref<4x12xf32>
// CHECK:         %[[LEFT:.*]] = mem.view %[[OUT]] : (memref<4x12xf32>) -> memref<4x6xf32, strided<[12, 1]>>
// CHECK:         tile.launch %{{.*}}, %[[LEFT]]
// CHECK:         %[[RIGHT:.*]] = mem.view %[[OUT]] : (memref<4x12xf32>) -> memref<4x6xf32, strided<[12, 1], offset: 6>>
// CHECK:         tile.launch %{{.*}}, %[[RIGHT]]
// CHECK-NOT:     mem.copy
func.func @concat(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<4x12xf32> {blu.output = "o"}) {
  %l = tile.launch %a {kernel = @double} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = tile.launch %l {kernel = @double} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = blu.concat %l, %r {axis = 1 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>
  func.return %c : (tensor<4x12xf32>) -> ()
}

// The transposed result is flattened, so it is written transposed.
// CHECK-LABEL: func.func @transposed
// CHECK:         %[[OUT:.*]] = mem.buffer {name = "o", space = "output"} : () -> memref<24xf32>
// CHECK:         %[[T:.*]] = mem.view %[[OUT]] : (memref<24xf32>) -> memref<4x6xf32, strided<[1, 4]>>
// CHECK:         tile.launch %{{.*}}, %[[T]]
// CHECK-NOT:     mem.copy
func.func @transposed(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<24xf32> {blu.output = "o"}) {
  %l = tile.launch %a {kernel = @double} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %t = blu.transpose %l {perm = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %o = blu.reshape %t : (tensor<6x4xf32>) -> tensor<24xf32>
  func.return %o : (tensor<24xf32>) -> ()
}

// No strides flatten a transposed input: it is copied.
// CHECK-LABEL: func.func @copied
// CHECK:         mem.copy
func.func @copied(%a: tensor<6x4xf32> {blu.input = "a"}) -> (tensor<4x6xf32> {blu.output = "o"}) {
  %t = blu.transpose %a {perm = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %f = blu.reshape %t : (tensor<4x6xf32>) -> tensor<24xf32>
  %g = blu.reshape %f : (tensor<24xf32>) -> tensor<4x6xf32>
  %l = tile.launch %g {kernel = @double} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %l : (tensor<4x6xf32>) -> ()
}

// How far elements of a dimension of one are apart doesn't matter: parts of a concatenation are written in their place.
// CHECK-LABEL: func.func @units
// CHECK-NOT:     mem.copy
// CHECK:         func.return
func.func @units(%a: tensor<4x6xf32> {blu.input = "a"}) -> (tensor<1x4x12xf32> {blu.output = "o"}) {
  %l = tile.launch %a {kernel = @double} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = tile.launch %l {kernel = @double} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %x = blu.reshape %l : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
  %y = blu.reshape %r : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
  %c = blu.concat %x, %y {axis = 2 : i64} : (tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> tensor<1x4x12xf32>
  func.return %c : (tensor<1x4x12xf32>) -> ()
}
