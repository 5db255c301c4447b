// Package dtms connects the ranks of a job: a [Communicator] moves and sums memory between them.
//
// The room sees memory (an address, an element type, a count) and opaque streams; it knows nothing of tensors, models,
// compiled programs or devices. An [Engine] is one way to do it: dtms/local for ranks that are goroutines of one process,
// dtms/tcp for processes on a few hosts, dtms/mpi on top of MPICH, dtms/nccl between GPUs, dtms/peer between GPUs that reach each other's memory.
//
// # Order of summation
//
// local, tcp, mpi and peer give the same bits for the same contributions: every element is
//
//	((x[0] + x[1]) + x[2]) + ... + x[size-1]
//
// with ranks counted within the communicator, whatever the number of elements, however a buffer is cut into calls and
// whatever arrives first. So an all-reduce equals a reduce-scatter followed by an all-gather bit for bit. f32, f64 and
// integers are added in their own type (integers wrap); f16 and bf16 are added in float32 and rounded once, to nearest even.
// NCCL has orders of its own: the same from run to run on the same machine with the same settings, but not these.
//
// # Failure
//
// A collective returns nil on a rank only after every rank has begun it with the same arguments. Otherwise every rank that
// lives gets an error that names the ranks at fault (see [RankError]), at the call's deadline at the latest. A failure is
// final: the job has lost a rank, and every later call on any communicator of the job returns the same error.
package dtms
