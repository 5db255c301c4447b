package blublas

// Tiles in shared memory are rows of 128 bytes under the 128-byte swizzle, which the copy engine writes and the matrix
// instructions read. A K-major tile of R rows is [R][128 bytes of k]; an MN-major one is [R/64][BK][64 elements].

const (
	rowBytes  = 128
	atomBytes = 8 * rowBytes // the swizzle repeats every 8 rows
)

// Swizzle is where byte `offset` of a tile lies, relative to the tile, which starts at a multiple of 1024: the 16-byte
// column is exclusive-ored with the row.
func Swizzle(offset int) int { return offset ^ offset>>3&0x70 }

// Descriptor is a wgmma matrix descriptor for the 128-byte swizzle.
type Descriptor struct {
	Address int // bytes, a multiple of 16
	Leading int // bytes from one block of 64 elements to the next (MN-major)
	Stride  int // bytes from 8 rows to the next 8
}

// Bits is the descriptor as the instruction takes it: addresses and offsets in units of 16 bytes at bits 0, 16 and 32,
// the kind of swizzle at bit 62.
func (d Descriptor) Bits() uint64 {
	const swizzle128 = 1
	field := func(n int) uint64 { return uint64(n>>4) & 0x3FFF }
	return field(d.Address&0x3FFFF) | field(d.Leading)<<16 | field(d.Stride)<<32 | swizzle128<<62
}

// tile is an operand's tile in shared memory.
type tile struct {
	rows, depth int  // extents along M or N, and along K, in elements
	size        int  // bytes an element
	mnMajor     bool // M or N is contiguous
}

// bytes is the size of the tile.
func (t tile) bytes() int { return t.rows * t.depth * t.size }

// offset is where element (row, k) lies before swizzling.
func (t tile) offset(row, k int) int {
	if t.mnMajor {
		per := rowBytes / t.size
		return row/per*t.depth*rowBytes + k*rowBytes + row%per*t.size
	}
	return row*rowBytes + k*t.size
}

// descriptor is the one for the part of the tile that starts at an element, without the tile's address.
func (t tile) descriptor(row, k int) Descriptor {
	d := Descriptor{Address: t.offset(row, k), Leading: 16, Stride: atomBytes}
	if t.mnMajor {
		d.Leading = t.depth * rowBytes
	}
	return d
}
