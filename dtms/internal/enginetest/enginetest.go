// Package enginetest is the program that every engine must run with the same result: all operations on random data, each
// result held to what the documentation says, bit for bit. It runs within test processes as well as in tests.
package enginetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"slices"

	"blutrain/dtms"
	"blutrain/formats"
	"blutrain/ir"
)

// counts are the numbers of elements tried: none, fewer than ranks, odd, several.
var counts = []int64{0, 1, 2, 3, 7, 1000, 5003}

const (
	// large is a number of f32 of which four ranks' blocks are longer than a window of segments.
	large = 1_100_003
	// frames is a number of bytes that are several frames.
	frames = 600_001
)

var sumTypes = []formats.DType{formats.F32, formats.F64, formats.BF16, formats.F16, formats.I32, formats.I64}

// suite is one rank's run.
type suite struct {
	ctx    context.Context
	c      *dtms.Communicator
	digest hash.Hash
	serial uint64 // of the data set, the same on all ranks
}

// Run tries everything on one rank and returns a digest of all results that do not depend on the rank.
func Run(ctx context.Context, c *dtms.Communicator) (string, error) {
	s := &suite{ctx: ctx, c: c, digest: sha256.New()}
	for _, step := range []func() error{s.sums, s.long, s.moves, s.pairs, s.overlap, s.bundles, s.subgroups, s.traffic, s.refusals} {
		if err := step(); err != nil {
			return "", fmt.Errorf("rank %d of %d: %w", c.Rank(), c.Size(), err)
		}
	}
	return hex.EncodeToString(s.digest.Sum(nil)), nil
}

// data is what a rank contributes to data set serial: numbers of very different size, so that sums depend on their order.
func data(serial uint64, rank int, d formats.DType, count int64) []byte {
	r := rand.NewPCG(serial, uint64(rank))
	b := make([]byte, 0, count*int64(d.Size()))
	for range count {
		bits := r.Uint64()
		v := math.Float64frombits(bits&^(0x7ff<<52) | (1023-6+bits>>52%12)<<52) // sizes from 2^-6 to 2^5
		switch d {
		case formats.F32:
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case formats.F64:
			b = binary.NativeEndian.AppendUint64(b, math.Float64bits(v))
		case formats.BF16:
			b = binary.NativeEndian.AppendUint16(b, ir.BF16Bits(v))
		case formats.F16:
			b = binary.NativeEndian.AppendUint16(b, ir.F16Bits(v))
		case formats.I32:
			b = binary.NativeEndian.AppendUint32(b, uint32(bits))
		case formats.I64:
			b = binary.NativeEndian.AppendUint64(b, bits)
		default:
			b = append(b, byte(bits))
		}
	}
	return aligned(b)
}

// aligned is a copy of b that begins where elements of any type may.
func aligned(b []byte) []byte {
	words := make([]int64, len(b)/8+1)
	out := dtms.Of(words).Data()[:len(b)]
	copy(out, b)
	return out
}

// sum is the documented sum of all ranks' data, computed element by element.
func sum(d formats.DType, terms [][]byte) []byte {
	n := binary.NativeEndian
	out := bytes.Clone(terms[0])
	if len(terms) == 1 {
		return out
	}
	size := d.Size()
	for i := 0; i < len(out); i += size {
		switch d {
		case formats.F32:
			v := math.Float32frombits(n.Uint32(terms[0][i:]))
			for _, t := range terms[1:] {
				v += math.Float32frombits(n.Uint32(t[i:]))
			}
			n.PutUint32(out[i:], math.Float32bits(v))
		case formats.F64:
			v := math.Float64frombits(n.Uint64(terms[0][i:]))
			for _, t := range terms[1:] {
				v += math.Float64frombits(n.Uint64(t[i:]))
			}
			n.PutUint64(out[i:], math.Float64bits(v))
		case formats.BF16, formats.F16:
			widen, narrow := formats.BF16ToF32, ir.BF16Bits
			if d == formats.F16 {
				widen, narrow = formats.F16ToF32, ir.F16Bits
			}
			v := widen(n.Uint16(terms[0][i:]))
			for _, t := range terms[1:] {
				v += widen(n.Uint16(t[i:]))
			}
			n.PutUint16(out[i:], narrow(float64(v)))
		case formats.I32:
			v := n.Uint32(terms[0][i:])
			for _, t := range terms[1:] {
				v += n.Uint32(t[i:])
			}
			n.PutUint32(out[i:], v)
		case formats.I64:
			v := n.Uint64(terms[0][i:])
			for _, t := range terms[1:] {
				v += n.Uint64(t[i:])
			}
			n.PutUint64(out[i:], v)
		}
	}
	return out
}

