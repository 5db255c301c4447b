// Package peak measures what one core can do at most, to say what share of it a program reaches.
package peak

// Flops is the float32 operations per second of one core with an instruction set ("avx512", "avx2"): the best of several
// runs of independent fused multiply-adds on registers, which take about 20 ms. It is 0 where it can't be measured.
func Flops(isa string) float64 { return flops(isa) }
