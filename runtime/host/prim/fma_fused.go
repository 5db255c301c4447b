//go:build arm64 || ppc64le || riscv64 || s390x

package prim

// fma32 is x*y + z with one rounding: on these processors the compiler fuses the
// two. TestFMA32 would tell if it stopped doing so.
func fma32(x, y, z float32) float32 { return x*y + z }
