package runtime

import "blutrain/formats"

// Bencher is a Program that can launch kernels of its artifact by themselves, in a function or not.
type Bencher interface {
	Program
	// DeviceName is what kind of device it runs on: NVIDIA H200.
	DeviceName() string
	// Launches is how often a function launches each kernel.
	Launches(function string) map[string]int
	// Load makes code of kernels ready, several at a time.
	Load(kernels []string) error
	// Alone gives memory to kernels that take the same references: random numbers to read, of means and deviations that normal
	// lists (0 and 1 without it), and places to write to.
	Alone(kernels []string, normal []float64, seed uint64) (Alone, error)
}

// Alone is kernels that can be launched by themselves, all on the same inputs. The outputs of the first are apart from those that the
// others share.
type Alone interface {
	// Outputs is what each of a kernel's outputs is made of.
	Outputs() []Extent
	// Run launches kernel i, whose outputs have been filled with NaN, and waits for it.
	Run(i int) error
	// Read is n bytes of an output of kernel i, from a place on, whatever lies there. They are lost with the next Read of it.
	Read(i, output int, at, n int64) ([]byte, error)
	// Time is the seconds that n launches of kernel i take, one after the other without a pause.
	Time(i, n int) (float64, error)
	Close() error
}

// Extent is memory: elements and bytes, those between rows included.
type Extent struct {
	DType formats.DType
	Bytes int64
}
