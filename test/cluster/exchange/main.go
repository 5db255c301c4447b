// Command exchange is a rank that holds what GPUs sum and gather to what it must be, for tensors of odd sizes, alone and several in a
// call, several calls under way: every element, bit for bit. It is started as blurun's ranks are (docs/cluster.md), one a GPU of this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"blutrain/dtms"
	"blutrain/dtms/connect"
	"blutrain/dtms/launch"
	"blutrain/dtms/nccl"
	"blutrain/dtms/peer"
	"blutrain/formats"
	"blutrain/runtime/cuda"
)

type options struct {
	By string `enum:"nccl,peer" default:"peer" help:"What moves memory between GPUs: nccl or peer (${default})."`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("exchange"), kong.Description("Hold what GPUs sum and gather to what it must be."))
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "exchange: error:", err)
		os.Exit(1)
	}
}

func run(o options) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	place, err := launch.Detect(os.Environ())
	if err != nil {
		return err
	}
	world, err := connect.Connect(ctx, place, connect.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			world.Abort(err)
		}
		err = errors.Join(err, world.Close())
	}()
	g, err := open(ctx, o, place, world)
	if err != nil {
		return err
	}
	begun, elements := time.Now(), int64(0)
	for i, b := range bundles() {
		for _, op := range []dtms.Op{dtms.AllReduce, dtms.ReduceScatter, dtms.AllGather} {
			n, err := g.try(ctx, op, b, i%2 == 1)
			if err != nil {
				return fmt.Errorf("%s of %v: %w", op, b, err)
			}
			elements += n
		}
	}
	if place.Rank == 0 {
		fmt.Printf("%s, %d ranks: %d elements are right, %.1f s\n", o.By, place.Size, elements, time.Since(begun).Seconds())
	}
	return errors.Join(g.comm.Close(), g.close())
}

// bundles are tensors that go in one call: their elements.
func bundles() [][]int64 {
	return [][]int64{
		{1}, {2}, {3}, {1, 1}, {5, 0, 7}, {63}, {64}, {65}, {1000}, {4099}, {65537}, {768, 1, 768 * 768, 3, 2304}, {1<<20 + 1}, {5_000_003, 11, 2_000_000},
		{100 << 18},
	}
}

// gpu is this rank's.
type gpu struct {
	device *cuda.Context
	stream *cuda.Stream
	comm   *dtms.Communicator
	close  func() error
}

func open(ctx context.Context, o options, place launch.Place, control *dtms.Communicator) (*gpu, error) {
	driver, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	devices, err := driver.Devices()
	if err != nil {
		return nil, err
	}
	if o.By == "nccl" && place.Size > 2 {
		return nil, errors.New("NCCL adds up more than two terms in an order of its own: --by nccl is for two ranks")
	}
	g := &gpu{}
	if g.device, err = devices[place.Rank%len(devices)].Open(); err != nil {
		return nil, err
	}
	if g.stream, err = g.device.NewStream(); err != nil {
		return nil, err
	}
	if control, err = control.Split(ctx, 0, place.Rank); err != nil {
		return nil, err
	}
	if o.By == "nccl" {
		g.close = g.stream.Close
		g.comm, err = nccl.Connect(ctx, nccl.Config{Control: control, Device: g.device})
		return g, err
	}
	peers, err := cuda.NewPeers(g.device)
	if err != nil {
		return nil, err
	}
	lanes, err := peer.NewLanes(peers)
	if err != nil {
		return nil, err
	}
	g.close = func() error { return errors.Join(lanes.Close(), peers.Close(), g.stream.Close()) }
	g.comm, err = peer.Connect(ctx, peer.Config{Control: control, Device: peers, Lanes: lanes})
	return g, err
}

// fill is what a rank has at i: sums of it depend on the order in which they are made.
func fill(rank int, i int64) float32 {
	x := uint64(i+1)*0x9e3779b97f4a7c15 ^ uint64(rank+1)*0xbf58476d1ce4e5b9
	x ^= x >> 29
	return float32(int32(x)) * float32(math.Ldexp(1, -int(x>>33%40)))
}

// try makes a call twice before it waits for either, and looks at every element of both.
func (g *gpu) try(ctx context.Context, op dtms.Op, counts []int64, inPlace bool) (int64, error) {
	var under [2]dtms.Pending
	var results []result
	var free []cuda.Pointer
	defer func() {
		for _, p := range free {
			_ = g.device.Free(p)
		}
	}()
	for i := range under {
		var calls []dtms.Call
		for _, count := range counts {
			r, in, err := g.tensor(op, count, inPlace)
			if err != nil {
				return 0, err
			}
			free = append(free, r.base...)
			results = append(results, r)
			calls = append(calls, dtms.Call{Op: op, In: in, Out: dtms.Device(formats.F32, uintptr(r.at), r.count), Stream: dtms.Stream(g.stream.Handle())})
		}
		under[i] = g.comm.StartAll(ctx, calls)
	}
	if err := errors.Join(under[0].Wait(), under[1].Wait()); err != nil {
		return 0, err
	}
	elements := int64(0)
	for _, r := range results {
		got := make([]float32, r.count)
		if err := g.device.Download(dtms.Of(got).Data(), r.at); err != nil {
			return 0, err
		}
		for i, x := range got {
			if want := g.want(op, r.each, int64(i)); math.Float32bits(x) != math.Float32bits(want) {
				return 0, fmt.Errorf("rank %d: element %d of %d is %v, not %v", g.comm.Rank(), i, r.count, x, want)
			}
		}
		elements += r.count
	}
	return elements, nil
}

// result is where a call's result will be, and what was allocated for it.
type result struct {
	at          cuda.Pointer
	count, each int64 // elements, of all and of each rank's block
	base        []cuda.Pointer
}

// tensor makes one with this rank's numbers.
func (g *gpu) tensor(op dtms.Op, count int64, inPlace bool) (r result, in dtms.Memory, err error) {
	n, rank := int64(g.comm.Size()), int64(g.comm.Rank())
	ins, outs := count, count
	switch op {
	case dtms.ReduceScatter:
		ins *= n
	case dtms.AllGather:
		outs *= n
	}
	room := 4*max(ins, outs) + 4
	at, err := g.device.Alloc(room)
	if err != nil {
		return r, in, err
	}
	r = result{at: at, count: outs, each: count, base: []cuda.Pointer{at}}
	from := at
	switch {
	case !inPlace:
		if r.at, err = g.device.Alloc(room); err != nil {
			return r, in, err
		}
		r.base = append(r.base, r.at)
	case op == dtms.ReduceScatter:
		r.at += cuda.Pointer(4 * rank * count)
	case op == dtms.AllGather:
		from += cuda.Pointer(4 * rank * count)
	}
	numbers := make([]float32, ins)
	for i := range numbers {
		numbers[i] = fill(int(rank), int64(i))
	}
	return r, dtms.Device(formats.F32, uintptr(from), ins), g.device.Upload(from, dtms.Of(numbers).Data())
}

// want is what element i of a result must be.
func (g *gpu) want(op dtms.Op, each, i int64) float32 {
	if op == dtms.AllGather {
		return fill(int(i/each), i%each)
	}
	if op == dtms.ReduceScatter {
		i += int64(g.comm.Rank()) * each
	}
	sum := fill(0, i)
	for r := 1; r < g.comm.Size(); r++ {
		sum += fill(r, i)
	}
	return sum
}
