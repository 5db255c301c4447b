package data

import "math/bits"

// permutation is a pseudorandom order of 0 .. n-1 that needs no memory: a Feistel network on the smallest even number of bits
// that holds n, applied again while its value lies outside (cycle walking; Black and Rogaway, CT-RSA 2002). The domain
// is less than 4n, so a value takes fewer than 4 applications on average.
type permutation struct {
	n    uint64
	half uint // bits of each half of the network
	keys [8]uint64
}

// newPermutation gives the order number epoch of a seed.
func newPermutation(n int64, seed uint64, epoch int64) permutation {
	p := permutation{n: uint64(n), half: uint(bits.Len64(uint64(n)-1)+1) / 2}
	key := Mix(Mix(seed) ^ uint64(epoch))
	for i := range p.keys {
		key = Mix(key)
		p.keys[i] = key
	}
	return p
}

// at is the place of i in the order.
func (p permutation) at(i int64) int64 {
	x := uint64(i)
	for {
		if x = p.once(x); x < p.n {
			return int64(x)
		}
	}
}

func (p permutation) once(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := x>>p.half, x&mask
	for _, key := range p.keys {
		left, right = right, left^Mix(right^key)&mask
	}
	return left<<p.half | right
}

// Mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) after one step of its counter.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
