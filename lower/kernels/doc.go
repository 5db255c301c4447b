// Package kernels lowers tensor programs to kernels: the kernels phase. It groups the operations of each straight-line
// function so that what is fused touches memory once, writes a tile.kernel for every group that is new, and leaves
// launches and views in the function.
//
// It works in four steps. Prepare rewrites the function to primitive operations. Plan walks over them in order and puts
// each into a group: elementwise operations go where their operands are computed (the epilogue of a product, a loop over
// rows) or float until a group that needs them takes them in. A group's operations share one domain, a set of atoms:
// factors of dimensions that no view between them cuts across. Resolve turns the atoms of a group into axes and blocks, and
// emit writes the kernel, or finds the one that another group left.
//
// Fusion never changes numbers by more than the order of sums. Every operation has a lowering, whatever is around it.
//
// The package knows the blu and tile dialects and a Target. It does not know memory: strides are guessed only to pick good
// shapes; where values live is decided later.
package kernels
