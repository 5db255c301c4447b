package prim

func avx512Tile() tileTable {
	return tileTable{
		rows: 14, cols: 32, lanes: 16,
		packed: []func(int, *float32, *float32, *float32, int, int, bool){nil,
			gemmPacked1x32AVX512, gemmPacked2x32AVX512, gemmPacked3x32AVX512, gemmPacked4x32AVX512,
			gemmPacked5x32AVX512, gemmPacked6x32AVX512, gemmPacked7x32AVX512, gemmPacked8x32AVX512,
			gemmPacked9x32AVX512, gemmPacked10x32AVX512, gemmPacked11x32AVX512, gemmPacked12x32AVX512,
			gemmPacked13x32AVX512, gemmPacked14x32AVX512},
		direct: []func(int, *float32, int, int, *float32, int, *float32, int, int, bool){nil,
			gemmDirect1x32AVX512, gemmDirect2x32AVX512, gemmDirect3x32AVX512, gemmDirect4x32AVX512,
			gemmDirect5x32AVX512, gemmDirect6x32AVX512, gemmDirect7x32AVX512, gemmDirect8x32AVX512,
			gemmDirect9x32AVX512, gemmDirect10x32AVX512, gemmDirect11x32AVX512, gemmDirect12x32AVX512,
			gemmDirect13x32AVX512, gemmDirect14x32AVX512},
		packing: []func(int, *float32, *float32, int, *float32, *float32, int, int, bool){nil,
			gemmPacking1x32AVX512, gemmPacking2x32AVX512, gemmPacking3x32AVX512, gemmPacking4x32AVX512,
			gemmPacking5x32AVX512, gemmPacking6x32AVX512, gemmPacking7x32AVX512, gemmPacking8x32AVX512,
			gemmPacking9x32AVX512, gemmPacking10x32AVX512, gemmPacking11x32AVX512, gemmPacking12x32AVX512,
			gemmPacking13x32AVX512, gemmPacking14x32AVX512},
		across:    []acrossKernel{nil, gemmAcross1x32AVX512, gemmAcross2x32AVX512, gemmAcross3x32AVX512, gemmAcross4x32AVX512},
		wide:      []wideKernel{{}, {128, gemmWide1x128AVX512}, {128, gemmWide2x128AVX512}, {128, gemmWide3x128AVX512}, {}},
		transpose: transposeAVX512, copyA: copyPanels1AVX512, copyB: copyPanels2AVX512,
	}
}

func avx2Tile() tileTable {
	return tileTable{
		rows: 6, cols: 16, lanes: 8, keepsB: true,
		packed: []func(int, *float32, *float32, *float32, int, int, bool){nil,
			gemmPacked1x16AVX2, gemmPacked2x16AVX2, gemmPacked3x16AVX2,
			gemmPacked4x16AVX2, gemmPacked5x16AVX2, gemmPacked6x16AVX2},
		direct: []func(int, *float32, int, int, *float32, int, *float32, int, int, bool){nil,
			gemmDirect1x16AVX2, gemmDirect2x16AVX2, gemmDirect3x16AVX2,
			gemmDirect4x16AVX2, gemmDirect5x16AVX2, gemmDirect6x16AVX2},
		packing: []func(int, *float32, *float32, int, *float32, *float32, int, int, bool){nil,
			gemmPacking1x16AVX2, gemmPacking2x16AVX2, gemmPacking3x16AVX2,
			gemmPacking4x16AVX2, gemmPacking5x16AVX2, gemmPacking6x16AVX2},
		across:    []acrossKernel{nil, gemmAcross1x16AVX2, gemmAcross2x16AVX2, gemmAcross3x16AVX2, gemmAcross4x16AVX2},
		wide:      []wideKernel{{}, {64, gemmWide1x64AVX2}, {32, gemmWide2x32AVX2}, {32, gemmWide3x32AVX2}, {}},
		transpose: transposeAVX2, copyA: copyPanels1AVX2, copyB: copyPanels2AVX2,
	}
}

func avx512Reduce() reduceTable {
	return reduceTable{sum: sumAVX512, max: maxOfAVX512, min: minOfAVX512, dot: dotAVX512, expSum: expSumAVX512,
		sumSquares: sumSquaresAVX512, colSum: colSumAVX512, colDot: colDotAVX512, lanes: 16,
		toBF16: toBF16AVX512, toF16: toF16AVX512, fromBF16: fromBF16AVX512, fromF16: fromF16AVX512}
}

func avx2Reduce() reduceTable {
	return reduceTable{sum: sumAVX2, max: maxOfAVX2, min: minOfAVX2, dot: dotAVX2, expSum: expSumAVX2,
		sumSquares: sumSquaresAVX2, colSum: colSumAVX2, colDot: colDotAVX2, lanes: 8,
		toBF16: toBF16AVX2, toF16: toF16AVX2, fromBF16: fromBF16AVX2, fromF16: fromF16AVX2}
}
