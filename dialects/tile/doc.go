// Package tile is the dialect of kernels: a block language. A kernel is run once for each point of a grid; its body loads
// blocks of the tensors it is given, computes with whole blocks, and stores blocks of its results. What a block is made of
// (vector registers and cache on a CPU, registers and shared memory on a GPU) is left to the target.
//
// # Blocks
//
// Every block has two dimensions, rows and columns: !tile.block<64x128xf32>. A scalar is a block of 1x1. The numbers in the
// type are the most a block can have; its actual extents are CLIPPED: a load at offset o of a dimension of n elements gives
// min(extent, n-o) of them. Every operation works on the actual extents, so no reduction or product ever sees padding, and
// no size needs to divide another. A target that computes on full blocks turns clipping into masks.
//
// In elementwise operations an operand with one row, one column or both, by its type, is repeated along the missing ones.
//
// # References
//
// Tensors are given to a kernel as references (memref), possibly strided: inputs first, then outputs, then one index for
// each grid axis, in elements: 0, step, 2*step, ... A block is a window of two dimensions of a reference, of which every
// dimension has an offset:
//
//	%b = tile.load %ref, %i, %j, %k {row = 1, col = 2}        // b[r, c] = ref[i, j+r, k+c]
//
// `row` and `col` name the dimensions that rows and columns run along, by default the last but one and the last; -1 says
// that there is one row, or one column. The other dimensions are held at their offset.
//
// Grid points are independent and run in any order. An output is never read, and each of its elements is stored exactly
// once by exactly one grid point: the evaluator checks it. Sums over grid points take two kernels: the first stores partial
// results at the index of the grid point, the second adds them in order.
//
// Index arithmetic is arith's; loops are scf.for, which carry blocks.
package tile
