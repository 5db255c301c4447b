// Package dtms is the dialect of programs that run on many ranks: collective operations on tensors, and the mesh that says
// which ranks take part. Every rank runs the same program, so every rank calls the same collectives in the same order.
//
// An operation with several operands is one bucket: one call of the communicator for all of them. What all_reduce adds is
// added in the order of the ranks, so that every rank gets the same bits. Where a program is evaluated by itself it is the
// only rank of its mesh; Evaluate runs many side by side, which meet at each collective.
//
// The package knows nothing of communicators, networks or devices.
package dtms
