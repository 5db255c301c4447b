// Package ptx lowers kernels of the tile dialect to kernels for NVIDIA GPUs, the ptx dialect: a block of threads for each
// grid point. The threads of a block stand in rows and columns, one arrangement for the whole kernel, and an element of any
// block of the kernel belongs to the thread of its row and column, in registers. What has one row, or one column, all threads
// along it hold, so that operations element by element need no exchange at all. Reductions go through the registers of a
// thread, the lanes of a warp and shared memory, in an order fixed by the layout; products and transposes go through
// shared memory. A row that several loops go over is staged there, where it fits, and so read once.
//
// It knows the two dialects and how launches place a kernel's references, not what the runtime does with a launch.
package ptx