// all is every rank's data of a new data set.
func (s *suite) all(d formats.DType, count int64) [][]byte {
	s.serial++
	out := make([][]byte, s.c.Size())
	for r := range out {
		out[r] = data(s.serial, r, d, count)
	}
	return out
}

// expect compares a result and, if all ranks have the same, adds it to the digest.
func (s *suite) expect(what string, d formats.DType, count int64, got, want []byte, everywhere bool) error {
	if !bytes.Equal(got, want) {
		i := 0
		for i < len(got) && got[i] == want[i] {
			i++
		}
		return fmt.Errorf("%s of %d %s: wrong from byte %d of %d on", what, count, d, i, len(want))
	}
	if everywhere {
		s.digest.Write(got)
	}
	return nil
}

func (s *suite) sums() error {
	n, me := int64(s.c.Size()), int64(s.c.Rank())
	for _, d := range sumTypes {
		for _, count := range counts {
			terms := s.all(d, count)
			want := sum(d, terms)
			out := aligned(make([]byte, len(want)))
			if err := s.c.AllReduce(s.ctx, dtms.Host(d, terms[me]), dtms.Host(d, out)); err != nil {
				return err
			}
			if err := s.expect("all-reduce", d, count, out, want, true); err != nil {
				return err
			}
			place := aligned(terms[me])
			if err := s.c.AllReduce(s.ctx, dtms.Host(d, place), dtms.Host(d, place)); err != nil {
				return err
			}
			if err := s.expect("all-reduce in place", d, count, place, want, false); err != nil {
				return err
			}
			if err := s.scattered(d, count/n, me); err != nil {
				return err
			}
		}
	}
	return nil
}

// long tries a sum of many segments.
func (s *suite) long() error {
	if s.c.Size() != 4 {
		return nil
	}
	terms := s.all(formats.F32, large)
	out := aligned(make([]byte, len(terms[0])))
	if err := s.c.AllReduce(s.ctx, dtms.Host(formats.F32, terms[s.c.Rank()]), dtms.Host(formats.F32, out)); err != nil {
		return err
	}
	return s.expect("all-reduce", formats.F32, large, out, sum(formats.F32, terms), true)
}

// scattered tries reduce-scatter, in place and not, and all-gather behind it, which together are an all-reduce.
func (s *suite) scattered(d formats.DType, count, me int64) error {
	n := int64(s.c.Size())
	terms := s.all(d, n*count)
	want := sum(d, terms)
	block := dtms.Host(d, want).Slice(me*count, (me+1)*count).Data()
	out := aligned(make([]byte, len(block)))
	if err := s.c.ReduceScatter(s.ctx, dtms.Host(d, terms[me]), dtms.Host(d, out)); err != nil {
		return err
	}
	if err := s.expect("reduce-scatter", d, count, out, block, false); err != nil {
		return err
	}
	place := dtms.Host(d, aligned(terms[me]))
	mine := place.Slice(me*count, (me+1)*count)
	if err := s.c.ReduceScatter(s.ctx, place, mine); err != nil {
		return err
	}
	if err := s.c.AllGather(s.ctx, mine, place); err != nil {
		return err
	}
	return s.expect("reduce-scatter and all-gather in place", d, count, place.Data(), want, true)
}

