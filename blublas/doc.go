// Package blublas makes the kernels that carry most of the arithmetic: matrix products, from one parameter struct each.
// A template is a few functions that read from top to bottom like the timeline of a warpgroup; what is done with the
// product before it is stored is a hook, so that whatever the graph has there runs in the same kernel.
//
// The room makes ptx kernels and says how to launch them. It knows nothing of the graph a product came from, and runs
// nothing.
package blublas
