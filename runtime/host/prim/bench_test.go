package prim

import "testing"

// BenchmarkUnary measures functions on blocks of 4096 elements, which stay in the
// first-level cache.
func BenchmarkUnary(b *testing.B) {
	ops := map[string]UnaryOp{"Exp": Exp, "Log": Log, "Tanh": Tanh, "Erf": Erf, "Sigmoid": Sigmoid, "Sin": Sin,
		"GeluTanh": GeluTanh, "GeluErf": GeluErf, "DGeluTanh": DGeluTanh, "Sqrt": Sqrt, "Rsqrt": Rsqrt, "Neg": Neg}
	forEachBenchISA(b, func(b *testing.B, k *Kernels, x, y, z []float32) {
		for name, op := range ops {
			perElement(b, name, len(x), func() { k.Unary(op, z, x) })
		}
	})
}

// BenchmarkLoops does the same for other loops.
func BenchmarkLoops(b *testing.B) {
	forEachBenchISA(b, func(b *testing.B, k *Kernels, x, y, z []float32) {
		acc, h := make([]float64, 64), make([]uint16, len(x))
		m, v := make([]float32, len(x)), make([]float32, len(x))
		mask := make([]uint32, len(x))
		for name, f := range map[string]func(){
			"Add":        func() { k.Binary(Add, z, x, y) },
			"Max":        func() { k.Binary(Max, z, x, y) },
			"FMA":        func() { k.FMA(z, x, y, z) },
			"Div":        func() { k.Binary(Div, z, x, y) },
			"Compare":    func() { k.Compare(Lt, mask, x, y) },
			"Select":     func() { k.Select(z, mask, x, y) },
			"Sum":        func() { k.Sum(x) },
			"MaxOf":      func() { k.Max(x) },
			"Dot":        func() { k.Dot(x, y) },
			"SumSquares": func() { k.SumSquares(x) },
			"ExpSum":     func() { k.ExpSum(z, x, 1, 0) },
			"ColSum":     func() { k.ColSum(acc, x, len(x)/64, 64, 64) },
			"ToBF16":     func() { k.ToBF16(h, x) },
			"Transpose":  func() { k.Transpose(z, 64, x, 64, 64, 64) },
			"AdamW": func() {
				k.AdamW(z, m, v, z, m, v, x, &AdamW{GradScale: 1, Keep1: 0.9, Take1: 0.1, Keep2: 0.99, Take2: 0.01, Root: 1, Eps: 1e-8, Step: 1e-3})
			},
			"Uniform": func() { k.Uniform(z, 1, 2, 0) },
			"Normal":  func() { k.Normal(z, 1, 2, 0, 0, 1) },
			"Pow":     func() { k.BinaryVS(Pow, z, x, 3.5) },
		} {
			perElement(b, name, len(x), f)
		}
	})
}

func forEachBenchISA(b *testing.B, f func(b *testing.B, k *Kernels, x, y, z []float32)) {
	const n = 4096
	x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i%97)/16-3, float32(i%89)/16-2
	}
	for _, name := range ISAs() {
		k, err := ForISA(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) { f(b, k, x, y, z) })
	}
}

func perElement(b *testing.B, name string, n int, f func()) {
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			f()
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(n), "ns/element")
	})
}
