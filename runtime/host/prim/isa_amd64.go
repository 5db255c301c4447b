package prim

import "github.com/klauspost/cpuid/v2"

func nativeISAs() []string {
	var names []string
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512VL, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512CD,
		cpuid.AVX2, cpuid.FMA3, cpuid.BMI2, cpuid.F16C) {
		names = append(names, "avx512")
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.BMI2, cpuid.F16C) {
		names = append(names, "avx2")
	}
	return names
}

func nativeKernels(isa string) *Kernels {
	switch isa {
	case "avx512":
		return &Kernels{isa: isa, tile: avx512Tile(), ops: opsAVX512(), red: avx512Reduce(), philox: philoxAVX512, boxMuller: boxMullerAVX512}
	case "avx2":
		return &Kernels{isa: isa, tile: avx2Tile(), ops: opsAVX2(), red: avx2Reduce(), philox: philoxAVX2, boxMuller: boxMullerAVX2}
	}
	return nil
}
