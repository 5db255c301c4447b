// Package nccl connects GPUs through NVIDIA's NCCL, which is loaded at run time: no cgo, nothing needed to build.
//
// NCCL moves and sums the data, in the order of streams; it can't say which rank is at fault when something goes wrong. So
// every group has a control communicator beside it (dtms/tcp, or dtms/local within a process), which carries NCCL's unique
// id, the roll call of every collective, and signs of life. When it fails, NCCL's calls are aborted and its error, which
// names ranks, is what callers get.
//
// The order of NCCL's sums is its own: the same from run to run on the same GPUs, links and settings. Sums inside NVLink
// switches are turned off (NCCL_NVLS_ENABLE=0) where the environment doesn't say otherwise.
package nccl
