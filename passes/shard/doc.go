// Package shard makes the functions of training into those of one rank of many. What a rank computes is a part: of the
// micro-batches where ranks share the batch (dp), of the tokens where they share sequences (cp). Losses, counts and
// gradients are sums, so parts of them are added up, and nothing else changes what a step computes.
//
//   - Context (context*.go): within a function every value is whole on every rank of a sequence, or a piece, or a part of a sum.
//   - Data (data.go): sums of all ranks are added before the step, once a step.
//   - ZeRO-1 (zero.go): gradients and optimizer state are cut into shards, one a rank (Rajbhandari et al., ZeRO: Memory
//     Optimizations Toward Training Trillion Parameter Models, 2020).
//
// The package knows nothing of communicators, kernels or targets.
package shard
