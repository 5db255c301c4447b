package checkpoint

import (
	"fmt"
	"hash/crc32"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// sums gives the checksum of each chunk of a file that is made of these parts, several at a time.
func sums(image [][]byte, chunk int64) []string {
	size := imageSize(image)
	list := make([]string, chunkCount(size, chunk))
	_ = inParallel(max(1, runtime.GOMAXPROCS(0)/2), len(list), func(i int) error {
		sum, begin := uint32(0), int64(i)*chunk
		visitRange(image, begin, min(begin+chunk, size), func(b []byte) { sum = crc(sum, b) })
		list[i] = digits(sum)
		return nil
	})
	return list
}

// crc adds bytes to a CRC-32C. It is there to find damage, which it does at the speed of memory; SHA-256 would take from training, in
// the background of each save and before the first step of a resumed run, ten times the processor's time and more. Any damage of up
// to 32 bits in a row is found for certain, any other of a chunk but for one in 2^32.
func crc(sum uint32, b []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
}

func digits(sum uint32) string { return fmt.Sprintf("%08x", sum) }

func imageSize(image [][]byte) (n int64) {
	for _, part := range image {
		n += int64(len(part))
	}
	return n
}

// visitRange visits the bytes [begin, end) of what the parts make up.
func visitRange(image [][]byte, begin, end int64, visit func([]byte)) {
	at := int64(0)
	for _, part := range image {
		from, to := max(begin-at, 0), min(end-at, int64(len(part)))
		if from < to {
			visit(part[from:to])
		}
		at += int64(len(part))
	}
}

// inParallel calls do for 0 to n-1 in this order, with so many workers, until one fails.
func inParallel(workers, n int, do func(i int) error) error {
	var group errgroup.Group
	var next atomic.Int64
	var stop atomic.Bool
	for range min(workers, n) {
		group.Go(func() error {
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := do(i); err != nil {
					stop.Store(true)
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
