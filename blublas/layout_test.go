package blublas

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The copy engine's 128-byte swizzle, written out: 16-byte column c of row r goes to column c xor (r mod 8).
func TestSwizzle(t *testing.T) {
	for row := range 64 {
		for column := range 8 {
			for b := range 16 {
				require.Equal(t, row*128+(column^row%8)*16+b, Swizzle(row*128+column*16+b))
			}
		}
	}
}

// read is where a matrix instruction finds element (row, k) of the operand that a descriptor describes, by the rules of
// PTX for the 128-byte swizzle: K-major, an atom is 8 rows of 128 bytes and the next 8 rows are Stride away; MN-major, an
// atom is 128 bytes along MN and 8 of k, the next 128 bytes are Leading away and the next 8 of k Stride.
func read(d Descriptor, mnMajor bool, size, row, k int) int {
	if !mnMajor {
		return Swizzle(d.Address + row/8*d.Stride + row%8*rowBytes + k*size)
	}
	per := rowBytes / size
	return Swizzle(d.Address + row/per*d.Leading + row%per*size + k/8*d.Stride + k%8*rowBytes)
}

// What the copy engine writes is what the matrix instructions read, for every part of a tile that a kernel's descriptors
// name, in both layouts.
func TestDescriptors(t *testing.T) {
	for _, tc := range []struct {
		name string
		tile tile
		step int // depth of an instruction
	}{
		{"bf16 K-major", tile{128, 64, 2, false}, 16},
		{"bf16 MN-major", tile{256, 64, 2, true}, 16},
		{"tf32 K-major", tile{192, 32, 4, false}, 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			memory := make([][2]int, tc.tile.bytes()/tc.tile.size) // which element lies where
			for row := range tc.tile.rows {
				for k := range tc.tile.depth {
					memory[boxed(tc.tile, row, k)/tc.tile.size] = [2]int{row, k}
				}
			}
			for row0 := 0; row0 < tc.tile.rows; row0 += 64 {
				for k0 := 0; k0 < tc.tile.depth; k0 += tc.step {
					d := tc.tile.descriptor(row0, k0)
					for row := range 64 {
						for k := range tc.step {
							at := read(d, tc.tile.mnMajor, tc.tile.size, row, k)
							require.Equal(t, [2]int{row0 + row, k0 + k}, memory[at/tc.tile.size])
						}
					}
				}
			}
		})
	}
}

// boxed is where the copy engine puts an element of a tile: boxes of 128 bytes along the contiguous dimension, one after
// another, each swizzled.
func boxed(t tile, row, k int) int {
	if !t.mnMajor {
		return Swizzle(row*rowBytes + k*t.size)
	}
	per := rowBytes / t.size
	return row/per*t.depth*rowBytes + Swizzle(k*rowBytes+row%per*t.size)
}

func TestDescriptorBits(t *testing.T) {
	d := Descriptor{Address: 0x2400, Leading: 8192, Stride: 1024}
	require.Equal(t, uint64(0x240)|uint64(512)<<16|uint64(64)<<32|uint64(1)<<62, d.Bits())
}

// Staging holds every result of 16 rows once, and neither the lanes that write at one time nor those that read share a bank. Pairs are
// written by half a warp at a time, fours read by a quarter.
func TestStaging(t *testing.T) {
	for _, s := range []staging{{32}, {64}} {
		seen := map[int]bool{}
		for row := range 16 {
			for col := range s.columns {
				at := s.at(row, col)
				require.False(t, seen[at])
				require.Less(t, at, s.bytes())
				seen[at] = true
			}
		}
		conflictFree := func(lanes, words int, at func(lane int) int) {
			banks := map[int]bool{}
			for lane := range lanes {
				for w := range words {
					bank := at(lane)/4%32 + w
					require.False(t, banks[bank], "lane %d", lane)
					banks[bank] = true
				}
			}
		}
		for j := range s.columns / 8 {
			for half := range 2 {
				conflictFree(16, 2, func(lane int) int { return s.at(4*half+lane/4, 8*j+2*(lane%4)) })
			}
		}
		across := s.columns / 4
		for quarter := range 4 {
			conflictFree(8, 4, func(lane int) int { lane += 8 * quarter; return s.at(lane/across, 4*(lane%across)) })
		}
	}
}
