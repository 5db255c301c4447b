package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// sums gives the SHA-256 of each chunk of a file that is made of these parts, several at a time.
func sums(image [][]byte, chunk int64) []string {
	size := imageSize(image)
	list := make([]string, chunkCount(size, chunk))
	_ = inParallel(max(1, runtime.GOMAXPROCS(0)/2), len(list), func(i int) error {
		h := sha256.New()
		begin := int64(i) * chunk
		visitRange(image, begin, min(begin+chunk, size), func(b []byte) { h.Write(b) })
		list[i] = hex.EncodeToString(h.Sum(nil))
		return nil
	})
	return list
}

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
