package cuda

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Without the driver's library there is one clear error.
func TestNoDriver(t *testing.T) {
	if out, err := exec.Command("sh", "-c", "ldconfig -p | grep "+LibraryName).Output(); err == nil && len(out) > 0 {
		t.Skip("this machine has the driver")
	}
	_, err := Open()
	require.ErrorContains(t, err, "no NVIDIA driver on this machine: libcuda.so.1 can't be loaded")
	require.False(t, strings.Contains(err.Error(), "\n"))
}

// The structures the driver reads have the sizes and places of its header.
func TestLaunchStructures(t *testing.T) {
	require.Equal(t, uintptr(56), unsafe.Sizeof(launchConfig{}))
	require.Equal(t, uintptr(32), unsafe.Offsetof(launchConfig{}.stream))
	require.Equal(t, uintptr(40), unsafe.Offsetof(launchConfig{}.attributes))
	require.Equal(t, uintptr(48), unsafe.Offsetof(launchConfig{}.count))
	require.Equal(t, uintptr(72), unsafe.Sizeof(launchAttribute{}))
	require.Equal(t, uintptr(8), unsafe.Offsetof(launchAttribute{}.value))
}

func TestTensorMapAlignment(t *testing.T) {
	for range 100 {
		m := &TensorMap{}
		p := m.data()
		require.Zero(t, uintptr(unsafe.Pointer(p))%64)
		require.Same(t, p, m.data())
	}
}

func TestErrors(t *testing.T) {
	err := fmt.Errorf("training: %w", &Error{Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY", Text: "out of memory", Doing: "allocating 8 bytes on GPU 0"})
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.EqualError(t, err, "training: allocating 8 bytes on GPU 0: CUDA_ERROR_OUT_OF_MEMORY (out of memory)")
	require.False(t, errors.Is(&Error{Code: 1}, ErrOutOfMemory))
}

func TestPack(t *testing.T) {
	m := &TensorMap{}
	values, _, err := pack([]any{Pointer(0x1234), int32(-5), float32(1.5), m})
	require.NoError(t, err)
	require.Equal(t, Pointer(0x1234), *(*Pointer)(values[0]))
	require.Equal(t, int32(-5), *(*int32)(values[1]))
	require.Equal(t, float32(1.5), *(*float32)(values[2]))
	require.Equal(t, unsafe.Pointer(m.data()), values[3])
	_, _, err = pack([]any{"text"})
	require.ErrorContains(t, err, "parameter 0 is a string")
}

// Shapes that don't belong together are refused before the driver is asked.
func TestTiled(t *testing.T) {
	_, err := (&Context{}).Tiled(BFloat16, 0, []int{64, 64}, nil, []int{64, 64}, Swizzle128)
	require.ErrorContains(t, err, "2 dimensions, 0 strides")
}
