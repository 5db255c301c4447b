// Package cuda drives NVIDIA GPUs through the driver's library, libcuda.so.1, which is loaded when a Driver is opened: no
// toolkit, no C compiler. It gives devices, contexts, modules, memory, streams, events and launches as Go values, and
// errors that carry CUDA's name for the failure and what was being done.
//
// It knows nothing of programs or kernels' meaning. A context belongs to all threads: every method makes it current on the
// thread it runs on.
package cuda