func (s *suite) moves() error {
	n, me := s.c.Size(), s.c.Rank()
	for _, d := range []formats.DType{formats.U8, formats.BF16, formats.F64} {
		for _, count := range counts {
			terms := s.all(d, count)
			out := aligned(make([]byte, n*len(terms[0])))
			if err := s.c.AllGather(s.ctx, dtms.Host(d, terms[me]), dtms.Host(d, out)); err != nil {
				return err
			}
			if err := s.expect("all-gather", d, count, out, bytes.Join(terms, nil), true); err != nil {
				return err
			}
			for root := range n {
				b := aligned(terms[me])
				if err := s.c.Broadcast(s.ctx, dtms.Host(d, b), root); err != nil {
					return err
				}
				if err := s.expect(fmt.Sprintf("broadcast from %d", root), d, count, b, terms[root], true); err != nil {
					return err
				}
			}
			if err := s.transposed(d, count, me); err != nil {
				return err
			}
			if err := s.turned(d, count); err != nil {
				return err
			}
		}
	}
	return s.c.Barrier(s.ctx)
}

func (s *suite) transposed(d formats.DType, count int64, me int) error {
	n := int64(s.c.Size())
	terms := s.all(d, n*count)
	var want []byte
	for _, t := range terms {
		want = append(want, dtms.Host(d, t).Slice(int64(me)*count, int64(me+1)*count).Data()...)
	}
	out := aligned(make([]byte, len(want)))
	if err := s.c.AllToAll(s.ctx, dtms.Host(d, terms[me]), dtms.Host(d, out)); err != nil {
		return err
	}
	return s.expect("all-to-all", d, count, out, want, false)
}

// turned sends around the ring by every number of ranks, all calls under way at once.
func (s *suite) turned(d formats.DType, count int64) error {
	n, me := s.c.Size(), s.c.Rank()
	terms, outs, calls := s.all(d, count), make([][]byte, n), make([]dtms.Pending, n)
	for shift := range n {
		outs[shift] = aligned(make([]byte, len(terms[0])))
		calls[shift] = s.c.Start(s.ctx, dtms.Call{Op: dtms.Permute, In: dtms.Host(d, terms[me]), Out: dtms.Host(d, outs[shift]), Peer: shift})
	}
	for shift, call := range calls {
		if err := call.Wait(); err != nil {
			return err
		}
		if err := s.expect(fmt.Sprintf("permute by %d", shift), d, count, outs[shift], terms[(me+n-shift)%n], false); err != nil {
			return err
		}
	}
	return nil
}

// pairs sends around the ring, both directions at once, as ring attention does.
func (s *suite) pairs() error {
	n, me := s.c.Size(), s.c.Rank()
	if n == 1 {
		return nil
	}
	next, previous := (me+1)%n, (me+n-1)%n
	for _, count := range append(slices.Clone(counts), frames) {
		terms := s.all(formats.U8, count)
		out := make([]byte, count)
		receive := s.c.Start(s.ctx, dtms.Call{Op: dtms.Recv, Out: dtms.Of(out), Peer: previous})
		send := s.c.Start(s.ctx, dtms.Call{Op: dtms.Send, In: dtms.Of(terms[me]), Peer: next})
		if err := send.Wait(); err != nil {
			return err
		}
		if err := receive.Wait(); err != nil {
			return err
		}
		if err := s.expect("send", formats.U8, count, out, terms[previous], false); err != nil {
			return err
		}
	}
	return nil
}

// overlap has many calls under way at once, and waits for them in another order.
func (s *suite) overlap() error {
	const calls = 24
	var pending []dtms.Pending
	var outs, wants [][]byte
	for i := range calls {
		count := int64(1000 * (i + 1))
		terms := s.all(formats.F32, count)
		out := aligned(make([]byte, 4*count))
		pending = append(pending, s.c.Start(s.ctx, dtms.Call{Op: dtms.AllReduce, In: dtms.Host(formats.F32, terms[s.c.Rank()]), Out: dtms.Host(formats.F32, out)}))
		outs, wants = append(outs, out), append(wants, sum(formats.F32, terms))
	}
	for i := calls - 1; i >= 0; i-- {
		if err := pending[i].Wait(); err != nil {
			return err
		}
		if err := s.expect("overlapped all-reduce", formats.F32, int64(len(outs[i])/4), outs[i], wants[i], true); err != nil {
			return err
		}
	}
	return nil
}

