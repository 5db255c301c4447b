package cuda

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/ir"
	"blutrain/runtime"
)

// late makes a driver put off what a stream is given until that stream is waited for: no stream waits for another, the null stream
// neither. Memory that isn't pinned is copied away at once.
func late(d *Driver) {
	queues := map[uintptr][]func(){}
	later := func(s uintptr, f func() result) result {
		queues[s] = append(queues[s], func() { f() })
		return 0
	}
	set, up, down, wait := d.fn.MemsetD32Async, d.fn.MemcpyHtoDAsync, d.fn.MemcpyDtoHAsync, d.fn.StreamSynchronize
	d.fn.MemsetD32Async = func(p uint64, word uint32, n uint64, s uintptr) result {
		return later(s, func() result { return set(p, word, n, s) })
	}
	d.fn.MemcpyHtoDAsync = func(to uint64, from unsafe.Pointer, n uint64, s uintptr) result {
		buffer := slices.Clone(unsafe.Slice((*byte)(from), n))
		return later(s, func() result { return up(to, unsafe.Pointer(unsafe.SliceData(buffer)), n, s) })
	}
	d.fn.MemcpyDtoHAsync = func(to unsafe.Pointer, from, n uint64, s uintptr) result {
		return later(s, func() result { return down(to, from, n, s) })
	}
	d.fn.StreamSynchronize = func(s uintptr) result {
		for _, f := range queues[s] {
			f()
		}
		queues[s] = nil
		return wait(s)
	}
}

// What is written to states is ordered behind what the program's stream does to them: a state is cleared when the program is opened, and
// that may take longer than reading the first weights.
func TestUploadsAreInOrder(t *testing.T) {
	p := standInOf(t, runtime.Options{}, nil, late)
	want, got := bytes.Repeat([]byte{1, 2, 3, 4}, 16), make([]byte, 64)
	require.NoError(t, p.WriteStateAt("w", 0, want[:32]))
	require.NoError(t, p.WriteStateAt("w", 32, want[32:]))
	require.NoError(t, p.stream.Synchronize())
	require.NoError(t, p.ReadState("w", got))
	require.Equal(t, want, got)
	require.NoError(t, p.zero(p.states["w"], 64))
	require.NoError(t, p.ReadState("w", got), "behind that")
	require.Equal(t, make([]byte, 64), got)
	require.NoError(t, p.WriteState("w", want))
	require.NoError(t, p.ReadState("w", got))
	require.Equal(t, want, got)
	require.NoError(t, p.Close())
}

// Constants are in memory once the program's stream has come to them.
func TestConstants(t *testing.T) {
	p := standInOf(t, runtime.Options{}, nil, late)
	c := dialects.NewContext()
	words := func(ws ...uint32) (b []byte) {
		for _, w := range ws {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	}
	for _, x := range []struct {
		value string
		elem  string
		want  []byte
	}{
		{"dense<[1.0e+00, 2.0e+00]> : tensor<2xf32>", "2xf32", words(0x3f800000, 0x40000000)},
		{"dense<1.0e+00> : tensor<3xf32>", "3xf32", words(0x3f800000, 0x3f800000, 0x3f800000)},
		{"dense<1.0e+00> : tensor<5xbf16>", "5xbf16", bytes.Repeat([]byte{0x80, 0x3f}, 5)},
		{"dense<7> : tensor<2xi64>", "2xi64", words(7, 0, 7, 0)},
		{"dense<-1> : tensor<2xi64>", "2xi64", bytes.Repeat([]byte{255}, 16)},
		{"dense<true> : tensor<7xi1>", "7xi1", bytes.Repeat([]byte{1}, 7)},
		{"dense<1.0e+00> : tensor<0x4xf32>", "0x4xf32", nil},
	} {
		ref := constant(t, c, x.value, x.elem)
		at, n, err := p.constant(ref)
		require.NoError(t, err, x.value)
		require.EqualValues(t, len(x.want), n, x.value)
		got := make([]byte, n)
		require.NoError(t, p.stream.Download(got, at))
		require.True(t, bytes.Equal(x.want, got), "%s is %v", x.value, got)
	}
	p.ctx.d.fn.MemGetInfo = func(free, total *uint64) result { return 0 }
	_, _, err := p.constant(constant(t, c, "dense<1.0e+00> : tensor<1099511627776xf32>", "2xf32"))
	require.ErrorContains(t, err, "constants needs 4096.0 GiB", "it hasn't so much")
	require.NoError(t, p.Close())
}

// constant is a reference to a constant.
func constant(t *testing.T, c *ir.Context, value, elem string) (ref *ir.Op) {
	t.Helper()
	m, err := ir.Parse(c, "m.mlir", []byte("builtin.module {\n  exec.func @f attributes {arena = 0 : i64} {\n    %x = exec.ref {offset = 0 : i64, space = \"const\", value = "+value+
		"} : () -> memref<"+elem+">\n    exec.end\n  }\n}\n"))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, m))
	ir.Walk(m, func(op *ir.Op) ir.WalkResult {
		if op.Is(exec.Ref) {
			ref = op
		}
		return ir.Advance
	})
	return ref
}
