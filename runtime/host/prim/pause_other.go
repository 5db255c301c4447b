//go:build !amd64

package prim

import "runtime"

// pause lets others run while the caller spins.
func pause() { runtime.Gosched() }