// bundles makes several calls at once, small ones and large ones, and compares them with the same calls one by one.
func (s *suite) bundles() error {
	n := int64(s.c.Size())
	for _, op := range []dtms.Op{dtms.AllReduce, dtms.ReduceScatter, dtms.AllGather, dtms.AllToAll, dtms.Permute} {
		var calls, single []dtms.Call
		for _, count := range append(slices.Clone(counts), 60_000) {
			in, out := count, count
			switch op {
			case dtms.ReduceScatter:
				in *= n
			case dtms.AllGather:
				out *= n
			case dtms.AllToAll:
				in, out = in*n, out*n
			}
			s.serial++
			given := data(s.serial, s.c.Rank(), formats.F32, in)
			made := func() dtms.Call {
				return dtms.Call{Op: op, In: dtms.Host(formats.F32, given), Out: dtms.Host(formats.F32, aligned(make([]byte, 4*out))), Peer: s.peer(op)}
			}
			calls, single = append(calls, made()), append(single, made())
		}
		pending := s.c.StartAll(s.ctx, calls)
		for _, c := range single {
			if err := s.c.Start(s.ctx, c).Wait(); err != nil {
				return err
			}
		}
		for range 2 {
			if err := pending.Wait(); err != nil {
				return err
			}
		}
		for i, c := range calls {
			if err := s.expect("bundled "+op.String(), formats.F32, c.Out.Count(), c.Out.Data(), single[i].Out.Data(), op == dtms.AllReduce || op == dtms.AllGather); err != nil {
				return err
			}
		}
		if err := s.c.StartAll(s.ctx, []dtms.Call{calls[0], {Op: dtms.Barrier}}).Wait(); err == nil {
			return fmt.Errorf("a bundle of different calls: no error")
		}
	}
	return nil
}

// peer is how far a permutation shifts.
func (s *suite) peer(op dtms.Op) int {
	if op == dtms.Permute {
		return s.c.Size() - 1
	}
	return 0
}

// subgroups makes a mesh: groups of even and of odd ranks in reverse order, and one group without rank 0, all busy at once.
func (s *suite) subgroups() error {
	n, me := s.c.Size(), s.c.Rank()
	half, err := s.c.Split(s.ctx, me%2, -me)
	if err != nil {
		return err
	}
	color := 7
	if me == 0 {
		color = -1
	}
	rest, err := s.c.Split(s.ctx, color, 0)
	if err != nil {
		return err
	}
	if (rest == nil) != (me == 0) {
		return fmt.Errorf("split: rank %d has a group of its own choice: %v", me, rest != nil)
	}
	var members, others []int
	for r := n - 1; r >= 0; r-- {
		if r%2 == me%2 {
			members = append(members, r)
		}
	}
	for r := 1; r < n; r++ {
		others = append(others, r)
	}
	for range 3 {
		all := s.all(formats.F32, 30_001)
		a, err := s.begin(half, members, all)
		if err != nil {
			return err
		}
		b := func() error { return nil }
		if rest != nil {
			if b, err = s.begin(rest, others, all); err != nil {
				return err
			}
		}
		if err := b(); err != nil {
			return err
		}
		if err := a(); err != nil {
			return err
		}
	}
	return nil
}

// begin starts an all-reduce in a group and returns what waits for it and checks it.
func (s *suite) begin(c *dtms.Communicator, members []int, all [][]byte) (func() error, error) {
	if c.Size() != len(members) || c.WorldRank(c.Rank()) != s.c.Rank() {
		return nil, fmt.Errorf("split: %d ranks, this one is rank %d of the job; %v expected", c.Size(), c.WorldRank(c.Rank()), members)
	}
	var terms [][]byte
	for i, r := range members {
		if c.WorldRank(i) != r {
			return nil, fmt.Errorf("split: rank %d is rank %d of the job, %d expected", i, c.WorldRank(i), r)
		}
		terms = append(terms, all[r])
	}
	out := aligned(make([]byte, len(terms[0])))
	p := c.Start(s.ctx, dtms.Call{Op: dtms.AllReduce, In: dtms.Host(formats.F32, terms[c.Rank()]), Out: dtms.Host(formats.F32, out)})
	return func() error {
		if err := p.Wait(); err != nil {
			return err
		}
		return s.expect("all-reduce of a group", formats.F32, int64(len(out)/4), out, sum(formats.F32, terms), false)
	}, nil
}

