// Products that become one matrix product on all workers, with what follows as the epilogue.

// Two outputs; a row vector is repeated.
tile.kernel @nt_bias_tanh attributes {grid = array<i64: 45, 150>, outs = 2 : i64, steps = array<i64: 64, 128>} (%a: memref<45x70xf32>, %w: memref<150x70xf32>, %b: memref<150xf32>, %y: memref<45x150xf32>, %z: memref<45x150xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<45x70xf32>, memref<150x70xf32>, index, index) -> !tile.block<64x128xf32> {}
  %bias = tile.load %b, %j : (memref<150xf32>, index) -> !tile.block<1x128xf32>
  %s = tile.add %acc, %bias : (!tile.block<64x128xf32>, !tile.block<1x128xf32>) -> !tile.block<64x128xf32>
  tile.store %s, %y, %i, %j : (!tile.block<64x128xf32>, memref<45x150xf32>, index, index) -> ()
  %t = tile.tanh %s : (!tile.block<64x128xf32>) -> !tile.block<64x128xf32>
  tile.store %t, %z, %i, %j : (!tile.block<64x128xf32>, memref<45x150xf32>, index, index) -> ()
  tile.end
}

// The product is used again after what is computed from it is stored: it must be saved.
tile.kernel @nn_product_twice attributes {grid = array<i64: 33, 40>, outs = 2 : i64, steps = array<i64: 64, 128>} (%a: memref<33x21xf32>, %w: memref<40x21xf32, strided<[1, 40]>>, %y: memref<33x40xf32>, %z: memref<33x40xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<33x21xf32>, memref<40x21xf32, strided<[1, 40]>>, index, index) -> !tile.block<64x128xf32> {}
  %t = tile.tanh %acc : (!tile.block<64x128xf32>) -> !tile.block<64x128xf32>
  tile.store %t, %y, %i, %j : (!tile.block<64x128xf32>, memref<33x40xf32>, index, index) -> ()
  %s = tile.mul %acc, %t : (!tile.block<64x128xf32>, !tile.block<64x128xf32>) -> !tile.block<64x128xf32>
  tile.store %s, %z, %i, %j : (!tile.block<64x128xf32>, memref<33x40xf32>, index, index) -> ()
  tile.end
}

// Both operands are stored with the contracted dimension first, so b is as in a weight gradient.
tile.kernel @tn_plain attributes {grid = array<i64: 37, 29>, outs = 1 : i64, steps = array<i64: 64, 128>} (%a: memref<37x50xf32, strided<[1, 37]>>, %w: memref<29x50xf32, strided<[1, 29]>>, %y: memref<37x29xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<37x50xf32, strided<[1, 37]>>, memref<29x50xf32, strided<[1, 29]>>, index, index) -> !tile.block<64x128xf32> {}
  tile.store %acc, %y, %i, %j : (!tile.block<64x128xf32>, memref<37x29xf32>, index, index) -> ()
  tile.end
}

// a is transposed and b is not: no single product, so block by block.
tile.kernel @tt_by_blocks attributes {grid = array<i64: 37, 29>, outs = 1 : i64, steps = array<i64: 16, 16>} (%a: memref<37x150xf32, strided<[1, 37]>>, %w: memref<29x150xf32>, %y: memref<37x29xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<37x150xf32, strided<[1, 37]>>, memref<29x150xf32>, index, index) -> !tile.block<16x16xf32> {}
  tile.store %acc, %y, %i, %j : (!tile.block<16x16xf32>, memref<37x29xf32>, index, index) -> ()
  tile.end
}

// A batch axis, and a residual that is added.
tile.kernel @batched_residual attributes {grid = array<i64: 3, 20, 24>, outs = 1 : i64, steps = array<i64: 1, 64, 128>} (%a: memref<3x20x16xf32>, %w: memref<3x24x16xf32>, %x: memref<3x20x24xf32>, %y: memref<3x20x24xf32>, %b: index, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %b, %i, %b, %j attributes {operandSegmentSizes = array<i32: 1, 1, 2, 2>} : (memref<3x20x16xf32>, memref<3x24x16xf32>, index, index, index, index) -> !tile.block<64x128xf32> {}
  %r = tile.load %x, %b, %i, %j : (memref<3x20x24xf32>, index, index, index) -> !tile.block<64x128xf32>
  %s = tile.add %acc, %r : (!tile.block<64x128xf32>, !tile.block<64x128xf32>) -> !tile.block<64x128xf32>
  tile.store %s, %y, %b, %i, %j : (!tile.block<64x128xf32>, memref<3x20x24xf32>, index, index, index) -> ()
  tile.end
}

