package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// LibraryName is the driver's library.
const LibraryName = "libcuda.so.1"

// Driver is the loaded library.
type Driver struct {
	fn functions
}

type result = int32

// functions is the driver's entry points, each bound to the symbol in its tag. The _v2 forms are those that headers since
// CUDA 4 mean by the plain name.
type functions struct {
	Init               func(flags uint32) result                                                           `cuda:"cuInit"`
	DriverGetVersion   func(version *int32) result                                                         `cuda:"cuDriverGetVersion"`
	GetErrorName       func(code result, name **byte) result                                               `cuda:"cuGetErrorName"`
	GetErrorString     func(code result, text **byte) result                                               `cuda:"cuGetErrorString"`
	DeviceGetCount     func(n *int32) result                                                               `cuda:"cuDeviceGetCount"`
	DeviceGet          func(device *int32, ordinal int32) result                                           `cuda:"cuDeviceGet"`
	DeviceGetName      func(name *byte, size int32, device int32) result                                   `cuda:"cuDeviceGetName"`
	DeviceTotalMem     func(bytes *uint64, device int32) result                                            `cuda:"cuDeviceTotalMem_v2"`
	DeviceGetAttribute func(value *int32, attribute int32, device int32) result                            `cuda:"cuDeviceGetAttribute"`
	DeviceGetBusID     func(id *byte, size int32, device int32) result                                     `cuda:"cuDeviceGetPCIBusId"`
	DeviceByBusID      func(device *int32, id *byte) result                                                `cuda:"cuDeviceGetByPCIBusId"`
	CanAccessPeer      func(can *int32, device, peer int32) result                                         `cuda:"cuDeviceCanAccessPeer"`
	PrimaryRetain      func(ctx *uintptr, device int32) result                                             `cuda:"cuDevicePrimaryCtxRetain"`
	PrimaryRelease     func(device int32) result                                                           `cuda:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent      func(ctx uintptr) result                                                            `cuda:"cuCtxSetCurrent"`
	CtxSynchronize     func() result                                                                       `cuda:"cuCtxSynchronize"`
	MemGetInfo         func(free, total *uint64) result                                                    `cuda:"cuMemGetInfo_v2"`
	MemAlloc           func(p *uint64, bytes uint64) result                                                `cuda:"cuMemAlloc_v2"`
	MemFree            func(p uint64) result                                                               `cuda:"cuMemFree_v2"`
	IpcGetMemHandle    func(h *memoryHandle, p uint64) result                                              `cuda:"cuIpcGetMemHandle"`
	IpcOpenMemHandle   func(p *uint64, h memoryHandle, flags uint32) result                                `cuda:"cuIpcOpenMemHandle_v2"`
	IpcCloseMemHandle  func(p uint64) result                                                               `cuda:"cuIpcCloseMemHandle"`
	MemcpyDtoDAsync    func(to, from uint64, bytes uint64, stream uintptr) result                          `cuda:"cuMemcpyDtoDAsync_v2"`
	MemsetD32Async     func(p uint64, value uint32, count uint64, stream uintptr) result                   `cuda:"cuMemsetD32Async"`
	ModuleLoadDataEx   func(m *uintptr, image *byte, n uint32, opts *int32, values *uintptr) result        `cuda:"cuModuleLoadDataEx"`
	ModuleUnload       func(m uintptr) result                                                              `cuda:"cuModuleUnload"`
	ModuleGetFunction  func(f *uintptr, m uintptr, name *byte) result                                      `cuda:"cuModuleGetFunction"`
	FuncGetAttribute   func(value *int32, attribute int32, f uintptr) result                               `cuda:"cuFuncGetAttribute"`
	FuncSetAttribute   func(f uintptr, attribute, value int32) result                                      `cuda:"cuFuncSetAttribute"`
	LaunchKernelEx     func(config *launchConfig, f uintptr, params *unsafe.Pointer, extra uintptr) result `cuda:"cuLaunchKernelEx"`
	StreamCreate       func(s *uintptr, flags uint32) result                                               `cuda:"cuStreamCreate"`
	StreamPriorities   func(least, most *int32) result                                                     `cuda:"cuCtxGetStreamPriorityRange"`
	StreamCreateAt     func(s *uintptr, flags uint32, priority int32) result                               `cuda:"cuStreamCreateWithPriority"`
	StreamWriteValue   func(s uintptr, at uint64, value, flags uint32) result                              `cuda:"cuStreamWriteValue32_v2"`
	StreamWaitValue    func(s uintptr, at uint64, value, flags uint32) result                              `cuda:"cuStreamWaitValue32_v2"`
	StreamDestroy      func(s uintptr) result                                                              `cuda:"cuStreamDestroy_v2"`
	StreamQuery        func(s uintptr) result                                                              `cuda:"cuStreamQuery"`
	StreamWaitEvent    func(s, e uintptr, flags uint32) result                                             `cuda:"cuStreamWaitEvent"`
	StreamSynchronize  func(s uintptr) result                                                              `cuda:"cuStreamSynchronize"`
	EventCreate        func(e *uintptr, flags uint32) result                                               `cuda:"cuEventCreate"`
	EventDestroy       func(e uintptr) result                                                              `cuda:"cuEventDestroy_v2"`
	EventRecord        func(e, s uintptr) result                                                           `cuda:"cuEventRecord"`
	EventSynchronize   func(e uintptr) result                                                              `cuda:"cuEventSynchronize"`
	EventElapsedTime   func(ms *float32, start, end uintptr) result                                        `cuda:"cuEventElapsedTime"`
	MemAllocHost       func(p *unsafe.Pointer, bytes uint64) result                                        `cuda:"cuMemAllocHost_v2"`
	MemFreeHost        func(p unsafe.Pointer) result                                                       `cuda:"cuMemFreeHost"`
	MemcpyHtoDAsync    func(to uint64, from unsafe.Pointer, bytes uint64, stream uintptr) result           `cuda:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoHAsync    func(to unsafe.Pointer, from uint64, bytes uint64, stream uintptr) result           `cuda:"cuMemcpyDtoHAsync_v2"`
	BeginCapture       func(stream uintptr, mode int32) result                                             `cuda:"cuStreamBeginCapture_v2"`
	EndCapture         func(stream uintptr, graph *uintptr) result                                         `cuda:"cuStreamEndCapture"`
	GraphInstantiate   func(exec *uintptr, graph uintptr, flags uint64) result                             `cuda:"cuGraphInstantiateWithFlags"`
	GraphLaunch        func(exec, stream uintptr) result                                                   `cuda:"cuGraphLaunch"`
	GraphExecDestroy   func(exec uintptr) result                                                           `cuda:"cuGraphExecDestroy"`
	GraphDestroy       func(graph uintptr) result                                                          `cuda:"cuGraphDestroy"`
	AddressReserve     func(p *uint64, bytes, alignment, address, flags uint64) result                     `cuda:"cuMemAddressReserve"`
	AddressFree        func(p, bytes uint64) result                                                        `cuda:"cuMemAddressFree"`
	MemCreate          func(handle *uint64, bytes uint64, properties *allocation, flags uint64) result     `cuda:"cuMemCreate"`
	MemRelease         func(handle uint64) result                                                          `cuda:"cuMemRelease"`
	MemMap             func(p, bytes, offset, handle, flags uint64) result                                 `cuda:"cuMemMap"`
	MemUnmap           func(p, bytes uint64) result                                                        `cuda:"cuMemUnmap"`
	MemSetAccess       func(p, bytes uint64, access *accessTo, n uint64) result                            `cuda:"cuMemSetAccess"`
	MemGranularity     func(bytes *uint64, properties *allocation, option int32) result                    `cuda:"cuMemGetAllocationGranularity"`
	TensorMapEncode    func(m *[128]byte, dataType int32, rank uint32, address uint64, dims, strides *uint64, box, steps *uint32,
		interleave, swizzle, promotion, fill int32) result `cuda:"cuTensorMapEncodeTiled"`
}

