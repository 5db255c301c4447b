// Package blu is the dialect of neural-network programs: pure operations on tensors with static shapes, from the model as
// written to the graph that is cut into kernels. Scalars are tensors of rank 0. Nothing broadcasts by itself: blu.broadcast
// says which dimension of its operand becomes which of its result.
//
// Each operation is one entry of the dialect's table: what it means, what it accepts, the types it gives, how it folds, and
// its reference evaluation in float64. The composite ones (softmax, attention, adamw, ...) also say, in Decompose, what they
// are in terms of the others.
//
// The package knows nothing of gradients, kernels, memory or targets.
package blu
