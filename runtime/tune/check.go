package tune

import (
	"encoding/binary"
	"fmt"
	"math"
	goruntime "runtime"
	"sync"

	"blutrain/formats"
	"blutrain/runtime"
)

// tolerance is by how much an element may differ from the program's kernel's, in proportion to it and to the root mean square of those
// around it: candidates add up in other orders, and round what is kept in 16 bits, or multiplied as such, at other places. A tile that
// is missing, or of other rows, is off by about 1.
func tolerance(precision string) float64 {
	if precision == "tf32" || precision == "bf16" {
		return 1.0 / 32
	}
	return 1e-3
}

// check runs kernel i and says what is wrong with its outputs, "" where nothing is: those of kernel 0 must be numbers, those of
// others what kernel 0's, which has run, are.
func check(a runtime.Alone, i int, tolerance float64) (off string, err error) {
	if err := a.Run(i); err != nil {
		return "", err
	}
	for n, out := range a.Outputs() {
		for at := int64(0); at < out.Bytes; {
			want, err := a.Read(0, n, at, out.Bytes-at)
			if err != nil {
				return "", err
			}
			got := want
			if i > 0 {
				if got, err = a.Read(i, n, at, int64(len(want))); err != nil {
					return "", err
				}
			}
			if off := compare(out.DType, want, got, tolerance); off != "" {
				return fmt.Sprintf("output %d %s", n, off), nil
			}
			at += int64(len(want))
		}
	}
	return "", nil
}

// element reads numbers of a type; nil: they are to be equal bit by bit.
func element(d formats.DType) (size int, read func([]byte) float64) {
	switch d {
	case formats.F32:
		return 4, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
	case formats.BF16:
		return 2, func(b []byte) float64 {
			return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		}
	}
	return int(d.Size()), nil
}

// fillBytes is what memory was filled with before a kernel ran: 0x7fc0 is no number as bfloat16, 0x7fc07fc0 none as float32.
var fillBytes = [4]byte{0xc0, 0x7f, 0xc0, 0x7f}

// compare says how some numbers differ from others, "" where they don't. What neither kernel wrote is between rows.
func compare(d formats.DType, want, got []byte, tolerance float64) string {
	size, read := element(d)
	if read == nil {
		if string(want) != string(got) {
			return "has other elements than the program's kernel gives"
		}
		return ""
	}
	n := len(want) / size
	workers := goruntime.GOMAXPROCS(0)
	share := (n + workers - 1) / workers * size
	found := make([]string, workers)
	var group sync.WaitGroup
	for w := range workers {
		from, to := min(w*share, n*size), min((w+1)*share, n*size)
		group.Go(func() { found[w] = compareFloats(want[from:to], got[from:to], size, read, tolerance) })
	}
	group.Wait()
	for _, s := range found {
		if s != "" {
			return s
		}
	}
	return ""
}

func compareFloats(want, got []byte, size int, read func([]byte) float64, tolerance float64) string {
	sum, n := 0.0, 0
	for at := 0; at < len(want); at += size {
		if x := read(want[at:]); x == x {
			sum, n = sum+x*x, n+1
		} else if string(want[at:at+size]) != string(fillBytes[:size]) {
			return "of the program's kernel has an element that is no number"
		}
	}
	rms := math.Sqrt(sum / float64(max(1, n)))
	for at := 0; at < len(want); at += size {
		x, y := read(want[at:]), read(got[at:])
		if !(math.Abs(x-y) <= tolerance*(math.Abs(x)+rms)) && string(want[at:at+size]) != string(got[at:at+size]) {
			return fmt.Sprintf("has an element %.6g where the program's kernel gives %.6g (root mean square %.2g)", y, x, rms)
		}
	}
	return ""
}