// ErrNoDriver is what errors.Is finds where the driver's library is missing.
var ErrNoDriver = errors.New("no NVIDIA driver on this machine")

// ErrNoGPU is what errors.Is finds where there is a driver, but no GPU that it may use.
var ErrNoGPU = errors.New("the NVIDIA driver sees no GPU")

// ErrOldDriver is what errors.Is finds where the driver doesn't know what kernels need.
var ErrOldDriver = errors.New("the NVIDIA driver is too old, CUDA 12.0 is needed")

// noDevice is CUDA_ERROR_NO_DEVICE.
const noDevice = 100

// Open loads the driver and starts it.
func Open() (*Driver, error) {
	lib, err := purego.Dlopen(LibraryName, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %s can't be loaded (%v)", ErrNoDriver, LibraryName, err)
	}
	d := &Driver{}
	if err := d.bind(lib); err != nil {
		return nil, err
	}
	code := d.fn.Init(0)
	if code == noDevice {
		return nil, ErrNoGPU
	}
	if err := d.check(code, "starting the driver"); err != nil {
		return nil, err
	}
	return d, nil
}

// Version is the newest CUDA version the driver knows, as 13000 for 13.0.
func (d *Driver) Version() (int, error) {
	var v int32
	err := d.check(d.fn.DriverGetVersion(&v), "asking for the driver's version")
	return int(v), err
}

