package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"blutrain/dtms/peer"
)

// memoryHandle is CUipcMemHandle: how a process tells others of memory. It travels as bytes.
type memoryHandle struct{ words [8]uint64 }

func (h *memoryHandle) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(h)), unsafe.Sizeof(*h))
}

// apart makes the driver's answer where processes can't have each other's memory a peer.OutOfReach. All other answers, too little memory first of all,
// are faults.
func apart(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case invalidValue, invalidDevice, invalidContext, mapFailed, peerUnsupported, operatingSystem, invalidHandle, tooManyPeers, notPermitted, notSupported:
		return &peer.OutOfReach{Why: err.Error()}
	}
	return err
}

// The driver's codes for that (cuda.h). A GPU that is hidden is an invalid value or device, a process of another container an invalid context.
const (
	invalidValue    = 1
	invalidDevice   = 101
	invalidContext  = 201
	mapFailed       = 205
	peerUnsupported = 217
	operatingSystem = 304
	invalidHandle   = 400
	tooManyPeers    = 711
	notPermitted    = 800
	notSupported    = 801
)

// Share allocates memory of zeros that other processes can map by its handle. Free gives it back.
func (c *Context) Share(bytes int64) (p Pointer, handle []byte, err error) {
	if p, err = c.Alloc(bytes); err != nil {
		return 0, nil, err
	}
	if err = c.NullStream().Fill(p, 0, (bytes+3)/4); err == nil {
		err = c.NullStream().Synchronize()
	}
	h := &memoryHandle{}
	if err == nil {
		err = apart(c.do(func() result { return c.d.fn.IpcGetMemHandle(h, uint64(p)) }, "sharing %d bytes of GPU %d with other processes", bytes, c.Device.Ordinal))
	}
	if err != nil {
		_ = c.Free(p)
		return 0, nil, err
	}
	return p, h.bytes(), nil
}

// mapLazily turns on access to the memory's GPU when it is mapped.
const mapLazily = 1

// Map makes memory that another process shares usable here.
func (c *Context) Map(handle []byte) (Pointer, error) {
	h := &memoryHandle{}
	if len(handle) != len(h.bytes()) {
		return 0, fmt.Errorf("a handle of memory has %d bytes, not %d", len(h.bytes()), len(handle))
	}
	copy(h.bytes(), handle)
	var p uint64
	err := c.do(func() result { return c.d.fn.IpcOpenMemHandle(&p, *h, mapLazily) }, "mapping another process's memory on GPU %d", c.Device.Ordinal)
	return Pointer(p), apart(err)
}

// Unmap ends what Map began.
func (c *Context) Unmap(p Pointer) error {
	return c.do(func() result { return c.d.fn.IpcCloseMemHandle(uint64(p)) }, "unmapping another process's memory")
}

// BusID is where the GPU is in the machine, the same for all processes.
func (dev *Device) BusID() (string, error) {
	var id [32]byte
	err := dev.d.check(dev.d.fn.DeviceGetBusID(&id[0], int32(len(id)), dev.id), "asking where GPU %d is", dev.Ordinal)
	return cString(&id[0]), err
}

// Reaches says why the GPU can't use the memory of the one at another place, nil if it can.
func (dev *Device) Reaches(busID string) error {
	var other, can int32
	if err := dev.d.check(dev.d.fn.DeviceByBusID(&other, nulTerminated(busID)), "looking for the GPU at %s, which this process may not see", busID); err != nil {
		return apart(err)
	}
	if other == dev.id {
		return nil
	}
	if err := dev.d.check(dev.d.fn.CanAccessPeer(&can, dev.id, other), "asking whether GPU %d reaches the one at %s", dev.Ordinal, busID); err != nil {
		return err
	}
	if can == 0 {
		return &peer.OutOfReach{Why: fmt.Sprintf("GPU %d (%s) can't use the memory of the GPU at %s: there is no link between them", dev.Ordinal, dev.Name, busID)}
	}
	return nil
}

// NewUrgentStream makes a stream whose kernels get multiprocessors before those of others.
func (c *Context) NewUrgentStream() (*Stream, error) {
	s := &Stream{c: c}
	err := c.do(func() result {
		var least, most int32
		if code := c.d.fn.StreamPriorities(&least, &most); code != 0 {
			return code
		}
		return c.d.fn.StreamCreateAt(&s.handle, streamNonBlocking, most)
	}, "making a stream on GPU %d", c.Device.Ordinal)
	return s, err
}

// Write writes a word, once what the stream did before can be seen by all GPUs and processes.
func (s *Stream) Write(at Pointer, word uint32) error {
	return s.c.do(func() result { return s.c.d.fn.StreamWriteValue(s.handle, uint64(at), word, 0) }, "writing a word by a stream of GPU %d", s.c.Device.Ordinal)
}

// Await makes the stream wait until int32(word there - word) is not negative.
func (s *Stream) Await(at Pointer, word uint32) error {
	const atLeast = 0
	return s.c.do(func() result { return s.c.d.fn.StreamWaitValue(s.handle, uint64(at), word, atLeast) }, "waiting for a word on GPU %d", s.c.Device.Ordinal)
}
