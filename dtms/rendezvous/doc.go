// Package rendezvous brings the ranks of a job together: rank 0 listens at one address that all know, the others come to
// it, and all learn where each rank can be reached, or who did not come.
//
// Both sides of every connection prove that they know the job's token. What a stranger can make rank 0 read or hold is
// bounded in bytes, time and number. The room knows ranks and addresses; it doesn't know what they will talk about.
package rendezvous
