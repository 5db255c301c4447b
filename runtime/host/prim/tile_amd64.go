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
		transpose: transposeAVX512, copyA: copyPanels1AVX512, copyB: copyPanels2AVX512,
	}
}

func avx2Tile() tileTable {
	return tileTable{
		rows: 6, cols: 16, lanes: 8,
		packed: []func(int, *float32, *float32, *float32, int, int, bool){nil,
			gemmPacked1x16AVX2, gemmPacked2x16AVX2, gemmPacked3x16AVX2,
			gemmPacked4x16AVX2, gemmPacked5x16AVX2, gemmPacked6x16AVX2},
		direct: []func(int, *float32, int, int, *float32, int, *float32, int, int, bool){nil,
			gemmDirect1x16AVX2, gemmDirect2x16AVX2, gemmDirect3x16AVX2,
			gemmDirect4x16AVX2, gemmDirect5x16AVX2, gemmDirect6x16AVX2},
		transpose: transposeAVX2, copyA: copyPanels1AVX2, copyB: copyPanels2AVX2,
	}
}
