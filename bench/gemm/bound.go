package main

import (
	"blutrain/blublas"
	"blutrain/ir"
)

// bound is how far a check's result may be from what it should be: the Frobenius norm of the error over that of the result.
func (c check) bound() float64 {
	switch p := c.g.Precision; {
	case c.options.Out != ir.F32:
		return 5e-3
	case p == blublas.BF16 || p == blublas.TF32:
		return truncated(c.g, c.k)
	case p == blublas.FP32Strict && c.options.GeluGrad:
		return 2e-6
	case p == blublas.FP32Strict:
		return 1e-6
	case c.options.GeluGrad:
		return 8e-7
	}
	return 4e-7
}

// truncated is a bound on the error of sums that tensor cores add up: those of tf32 and bf16. Every instruction, of 8 or 16 k, adds with
// bits cut off, which makes a sum smaller by 2^-25 of itself on average; among sums of random numbers the one after i of n instructions
// is sqrt(i/n) of the last, and sqrt(1/n) + sqrt(2/n) + ... + 1 is less than 2n/3 + 1. What an H200 does is 0.636 n + 0.9 times 2^-25 in tf32,
// from 1 to 65 instructions; in bf16, whose products have 16 bits and often nothing to cut off, three quarters of it. A single sum loses up to 2^-23.
//
// What counts is the longest part of K, whole stages: the parts are added as float32, and of parts of unequal length the others are better.
func truncated(g blublas.Gemm, k int) float64 {
	step := 16
	if g.Precision == blublas.TF32 {
		step = 8
	}
	stages := ceil(ceil(k, g.BK), g.SplitK)
	n := ceil(min(k, stages*g.BK), step)
	return max(0x1p-23, 0x1p-25*(2*float64(n)/3+1))
}

func ceil(n, d int) int { return (n + d - 1) / d }
