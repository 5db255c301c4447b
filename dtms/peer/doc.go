// Package peer sums and gathers between GPUs of one machine that reach each other's memory, by their copy engines. No multiprocessor waits for
// another rank: they are taken for the sums alone, a few microseconds at a time, where NCCL's blocks stay for as long as data moves. It moves
// fewer bytes a second than NCCL, and beside kernels that make gradients the step is shorter all the same (bench/NOTES.md, sums by copy engines).
//
// Every rank has a station, memory of its GPU that the others can open (connect.go). A call's memory is seen as one part for each rank
// (layout.go), and moved piece by piece in three stages, each on a stream of its own (stages.go):
//
//	push   copy the pieces of the others' parts into their stations
//	add    add up the pieces of the own part, in the order of ranks: a kernel on own memory
//	pull   copy the sums of the others' parts out of their stations
//
// Where the ranks can't have each other's memory, all of them learn why before anything is moved ([OutOfReach]), and another engine may do.
//
// An all-reduce is all three, a reduce-scatter the first two, an all-gather the last two with a copy for the sum. What a stage has done it says
// by a flag, a word in the memory of the GPU that waits for it, written and waited for by streams. Flags are the numbers of pieces, counted from the
// group's beginning, so that nothing is ever reset; a place in a station is used again when its reader's flag says that it may be.
//
// The stages' streams may be one queue of the hardware: each waits only for what every rank has put on its streams earlier in the order in which all
// ranks put things there.
//
// Sums are those of the other engines, bit for bit: ((x[0] + x[1]) + x[2]) + ..., by ranks. There are only those of float32; other
// operations are NCCL's. As there, a control communicator carries the roll calls and signs of life. When it fails, the rank itself writes the flags that its streams
// wait for; they end, and what they have moved is refused.
package peer
