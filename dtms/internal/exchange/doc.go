// Package exchange is what the engines between CPUs have in common: calls on top of messages between pairs of ranks.
//
// A transport gives a [Node] one [Link] to each other rank, which carries frames in order, and hands the node what arrives
// ([Node.Handle], [Node.Lost]). The node does the rest: collectives, sub-groups, deadlines, signs of life, and telling all
// ranks the same about a failure. It knows nothing of sockets or MPI.
//
// Data moves only after the receiver has said that its memory is in place (frame Ready), and straight into it. So nothing
// has to be buffered for calls that have not begun here, whatever other ranks send, and links never stand still.
//
// Every collective begins with a frame Join to all others, which says what is called. That is how a rank knows who has not
// come and who called something else, for every operation alike.
//
// Sums are made by the owner of a block of elements, which gets the other ranks' contributions directly and adds them in
// the order of ranks. Per rank this moves as many bytes as a ring does, in one hop instead of size-1, and gives the same
// bits for any cutting into calls; it needs a connection between every two ranks.
package exchange
