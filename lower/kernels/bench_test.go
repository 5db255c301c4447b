package kernels

import "testing"

// BenchmarkGPT2 lowers the functions of a GPT-2 124M training program.
func BenchmarkGPT2(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		c, m := model(b, "gpt2.blu", nil)
		b.StartTimer()
		if err := Run(c, m, CPU()); err != nil {
			b.Fatal(err)
		}
	}
}
