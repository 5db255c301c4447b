package blu

import "math/bits"

// philox is the counter-based generator Philox 4x32 with 10 rounds: four random words for each counter and key.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	const (
		m0, m1 = 0xD2511F53, 0xCD9E8D57 // multipliers
		w0, w1 = 0x9E3779B9, 0xBB67AE85 // Weyl sequence of the key: golden ratio, sqrt(3) - 1
	)
	for range 10 {
		hi0, lo0 := bits.Mul32(m0, counter[0])
		hi1, lo1 := bits.Mul32(m1, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += w0
		key[1] += w1
	}
	return counter
}

// randomWords is the block of element i of a stream.
func randomWords(seed, stream, i uint64) [4]uint32 {
	return philox([4]uint32{uint32(i), uint32(i >> 32), uint32(stream), uint32(stream >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
}
