// Package shard makes the functions of training into those of one rank of many. What a rank computes is a part: of the
// micro-batches where ranks share the batch (dp), of the tokens where they share sequences (cp). Losses, counts and
// gradients are sums, so parts of them are added up, and nothing else changes what a step computes.
//
//   - Context (context*.go): within a function every value is whole on every rank of a sequence, or a piece, or a part of a sum.
//   - Data (data.go): sums of all ranks are added before the step, once a step.
//   - ZeRO-1 (zero.go): gradients and optimizer state are cut into shards, one a rank (Rajbhandari et al., ZeRO: Memory
//     Optimizations Toward Training Trillion Parameter Models, 2020).
//
// # Context
//
// The cp ranks of a sequence compute S/cp of its tokens each. A function is rewritten in one walk. Every value is whole on
// every rank, divided along one axis, or partial: a term of a sum over the ranks. Rules, one a kind of operation, say how it
// works on pieces; where there is none, pieces are gathered and every rank computes all of it, with a remark, so that every
// model compiles and is right. A value that is whole is cut where a piece of it meets pieces, and what computed only it goes.
// Random numbers are an example: they are drawn whole, so that they are the same for any number of ranks, and cut.
//
// Attention is what mixes tokens, and there are three ways to share it:
//
//   - ring: keys and values pass from rank to rank, one step ahead of the blocks that are computed, and results of blocks are
//     merged by their log-sum-exp (Liu, Zaharia and Abbeel, Ring Attention with Blockwise Transformers for Near-Infinite Context,
//     2023). Where attention is causal, a rank has one chunk from the start of the sequence and one from its end, r and 2n-1-r of
//     2n, so that all ranks have the same work at every step (the zigzag of ring-flash-attention and of Megatron-LM's context
//     parallelism; Brandon et al., Striped Attention, 2023, describe the imbalance otherwise).
//   - ulysses: an all-to-all makes pieces of the sequence pieces of the heads, each of which sees the whole sequence, and
//     another one makes them pieces of the sequence again (Jacobs et al., DeepSpeed Ulysses, 2023).
//   - gather: keys and values of all ranks are gathered at once and kept for the backward part, for sequences so short that a
//     ring's steps are too short to hide what they wait for, or with few heads of keys (as Llama 3 was trained: The Llama 3
//     Herd of Models, 2024).
//
// The package knows nothing of communicators, kernels or targets.
package shard
