package peer

import "blutrain/dtms"

// Device is the GPU of a rank, as its runtime sees it. What a stream is given is done in this order. Reaches, Share and Map give an [OutOfReach] where
// processes or GPUs can't have each other's memory; their other errors are faults.
type Device interface {
	// ID names the GPU among those of the machine. Reaches says why this GPU can't use the memory of another, nil if it can.
	ID() (string, error)
	Reaches(id string) error

	// Share allocates memory of zeros that other processes can map by its handle, until Free.
	Share(bytes int64) (at uintptr, handle []byte, err error)
	Free(at uintptr) error
	// Map makes the memory of another process's handle this GPU's, until Unmap.
	Map(handle []byte) (at uintptr, err error)
	Unmap(at uintptr) error

	// NewStream makes a stream whose kernels go before others'.
	NewStream() (dtms.Stream, error)
	CloseStream(s dtms.Stream) error
	// After makes what s is given from now on wait for what the other stream was given so far.
	After(s, other dtms.Stream) error
	// Done reports whether all work on a stream has ended.
	Done(s dtms.Stream) (bool, error)

	// Copy copies bytes. Either end may be memory that was mapped.
	Copy(s dtms.Stream, to, from uintptr, bytes int64) error
	// Prepare makes ready what sums of so many terms need, since a device may not load code while streams wait for other ranks. Sum adds up float32 numbers in the order given; the sums go to each of the places.
	Prepare(terms int) error
	Sum(s dtms.Stream, to, from []uintptr, count int64) error
	// Write writes a word, in this GPU's memory or another's, once what the stream did before can be seen by all.
	Write(s dtms.Stream, at uintptr, word uint32) error
	// Await waits until the word in this GPU's memory is at least that: until int32(word there - word) is not negative.
	Await(s dtms.Stream, at uintptr, word uint32) error
}