// Error is a failed call of the driver.
type Error struct {
	Code  int
	Name  string // CUDA_ERROR_...
	Text  string // the driver's explanation
	Doing string // what was being done
	Log   string // the assembler's words, where it was assembling
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%s)", e.Doing, e.Name, e.Text)
	if e.Log != "" {
		s += ": " + strings.Join(strings.FieldsFunc(e.Log, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	}
	return s
}

// byKernel reports whether an error is what a kernel did wrong while it ran. Every call says so from then on.
func byKernel(err error) bool {
	const illegalAddress, launchTimeout, assertion, firstFault, lastFault = 700, 702, 710, 714, 719 // illegal instructions and misaligned addresses are among the last
	var e *Error
	return errors.As(err, &e) && (e.Code == illegalAddress || e.Code == launchTimeout || e.Code == assertion || e.Code >= firstFault && e.Code <= lastFault)
}

// Is makes errors.Is compare codes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ErrOutOfMemory is what errors.Is finds where device memory ran out.
var ErrOutOfMemory error = &Error{Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY"}

// TooOld is the error of a driver that knows CUDA up to a version as Version gives it, nil where that is new enough.
func TooOld(version int) error {
	if version >= oldestDriver {
		return nil
	}
	return fmt.Errorf("%w: it knows CUDA %d.%d", ErrOldDriver, version/1000, version%1000/10)
}

// check makes an error of a failed call's code.
func (d *Driver) check(code result, doing string, args ...any) error {
	if code == 0 {
		return nil
	}
	var name, text *byte
	d.fn.GetErrorName(code, &name)
	d.fn.GetErrorString(code, &text)
	e := &Error{Code: int(code), Name: cString(name), Text: cString(text), Doing: fmt.Sprintf(doing, args...)}
	if e.Name == "" {
		e.Name = fmt.Sprintf("CUDA error %d", code)
	}
	return e
}

// cString copies a C string that the driver keeps.
func cString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// nulTerminated is s as a C string.
func nulTerminated(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}

// Device is a GPU.
type Device struct {
	d       *Driver
	id      int32
	Ordinal int
	Name    string
	Major   int // compute capability
	Minor   int
	SMs     int   // multiprocessors
	Memory  int64 // bytes
	Shared  int   // bytes of shared memory a block can have
	L2      int   // bytes

	clock, memoryClock int // kHz, the highest
	busBits            int // of memory
}

// Devices lists the GPUs; an error where there is none.
func (d *Driver) Devices() ([]*Device, error) {
	var n int32
	if err := d.check(d.fn.DeviceGetCount(&n), "counting GPUs"); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, ErrNoGPU
	}
	devices := make([]*Device, n)
	for i := range devices {
		dev, err := d.device(i)
		if err != nil {
			return nil, err
		}
		devices[i] = dev
	}
	return devices, nil
}

// The driver's numbers for device attributes.
const (
	attrSMs         = 16
	attrClock       = 13
	attrMemoryClock = 36
	attrBusBits     = 37
	attrL2          = 38
	attrMajor       = 75
	attrMinor       = 76
	attrShared      = 97
)

func (d *Driver) device(ordinal int) (*Device, error) {
	dev := &Device{d: d, Ordinal: ordinal}
	if err := d.check(d.fn.DeviceGet(&dev.id, int32(ordinal)), "looking at GPU %d", ordinal); err != nil {
		return nil, err
	}
	var name [256]byte
	var memory uint64
	if err := d.check(d.fn.DeviceGetName(&name[0], int32(len(name)), dev.id), "asking for the name of GPU %d", ordinal); err != nil {
		return nil, err
	}
	if err := d.check(d.fn.DeviceTotalMem(&memory, dev.id), "asking for the memory of GPU %d", ordinal); err != nil {
		return nil, err
	}
	dev.Name, dev.Memory = cString(&name[0]), int64(memory)
	for _, a := range []struct {
		number int32
		to     *int
	}{{attrSMs, &dev.SMs}, {attrL2, &dev.L2}, {attrMajor, &dev.Major}, {attrMinor, &dev.Minor}, {attrShared, &dev.Shared},
		{attrClock, &dev.clock}, {attrMemoryClock, &dev.memoryClock}, {attrBusBits, &dev.busBits}} {
		var v int32
		if err := d.check(d.fn.DeviceGetAttribute(&v, a.number, dev.id), "asking for attribute %d of GPU %d", a.number, ordinal); err != nil {
			return nil, err
		}
		*a.to = int(v)
	}
	return dev, nil
}

// Context is what is done on one GPU: memory, modules and streams belong to it.
type Context struct {
	d      *Driver
	Device *Device
	handle uintptr
}

// Open makes the GPU's context.
func (dev *Device) Open() (*Context, error) {
	c := &Context{d: dev.d, Device: dev}
	if err := c.d.check(c.d.fn.PrimaryRetain(&c.handle, dev.id), "opening GPU %d (%s)", dev.Ordinal, dev.Name); err != nil {
		return nil, err
	}
	return c, nil
}

// Close gives the context up.
func (c *Context) Close() error {
	return c.d.check(c.d.fn.PrimaryRelease(c.Device.id), "closing GPU %d", c.Device.Ordinal)
}

// do runs a call with the context current on this thread.
func (c *Context) do(call func() result, doing string, args ...any) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.d.check(c.d.fn.CtxSetCurrent(c.handle), "making GPU %d current", c.Device.Ordinal); err != nil {
		return err
	}
	return c.d.check(call(), doing, args...)
}

// Synchronize waits for everything that was started, and reports what went wrong meanwhile.
func (c *Context) Synchronize() error {
	return c.do(c.d.fn.CtxSynchronize, "waiting for GPU %d", c.Device.Ordinal)
}

// MemoryInfo is the GPU's free and total memory in bytes, as the driver sees it.
func (c *Context) MemoryInfo() (free, total int64, err error) {
	var f, t uint64
	err = c.do(func() result { return c.d.fn.MemGetInfo(&f, &t) }, "asking for the free memory of GPU %d", c.Device.Ordinal)
	return int64(f), int64(t), err
}
