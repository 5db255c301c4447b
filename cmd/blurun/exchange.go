package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/nccl"
	"blutrain/dtms/peer"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/cuda"
)

// exchanger is where the memory is that bench --collectives exchanges, and what moves it.
type exchanger interface {
	// by is what moves an operation between GPUs, "" where there are none. makes reports whether it is there.
	by(op dtms.Op) runtime.GPUEngine
	makes(op dtms.Op) bool
	// prepare puts a call's memory in place, in with its values. run makes the call and says how long it took.
	prepare(call dtms.Call, in, out []float32) (run func(ctx context.Context) (time.Duration, error), free func() error, err error)
	// result reads what the last call gave.
	result(out []float32) error
	Close() error
}

// newExchanger is that of a device: the process's memory, or a GPU for each rank.
func newExchanger(ctx context.Context, j *job, device string) (exchanger, error) {
	name, number, numbered := strings.Cut(device, ":")
	switch {
	case device == "" || device == "cpu":
		return host{j.world}, j.forGPUs("cpu")
	case name != "cuda":
		return nil, usagef("--collectives with --device %s: there are cpu and cuda", device)
	}
	ordinal := j.localRank
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, usagef("--device %s: expected cuda or cuda:N", device)
		}
		ordinal = n
	}
	return newGPU(ctx, j, ordinal)
}

// host is memory of the process.
type host struct{ world *dtms.Communicator }

func (h host) by(dtms.Op) runtime.GPUEngine { return "" }
func (h host) makes(dtms.Op) bool           { return true }

func (h host) prepare(call dtms.Call, in, out []float32) (func(context.Context) (time.Duration, error), func() error, error) {
	call.In, call.Out = dtms.Of(in), dtms.Of(out)
	run := func(ctx context.Context) (time.Duration, error) {
		begin := time.Now()
		err := h.world.Start(ctx, call).Wait()
		return time.Since(begin), err
	}
	return run, func() error { return nil }, nil
}

func (h host) result([]float32) error { return nil } // it is there already

func (h host) Close() error { return nil }

// gpu is memory of a GPU, which NCCL moves, or copies between GPUs.
type gpu struct {
	device     *cuda.Context
	peers      *cuda.Peers
	lanes      *peer.Lanes
	between    runtime.GPUEngine // what was asked for
	ranks      int
	comms      map[runtime.GPUEngine]*dtms.Communicator // by NCCL, by copies: those that there are
	siblings   dtms.Siblings
	stream     *cuda.Stream
	start, end *cuda.Event
	out        cuda.Pointer // of the call that is prepared
}