// Positions along both axes, as in a mask: an epilogue runs on pieces smaller than the grid's blocks.
tile.kernel @nt_masked attributes {grid = array<i64: 64, 256>, outs = 1 : i64, steps = array<i64: 64, 256>} (%a: memref<64x16xf32>, %w: memref<256x16xf32>, %y: memref<64x256xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<64x16xf32>, memref<256x16xf32>, index, index) -> !tile.block<64x256xf32> {}
  %rows = arith.constant {value = 64 : index} : () -> index
  %cols = arith.constant {value = 256 : index} : () -> index
  %r = tile.iota %i, %rows {axis = 0 : i64} : (index, index) -> !tile.block<64x1xi32>
  %c = tile.iota %j, %cols {axis = 1 : i64} : (index, index) -> !tile.block<1x256xi32>
  %seen = tile.compare %r, %c {predicate = "ge"} : (!tile.block<64x1xi32>, !tile.block<1x256xi32>) -> !tile.block<64x256xi1>
  %no = tile.constant {value = -1.0e+09 : f64} : () -> !tile.block<1x1xf32>
  %m = tile.select %seen, %acc, %no : (!tile.block<64x256xi1>, !tile.block<64x256xf32>, !tile.block<1x1xf32>) -> !tile.block<64x256xf32>
  tile.store %m, %y, %i, %j : (!tile.block<64x256xf32>, memref<64x256xf32>, index, index) -> ()
  tile.end
}

// The same where the last blocks are not whole.
tile.kernel @nt_masked_clipped attributes {grid = array<i64: 45, 150>, outs = 1 : i64, steps = array<i64: 64, 128>} (%a: memref<45x70xf32>, %w: memref<150x70xf32>, %y: memref<45x150xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<45x70xf32>, memref<150x70xf32>, index, index) -> !tile.block<64x128xf32> {}
  %rowStep = arith.constant {value = 64 : index} : () -> index
  %colStep = arith.constant {value = 128 : index} : () -> index
  %m = arith.constant {value = 45 : index} : () -> index
  %n = arith.constant {value = 150 : index} : () -> index
  %below = arith.subi %m, %i : (index, index) -> index
  %right = arith.subi %n, %j : (index, index) -> index
  %rows = arith.minsi %rowStep, %below : (index, index) -> index
  %cols = arith.minsi %colStep, %right : (index, index) -> index
  %r = tile.iota %i, %rows {axis = 0 : i64} : (index, index) -> !tile.block<64x1xf32>
  %c = tile.iota %j, %cols {axis = 1 : i64} : (index, index) -> !tile.block<1x128xf32>
  %d = tile.sub %r, %c : (!tile.block<64x1xf32>, !tile.block<1x128xf32>) -> !tile.block<64x128xf32>
  %s = tile.add %acc, %d : (!tile.block<64x128xf32>, !tile.block<64x128xf32>) -> !tile.block<64x128xf32>
  tile.store %s, %y, %i, %j : (!tile.block<64x128xf32>, memref<45x150xf32>, index, index) -> ()
  tile.end
}

// A block of the grid's extents that is stored as it is: no single product, so block by block.
tile.kernel @nt_beside_broadcast attributes {grid = array<i64: 64, 256>, outs = 2 : i64, steps = array<i64: 64, 256>} (%a: memref<64x16xf32>, %w: memref<256x16xf32>, %b: memref<256xf32>, %y: memref<64x256xf32>, %z: memref<64x256xf32>, %i: index, %j: index) {
  %acc = tile.contract %a, %w, %i, %j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (memref<64x16xf32>, memref<256x16xf32>, index, index) -> !tile.block<64x256xf32> {}
  %rows = arith.constant {value = 64 : index} : () -> index
  %cols = arith.constant {value = 256 : index} : () -> index
  %bias = tile.load %b, %j : (memref<256xf32>, index) -> !tile.block<1x256xf32>
  %all = tile.broadcast %bias, %rows, %cols : (!tile.block<1x256xf32>, index, index) -> !tile.block<64x256xf32>
  tile.store %all, %z, %i, %j : (!tile.block<64x256xf32>, memref<64x256xf32>, index, index) -> ()
  tile.store %acc, %y, %i, %j : (!tile.block<64x256xf32>, memref<64x256xf32>, index, index) -> ()
  tile.end
}
