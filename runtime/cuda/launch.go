package cuda

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Config is how a kernel is launched.
type Config struct {
	Grid    int  // blocks, along x
	Threads int  // of a block
	Cluster int  // blocks of a cluster; 0 and 1: none
	Shared  int  // bytes of dynamic shared memory
	Overlap bool // may start before the kernel before it has ended (it must wait itself)
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	gridX, gridY, gridZ    uint32
	blockX, blockY, blockZ uint32
	shared                 uint32
	_                      uint32
	stream                 uintptr
	attributes             *launchAttribute
	count                  uint32
	_                      uint32
}

// launchAttribute is CUlaunchAttribute: a number and 64 bytes of value.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// The driver's numbers for launch attributes.
const (
	launchCluster = 4
	launchOverlap = 6
)

// Launch starts a kernel with its parameters: Pointer, *TensorMap, int32, uint32, float32 or int64.
func (s *Stream) Launch(f *Function, cfg Config, params ...any) error {
	values, keep, err := pack(params)
	if err != nil {
		return fmt.Errorf("launching kernel %s: %w", f.Name, err)
	}
	lc := &launchConfig{gridX: uint32(cfg.Grid), gridY: 1, gridZ: 1, blockX: uint32(cfg.Threads), blockY: 1, blockZ: 1,
		shared: uint32(cfg.Shared), stream: s.handle}
	var attributes []launchAttribute
	if cfg.Cluster > 1 {
		attributes = append(attributes, launchAttribute{id: launchCluster, value: [16]uint32{uint32(cfg.Cluster), 1, 1}})
	}
	if cfg.Overlap {
		attributes = append(attributes, launchAttribute{id: launchOverlap, value: [16]uint32{1}})
	}
	if len(attributes) > 0 {
		lc.attributes, lc.count = &attributes[0], uint32(len(attributes))
	}
	var first *unsafe.Pointer
	if len(values) > 0 {
		first = &values[0]
	}
	// The driver reads the parameters during the call; they must not move meanwhile.
	var pin runtime.Pinner
	defer pin.Unpin()
	for _, k := range keep {
		pin.Pin(k)
	}
	if lc.attributes != nil {
		pin.Pin(lc.attributes)
	}
	return s.c.do(func() result { return s.c.d.fn.LaunchKernelEx(lc, f.handle, first, 0) },
		"launching kernel %s (%d blocks of %d threads, clusters of %d, %d bytes of shared memory)", f.Name, cfg.Grid, cfg.Threads, max(cfg.Cluster, 1), cfg.Shared)
}

// pack makes the driver's list of pointers to parameters.
func pack(params []any) (values []unsafe.Pointer, keep []any, err error) {
	for i, p := range params {
		switch p := p.(type) {
		case Pointer:
			values, keep = packed(values, keep, p)
		case int32:
			values, keep = packed(values, keep, p)
		case uint32:
			values, keep = packed(values, keep, p)
		case int64:
			values, keep = packed(values, keep, p)
		case float32:
			values, keep = packed(values, keep, p)
		case *TensorMap:
			values, keep = append(values, unsafe.Pointer(p.data())), append(keep, p)
		default:
			return nil, nil, fmt.Errorf("parameter %d is a %T, which kernels don't take", i, p)
		}
	}
	return values, keep, nil
}

func packed[T any](values []unsafe.Pointer, keep []any, v T) ([]unsafe.Pointer, []any) {
	p := new(T)
	*p = v
	return append(values, unsafe.Pointer(p)), append(keep, p)
}
