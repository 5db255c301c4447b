// Package recompute trades time for memory: what the forward part of a function computes and its backward part uses again
// is computed a second time, just before that use, instead of being kept. It works on straight-line functions of the blu
// dialect, copies operations and moves none, so that their results stay the same bit for bit. A target may group operations
// into kernels otherwise around copies; where it then adds up in another order, its results differ by that.
//
// Copies are marked: blu.RecomputedAttr keeps later passes from merging them with what they are copies of, and the grouping
// from computing them early again.
//
// # What is chosen
//
// The turning point of a function is where the estimate of its memory is highest. A value is saved when it is computed
// before that point and used after it; each operation that computes saved values is an item: it can be kept, or recomputed
// from what is saved before it. An item has a cost, the seconds by which computing it again is predicted to make the function longer, and a
// gain, its bytes. None keeps all items. Auto recomputes the cheap ones: those that are reached from arguments and saved
// values by elementwise operations, normalizations, softmax, reductions, gathers and copies, without a product or
// attention.
//
// Full keeps only cuts. A cut is a saved value at a moment when nothing else that was computed is still needed by the
// forward part, as the residual stream is between two layers. Of the cuts it keeps those at the ends of segments that save
// at most some number of bytes each (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", algorithm 3), the
// number for which the estimated peak is least. What gains nothing is kept all the same: the last segment, say, which is
// needed again at once.
//
// A budget asks for the least time at which the estimate fits. For every size of segments, the items are recomputed in the order of
// cost for gain, early ones first, one more at a time; of all these plans, of auto's and full's, and of some near the best of them, those
// are kept that no other one beats in both memory and time, and of these the fastest is taken that fits. What is tried does not
// depend on the budget: so a larger one never gets a slower plan. The order finds the optimum where layers are alike; in general the
// problem is a knapsack, and the result is a good plan, not provably the best one.
//
// # The estimate
//
// What will be in memory is decided later, when operations are grouped into kernels. The estimate imitates that. An
// elementwise operation or a normalization joins the group that computes the latest of its operands, if that group is of
// such operations over as many elements; an elementwise one also joins a product, as its epilogue; one whose result is used
// by one later group alone is computed there. A value that leaves its group takes memory from the group that computes it to
// the last that reads it. Views take none, parts of a concatenation are written to their place in it, arguments, constants
// and results of the function live in storage of their own. A result takes over the memory of an operand of its size that
// its group alone reads last. Of logits that only a loss needs, some rows are there at a time: as many
// as the target likes or, on GPUs, some times as many, where that saves enough of what chunks read and write again for each byte it takes, or
// within a budget where it is the better use of memory. What products of bf16 and others read
// rounded, by the rules of lower/kernels, is there in bfloat16: instead of the float32, or beside it if something reads that too; weights
// are rounded first of all and kept so. The peak is the largest sum of what lives at one time; the arena that is packed later may be
// larger by the gaps between its pieces.
//
// The time of a plan is that of its groups: each takes as long as its arithmetic or as the bytes it reads and writes, whichever is
// longer, and a part of the shorter. What is computed again in a kernel that reads its operands anyway costs only what it writes:
// layernorm beside its gradient, as it joins that group; gelu in the epilogue of its gradient's product, or, where operands are split into
// planes, in the launch that makes these, which need not write it at all.
//
// Estimates are no promises. What keeps a budget is the driver: it plans the program on, and asks for another estimate if what comes of
// it is too much.
package recompute
