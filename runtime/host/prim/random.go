package prim

import (
	"math"
	"unsafe"
)

// Random numbers come from Philox4x32-10 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", 2011), a function of a key and a counter. Element i of a stream is made
// from the words of one counter: key = (seed low, seed high), counter = (i low, i high,
// stream low, stream high). So any part of a stream can be made anywhere.

const (
	philoxM0, philoxM1 = 0xd2511f53, 0xcd9e8d57
	philoxW0, philoxW1 = 0x9e3779b9, 0xbb67ae85
	philoxRounds       = 10
)

type philoxKeys [2 * philoxRounds]uint32

func newPhiloxKeys(seed uint64) philoxKeys {
	var k philoxKeys
	k[0], k[1] = uint32(seed), uint32(seed>>32)
	for i := 2; i < len(k); i += 2 {
		k[i], k[i+1] = k[i-2]+philoxW0, k[i-1]+philoxW1
	}
	return k
}

// philox4 is the four words of one counter.
func philox4(k *philoxKeys, counter, stream uint64) [4]uint32 {
	c := [4]uint32{uint32(counter), uint32(counter >> 32), uint32(stream), uint32(stream >> 32)}
	for r := 0; r < len(k); r += 2 {
		p0, p1 := uint64(c[0])*philoxM0, uint64(c[2])*philoxM1
		c = [4]uint32{uint32(p1>>32) ^ c[1] ^ k[r], uint32(p1), uint32(p0>>32) ^ c[3] ^ k[r+1], uint32(p0)}
	}
	return c
}

// philoxWords writes the first word of n counters to w0 and, unless it is nil, the
// second to w1. c0 + n must not wrap around; n is a multiple of 16.
type philoxWords func(w0, w1, keys *uint32, c0, c1, c2, c3 uint32, n int)

func philoxGo(w0, w1, keys *uint32, c0, c1, c2, c3 uint32, n int) {
	k := (*philoxKeys)(unsafe.Pointer(keys))
	d0 := unsafe.Slice(w0, n)
	var d1 []uint32
	if w1 != nil {
		d1 = unsafe.Slice(w1, n)
	}
	for i := range n {
		w := philox4(k, uint64(c1)<<32|uint64(c0)+uint64(i), uint64(c3)<<32|uint64(c2))
		d0[i] = w[0]
		if d1 != nil {
			d1[i] = w[1]
		}
	}
}

// words writes the first words of the counters from start on to w0 and the second to w1,
// unless that is empty.
func (k *Kernels) words(w0, w1 []uint32, keys *philoxKeys, stream, start uint64) {
	for i := 0; i < len(w0); {
		at := start + uint64(i)
		n := int(min(uint64(len(w0)-i), 1<<32-at&(1<<32-1))) &^ 15 // up to where the low half wraps
		if n > 0 {
			var second *uint32
			if len(w1) > 0 {
				second = &w1[i : i+n][0]
			}
			k.philox(&w0[i], second, &keys[0], uint32(at), uint32(at>>32), uint32(stream), uint32(stream>>32), n)
			i += n
			continue
		}
		w := philox4(keys, at, stream)
		w0[i] = w[0]
		if len(w1) > 0 {
			w1[i] = w[1]
		}
		i++
	}
}

// PhiloxU32 writes the first words of counters start, start+1, ... of a stream.
func (k *Kernels) PhiloxU32(dst []uint32, seed, stream, start uint64) {
	keys := newPhiloxKeys(seed)
	k.words(dst, nil, &keys, stream, start)
}

// Uniform writes elements start, start+1, ... of a stream of numbers in [0, 1): the upper
// 24 bits of the first word, times 2^-24.
func (k *Kernels) Uniform(dst []float32, seed, stream, start uint64) {
	if len(dst) == 0 {
		return
	}
	w := Bits(dst)
	k.PhiloxU32(w, seed, stream, start)
	k.ops.uniform(&dst[0], &w[0], len(dst))
}

// Normal writes elements start, start+1, ... of a stream of normal numbers, made by
// Box and Muller's method in float64 and rounded once: mean + std sqrt(-2 ln u) cos(2 pi t),
// with u = (first word + 1) 2^-32 and t = (second word) 2^-32.
func (k *Kernels) Normal(dst []float32, seed, stream, start uint64, mean, std float64) {
	const block = 512
	keys := newPhiloxKeys(seed)
	type buffers struct {
		second [block]uint32
		z      [block]float64
	}
	b := new(buffers)
	for len(dst) > 0 {
		n := min(len(dst), block)
		w0, w1 := Bits(dst[:n]), b.second[:n]
		k.words(w0, w1, &keys, stream, start)
		whole := n &^ 7
		if whole > 0 {
			k.boxMuller(&b.z[0], &w0[0], &w1[0], whole)
		}
		for i := range dst[:whole] {
			dst[i] = roundNormal(b.z[i], mean, std, w0[i], w1[i])
		}
		for i := whole; i < n; i++ {
			dst[i] = float32(mean + std*boxMuller(w0[i], w1[i]))
		}
		dst, start = dst[n:], start+uint64(n)
	}
}

// boxMuller defines the transform.
func boxMuller(a, b uint32) float64 {
	u, t := (float64(a)+1)*0x1p-32, float64(b)*0x1p-32
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*t)
}

// roundNormal rounds mean + std*z, z being the transform of a and b to within 1e-14. Where that
// leaves the rounding open, about once in a million, the definition decides: so all
// instruction sets agree.
func roundNormal(z, mean, std float64, a, b uint32) float32 {
	v := mean + std*z
	slack := 2e-14*math.Abs(std) + 0x1p-51*math.Abs(v)
	if r := float32(v - slack); r == float32(v+slack) {
		return r
	}
	return float32(mean + std*boxMuller(a, b))
}

func boxMullerGo(dst *float64, w0, w1 *uint32, n int) {
	a, b := unsafe.Slice(w0, n), unsafe.Slice(w1, n)
	d := unsafe.Slice(dst, n)
	for i := range d {
		d[i] = boxMuller(a[i], b[i])
	}
}
