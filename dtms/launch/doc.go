// Package launch finds out who started this process, and so which rank it is, and starts the ranks of a job on one machine.
//
// It reads environment variables of torchrun, Slurm, Open MPI, PMI (MPICH, Intel MPI) and Kubernetes and says in one line
// which it took. Variables that contradict each other are errors: a wrong guess here is a job that waits for ranks which
// don't exist. The room knows processes and variables; it doesn't connect ranks.
package launch
