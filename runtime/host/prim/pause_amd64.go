package prim

// pause tells the processor that the caller is spinning.
//
//go:noescape
func pause()