func newGPU(ctx context.Context, j *job, ordinal int) (g *gpu, err error) {
	driver, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	devices, err := driver.Devices()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(devices) {
		return nil, fmt.Errorf("there is no GPU %d: this machine has %d", ordinal, len(devices))
	}
	g = &gpu{between: j.between, ranks: j.size, comms: map[runtime.GPUEngine]*dtms.Communicator{}}
	if g.device, err = devices[ordinal].Open(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if g.stream, err = g.device.NewStream(); err != nil {
		return nil, err
	}
	if g.start, err = g.device.NewEvent(); err != nil {
		return nil, err
	}
	if g.end, err = g.device.NewEvent(); err != nil {
		return nil, err
	}
	return g, g.connect(ctx, j.world)
}

// connect starts what operations go by.
func (g *gpu) connect(ctx context.Context, world *dtms.Communicator) error {
	if cuda.ByPeers(g.between, dtms.AllReduce, formats.F32, g.ranks) {
		far := &peer.OutOfReach{}
		if err := g.open(ctx, world); err != nil && (g.between == runtime.PeerEngine || !errors.As(err, &far)) {
			return err
		}
	}
	if g.between == runtime.PeerEngine {
		return nil
	}
	control, err := world.Split(ctx, 0, world.Rank())
	if err != nil {
		return err
	}
	c, err := nccl.Connect(ctx, nccl.Config{Control: control, Device: g.device, Siblings: &g.siblings})
	if err != nil {
		return err
	}
	g.comms[runtime.NCCLEngine] = c
	return nil
}

// open opens the memory of the other ranks' GPUs.
func (g *gpu) open(ctx context.Context, world *dtms.Communicator) (err error) {
	if g.peers, err = cuda.NewPeers(g.device); err != nil {
		return err
	}
	if g.lanes, err = peer.NewLanes(g.peers); err != nil {
		return err
	}
	control, err := world.Split(ctx, 0, world.Rank())
	if err != nil {
		return err
	}
	c, err := peer.Connect(ctx, peer.Config{Control: control, Device: g.peers, Lanes: g.lanes, Siblings: &g.siblings})
	if err != nil {
		return err
	}
	g.comms[runtime.PeerEngine] = c
	return nil
}

func (g *gpu) by(op dtms.Op) runtime.GPUEngine {
	if g.comms[runtime.PeerEngine] != nil && cuda.ByPeers(g.between, op, formats.F32, g.ranks) {
		return runtime.PeerEngine
	}
	return runtime.NCCLEngine
}

func (g *gpu) makes(op dtms.Op) bool { return g.comms[g.by(op)] != nil }

// calls is how many calls are put on the stream at once: what is timed is the stream's work, not its beginning.
const calls = 20

func (g *gpu) prepare(call dtms.Call, in, out []float32) (func(context.Context) (time.Duration, error), func() error, error) {
	input, err := g.device.Alloc(4 * int64(len(in)))
	if err != nil {
		return nil, nil, err
	}
	output, err := g.device.Alloc(4 * int64(len(out)))
	if err != nil {
		return nil, nil, errors.Join(err, g.device.Free(input))
	}
	free := func() error { return errors.Join(g.device.Free(input), g.device.Free(output)) }
	if err := g.device.Upload(input, bytesOf(in)); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	g.out = output
	call.In, call.Out = dtms.Device(formats.F32, uintptr(input), int64(len(in))), dtms.Device(formats.F32, uintptr(output), int64(len(out)))
	call.Stream = dtms.Stream(g.stream.Handle())
	return func(ctx context.Context) (time.Duration, error) { return g.run(ctx, call) }, free, nil
}

// run makes the call several times, one after the other, and times them on the GPU.
func (g *gpu) run(ctx context.Context, call dtms.Call) (time.Duration, error) {
	var pending [calls]dtms.Pending
	if err := g.stream.Record(g.start); err != nil {
		return 0, err
	}
	for i := range pending {
		pending[i] = g.comms[g.by(call.Op)].Start(ctx, call)
	}
	if err := g.stream.Record(g.end); err != nil {
		return 0, err
	}
	for _, p := range pending {
		if err := p.Wait(); err != nil {
			return 0, err
		}
	}
	ms, err := g.end.Since(g.start)
	return time.Duration(ms / calls * float64(time.Millisecond)), err
}

func (g *gpu) result(out []float32) error { return g.device.Download(bytesOf(out), g.out) }

// Close releases what was opened.
func (g *gpu) Close() error {
	var faults []error
	for _, engine := range []runtime.GPUEngine{runtime.PeerEngine, runtime.NCCLEngine} { // in one order on all ranks
		if c := g.comms[engine]; c != nil {
			faults = append(faults, c.Close())
		}
	}
	if g.lanes != nil {
		faults = append(faults, g.lanes.Close())
	}
	if g.peers != nil {
		faults = append(faults, g.peers.Close())
	}
	for _, e := range []*cuda.Event{g.start, g.end} {
		if e != nil {
			faults = append(faults, e.Close())
		}
	}
	if g.stream != nil {
		faults = append(faults, g.stream.Close())
	}
	return errors.Join(append(faults, g.device.Close())...)
}

// bytesOf is the memory of numbers.
func bytesOf(x []float32) []byte { return dtms.Of(x).Data() }
