//go:build !amd64

package prim

func nativeISAs() []string { return nil }

func nativeKernels(string) *Kernels { return nil }
