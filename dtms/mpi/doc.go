// Package mpi connects ranks through MPICH, or a library with its ABI (Intel MPI, MVAPICH), which is loaded at run time:
// no cgo, nothing needed to build. Processes are started with that library's mpiexec.
//
// MPI carries the frames of dtms/internal/exchange, so that sums have the order, and failures the names, that they have on
// other engines; MPI's own reductions have orders of their own. One thread makes all MPI calls (MPI_THREAD_FUNNELED).
// When a process dies, MPI's launcher ends the others, mostly before they can say who it was.
package mpi