// traffic holds the bytes counted to the formulas at dtms.Traffic.
func (s *suite) traffic() error {
	n, me := int64(s.c.Size()), s.c.Rank()
	const block = 3000
	full := n * block
	before := s.c.Traffic()
	b, whole, out := make([]float32, block), make([]float32, full), make([]float32, full)
	if err := s.c.AllReduce(s.ctx, dtms.Of(whole), dtms.Of(out)); err != nil {
		return err
	}
	if err := s.c.ReduceScatter(s.ctx, dtms.Of(whole), dtms.Of(b)); err != nil {
		return err
	}
	if err := s.c.AllGather(s.ctx, dtms.Of(b), dtms.Of(whole)); err != nil {
		return err
	}
	if err := s.c.AllToAll(s.ctx, dtms.Of(whole), dtms.Of(out)); err != nil {
		return err
	}
	if err := s.c.Permute(s.ctx, dtms.Of(whole), dtms.Of(out), 1%int(n)); err != nil {
		return err
	}
	if err := s.c.Broadcast(s.ctx, dtms.Of(whole), 0); err != nil {
		return err
	}
	after := s.c.Traffic()
	part := 4 * full / n * (n - 1)
	root := 2 * part
	if me != 0 {
		root = 4 * full / n * (n - 2)
	}
	turned := 4 * full
	if n == 1 {
		turned = 0
	}
	for op, want := range map[dtms.Op]int64{dtms.Permute: turned, dtms.AllReduce: 2 * part, dtms.ReduceScatter: part, dtms.AllGather: part, dtms.AllToAll: part, dtms.Broadcast: root} {
		if got := after.Of(op).Sent - before.Of(op).Sent; got != want {
			return fmt.Errorf("%s: %d bytes sent, %d expected", op, got, want)
		}
		if calls := after.Of(op).Calls - before.Of(op).Calls; calls != 1 {
			return fmt.Errorf("%s: %d calls counted, 1 expected", op, calls)
		}
	}
	return nil
}

// refusals tries arguments that no engine may take. They concern this rank only and leave the communicator usable.
func (s *suite) refusals() error {
	five, n := make([]float32, 5), s.c.Size()
	bad := map[string]error{
		"unequal counts":        s.c.AllReduce(s.ctx, dtms.Of(five), dtms.Of(five[:4])),
		"bytes can't be summed": s.c.AllReduce(s.ctx, dtms.Of(make([]uint8, 4)), dtms.Of(make([]uint8, 4))),
		"overlap":               s.c.AllReduce(s.ctx, dtms.Of(five[:4]), dtms.Of(five[1:])),
		"no such root":          s.c.Broadcast(s.ctx, dtms.Of(five), n),
		"itself":                s.c.Send(s.ctx, dtms.Of(five), s.c.Rank()),
		"gathered count":        s.c.AllGather(s.ctx, dtms.Of(five), dtms.Of(make([]float32, 5*n+1))),
		"shift":                 s.c.Permute(s.ctx, dtms.Of(five), dtms.Of(make([]float32, 5)), n),
		"permuted in place":     s.c.Permute(s.ctx, dtms.Of(five), dtms.Of(five), 0),
		"misaligned":            s.c.Broadcast(s.ctx, dtms.Host(formats.F32, dtms.Of(five).Data()[1:17]), 0),
		"device memory":         s.c.Broadcast(s.ctx, dtms.Device(formats.F32, 4096, 5), 0),
	}
	for what, err := range bad {
		if err == nil {
			return fmt.Errorf("%s: no error", what)
		}
	}
	return s.c.Barrier(s.ctx)
}
