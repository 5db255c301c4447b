package cuda

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/dtms/nccl"
	"blutrain/dtms/peer"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/collective"
)

// Collectives run on a stream of their own, beside the kernels: it waits for what the kernels' stream has been given when one
// begins, and the kernels' stream waits for it where the program does. Graphs hold what lies between: a call, with its roll call and its
// deadline, is made anew each time.

// network is what a program's collectives need. All ranks start the communicators of their groups in one order, that of lines, and end them so: to
// destroy one of NCCL's is something that the ranks of a node do together (NCCL's user guide on ncclCommDestroy), so that two ranks that
// begin with different ones wait for each other.
type network struct {
	comms    map[line]*dtms.Communicator // between GPUs; none for a group of one rank
	siblings dtms.Siblings
	stream   *Stream
	before   *Event
	peers    *Peers // what peer communicators work with; nil: there are none
	lanes    *peer.Lanes
	far      map[string]*peer.OutOfReach // groups whose GPUs can't have each other's memory, where NCCL may do instead
}

// line is a communicator between GPUs: a group's by NCCL, or by copies into each other's memory.
type line struct {
	group string
	peers bool
}

// lines are all that there can be, in order. Whether a group's GPUs reach each other is known before NCCL, which does for those that don't, starts.
func lines() []line {
	var all []line
	for _, group := range artifact.Groups() {
		all = append(all, line{group, true}, line{group, false})
	}
	return all
}

// line is the one that a collective takes.
func (p *program) line(m *meeting) line {
	l := line{group: m.spec.Group}
	if c := p.options.Communicator(l.group); c != nil && (p.network == nil || p.network.far[l.group] == nil) {
		l.peers = ByPeers(p.engine(), m.spec.Operation(), storedType(m.elem), c.Size())
	}
	return l
}

// engine is what a program's collectives go by. Left to itself that is copies where all of them are for copies, so that no program has communicators of both
// kinds unless it was told to: that has not been measured.
func (p *program) engine() runtime.GPUEngine {
	if e := p.options.Between; e == runtime.PeerEngine || e == runtime.NCCLEngine {
		return e
	}
	for _, f := range p.functions {
		for _, s := range f.steps {
			if s.begin == nil {
				continue
			}
			c := p.options.Communicator(s.begin.spec.Group)
			if c != nil && c.Size() > 1 && !ByPeers(runtime.AutoEngine, s.begin.spec.Operation(), storedType(s.begin.elem), c.Size()) {
				return runtime.NCCLEngine
			}
		}
	}
	return runtime.PeerEngine
}

// ByPeers reports whether an operation between so many ranks is for copies into each other's memory. On two GPUs steps of training are faster so than by NCCL
// where gradients are summed by all-reduces, and slower with ZeRO's reduce-scatters and all-gathers; more GPUs have not been measured.
func ByPeers(engine runtime.GPUEngine, op dtms.Op, elem formats.DType, ranks int) bool {
	switch engine {
	case runtime.PeerEngine:
		return peer.Takes(op, elem)
	case runtime.NCCLEngine:
		return false
	}
	return op == dtms.AllReduce && peer.Takes(op, elem) && ranks == 2
}

// connect starts what the program's collectives of several ranks take.
func (p *program) connect(ctx context.Context) (err error) {
	used := p.lines()
	if len(used) == 0 {
		return nil
	}
	n := &network{comms: map[line]*dtms.Communicator{}, far: map[string]*peer.OutOfReach{}}
	p.network = n
	if n.stream, err = p.ctx.NewStream(); err != nil {
		return err
	}
	if n.before, err = p.ctx.NewEvent(); err != nil {
		return err
	}
	for _, l := range lines() {
		mesh := p.options.Communicator(l.group)
		if !used[l] || mesh == nil || mesh.Size() == 1 {
			continue
		}
		comm, err := p.join(ctx, l, mesh)
		far := &peer.OutOfReach{}
		if l.peers && p.options.Between != runtime.PeerEngine && errors.As(err, &far) {
			n.far[l.group], used[line{l.group, false}] = far, true
			continue
		}
		if err != nil {
			return fmt.Errorf("group %s: %w", l.group, err)
		}
		n.comms[l] = comm
	}
	return nil
}

// lines are those that the program's collectives take: what the manifest lists is for people.
func (p *program) lines() map[line]bool {
	used := map[line]bool{}
	for _, f := range p.functions {
		for _, s := range f.steps {
			if s.begin != nil {
				used[p.line(s.begin)] = true
			}
		}
	}
	return used
}

var _ runtime.Linked = (*program)(nil)

// Links says what moves memory between the GPUs of the program's ranks, and why it isn't copies where these would be faster.
func (p *program) Links() string {
	if p.network == nil {
		return ""
	}
	var engines []string
	why := ""
	for _, l := range lines() {
		engine := string(runtime.NCCLEngine)
		if l.peers {
			engine = string(runtime.PeerEngine)
		}
		if p.network.comms[l] != nil && !slices.Contains(engines, engine) {
			engines = append(engines, engine)
		}
		if far := p.network.far[l.group]; far != nil {
			why = " (" + far.Why + ")"
		}
	}
	return strings.Join(engines, ", ") + why
}

// join makes a communicator between GPUs. The mesh's carries its control messages, in a group of its own so that no call of others comes
// between.
func (p *program) join(ctx context.Context, l line, mesh *dtms.Communicator) (*dtms.Communicator, error) {
	n := p.network
	control, err := mesh.Split(ctx, 0, mesh.Rank())
	if err != nil {
		return nil, err
	}
	if !l.peers {
		return nccl.Connect(ctx, nccl.Config{Control: control, Device: p.ctx, Siblings: &n.siblings})
	}
	if n.peers == nil {
		if n.peers, err = NewPeers(p.ctx); err != nil {
			return nil, err
		}
		if n.lanes, err = peer.NewLanes(n.peers); err != nil {
			return nil, err
		}
	}
	c, err := peer.Connect(ctx, peer.Config{Control: control, Device: n.peers, Lanes: n.lanes, Siblings: &n.siblings, Self: p.self})
	if far := (*peer.OutOfReach)(nil); errors.As(err, &far) {
		if left := control.Close(); left != nil {
			return nil, left
		}
	}
	return c, err
}

// Bind makes the GPU current on the calling thread: the context is the device of NCCL's communicators.
func (c *Context) Bind() (release func(), err error) {
	goruntime.LockOSThread()
	if err := c.d.check(c.d.fn.CtxSetCurrent(c.handle), "making GPU %d current", c.Device.Ordinal); err != nil {
		goruntime.UnlockOSThread()
		return nil, err
	}
	return goruntime.UnlockOSThread, nil
}

// Done reports whether all work on a stream has ended.
func (c *Context) Done(s dtms.Stream) (bool, error) {
	return (&Stream{c: c, handle: uintptr(s)}).Done()
}

// abort ends what is under way between GPUs.
func (n *network) abort(reason error) {
	if n == nil {
		return
	}
	for _, c := range n.comms {
		c.Abort(reason)
	}
}

func (n *network) close() error {
	if n == nil {
		return nil
	}
	var faults []error
	for _, l := range lines() {
		if c := n.comms[l]; c != nil {
			faults = append(faults, c.Close())
		}
	}
	if n.lanes != nil {
		faults = append(faults, n.lanes.Close())
	}
	if n.peers != nil {
		faults = append(faults, n.peers.Close())
	}
	if n.before != nil {
		faults = append(faults, n.before.Close())
	}
	if n.stream != nil {
		faults = append(faults, n.stream.Close())
	}
	return errors.Join(faults...)
}

// meeting is a collective of a function.
type meeting struct {
	spec    collective.Spec
	counts  [][2]int64 // elements of each source and its destination
	elem    ir.Type
	done    *Event
	pending dtms.Pending // of the call that runs; nil: none, or nothing to wait for
	began   time.Time
}

// decodeCollective decodes the beginning of a collective. That its places have the sizes and layouts it needs is what the
// operation's verifier says, that they lie within their storage what places are made with.
func (p *program) decodeCollective(op *ir.Op, places map[*ir.Value]place) (step, error) {
	spec, err := collective.Decode(op, p.options)
	if err != nil {
		return step{}, err
	}
	m := &meeting{spec: spec, elem: op.Operand(0).Elem()}
	s := step{begin: m, location: location(op.Loc())}
	n := op.NumOperands() / 2
	for i, v := range op.Operands() {
		s.refs = append(s.refs, places[v])
		if i < n {
			from, to := ir.NumElements(v.Shape()), ir.NumElements(op.Operand(n+i).Shape())
			m.counts = append(m.counts, [2]int64{from, to})
		}
	}
	return s, nil
}

// decodeWait decodes the end of a collective, which has begun: the verifier of functions says so.
func (f *function) decodeWait(op *ir.Op) step {
	s := step{location: location(op.Loc())}
	for i := range f.steps {
		if m := f.steps[i].begin; m != nil && m.spec.ID == op.Attrs().IntOr("id", 0) {
			s.wait = m
		}
	}
	return s
}

// communicate begins or ends a collective, in order with what the streams have been given.
func (f *function) communicate(s *step) error {
	n := f.p.network
	if s.wait != nil {
		return f.p.stream.After(s.wait.done)
	}
	m := s.begin
	if m.done == nil {
		var err error
		if m.done, err = f.p.ctx.NewEvent(); err != nil {
			return err
		}
	}
	if err := f.p.stream.Record(n.before); err != nil {
		return err
	}
	if err := n.stream.After(n.before); err != nil {
		return err
	}
	if err := f.begin(s); err != nil {
		return err
	}
	return n.stream.Record(m.done)
}

// begin puts a collective on its stream: a call of a communicator, or on the only rank there is a copy.
func (f *function) begin(s *step) error {
	n, m := f.p.network, s.begin
	c := n.comms[f.p.line(m)]
	if c == nil {
		if err := f.p.alone(m); err != nil {
			return err
		}
	}
	var in, out []dtms.Memory
	half := len(s.refs) / 2
	for i, count := range m.counts {
		from, to := f.address(s.refs[i]), f.address(s.refs[half+i])
		if c == nil {
			if bytes := count[0] * ir.ByteSize(m.elem); from != to && bytes > 0 {
				if err := n.stream.Copy(to, from, bytes); err != nil {
					return err
				}
			}
			continue
		}
		in = append(in, dtms.Device(storedType(m.elem), uintptr(from), count[0]))
		out = append(out, dtms.Device(storedType(m.elem), uintptr(to), count[1]))
	}
	m.began = time.Now()
	if c != nil {
		m.pending = c.StartAll(f.p.options.CallContext(), m.spec.Calls(c, in, out, dtms.Stream(n.stream.handle)))
		f.flying = append(f.flying, m)
	}
	return nil
}

// alone says why a collective can't be a copy.
func (p *program) alone(m *meeting) error {
	if c := p.options.Communicator(m.spec.Group); c != nil && c.Size() > 1 {
		return fmt.Errorf("%s: its %d ranks were not connected", m.spec, c.Size())
	}
	return m.spec.Alone()
}

// land waits for the collectives of a call, in their order, and says which one went wrong first. When it returns none is under way.
func (f *function) land() error {
	var first error
	for _, m := range f.flying {
		if err := m.land(); err != nil && first == nil {
			first = err
		}
	}
	f.flying = nil
	return first
}

// land waits until a collective has ended on its stream and all ranks have begun it.
func (m *meeting) land() error {
	if m.pending == nil {
		return nil
	}
	err := m.pending.Wait()
	if m.pending = nil; err != nil {
		return fmt.Errorf("%s: %w", m.spec, err)
	}
	return nil
}

// failed ends what is under way after a failure, and tells the other ranks where they take part in the function.
func (f *function) failed(err error) error {
	if !f.meets {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	err = f.p.options.Failed(f.name, err)
	f.p.network.abort(err)
	_ = f.land() // which fails, since the call did
	return err
}

// visitCollective shows the beginning or the end of a collective to a visitor, which runs it.
func (f *function) visitCollective(s *step, visit runtime.Visitor) error {
	m, waits := s.begin, false
	if m == nil {
		m, waits = s.wait, true
	}
	t := &runtime.Step{Location: s.location, Collective: &runtime.Collective{ID: m.spec.ID, Op: m.spec.Op, Group: m.spec.Group, Bytes: m.spec.Bytes, Waits: waits}}
	ran := false
	err := visit(t, func() error {
		if ran {
			return fmt.Errorf("a step is run twice")
		}
		ran = true
		if err := f.communicate(s); err != nil || !waits {
			return err
		}
		err := m.land()
		t.Collective.Began, t.Collective.Ended = m.began, time.Now()
		return errors.Join(err, f.p.stream.Synchronize())
	})
	if err == nil && !ran {
		err = fmt.Errorf("a step was not run")
	}
	return err
}

// span is a part of a function's steps: those from first to end, exclusive, which a graph can hold, or a collective's.
type span struct {
	first, end int
	meets      bool
}

// cut divides a function's steps at the collectives. The first part and the last are for a graph, if of nothing but the copies of inputs
// and outputs.
func cut(steps []step) []span {
	spans := []span{{}}
	for i := range steps {
		if steps[i].begin != nil || steps[i].wait != nil {
			spans = append(spans, span{i, i + 1, true}, span{i + 1, i + 1, false})
			continue
		}
		spans[len(spans)-1].end = i + 1
	}
	last := len(spans) - 1
	kept := spans[:0]
	for i, s := range spans {
		if s.meets || s.end > s.first || i == 0 || i == last {
			kept = append(kept, s)
		}
	}
	return kept
}

// part is a span and, where it has one, its graph.
type part struct {
	span
	graph *graph
}

// record makes the graphs of a function.
func (f *function) record() error {
	spans := cut(f.steps)
	for i, s := range spans {
		p := part{span: s}
		if !s.meets {
			var err error
			if p.graph, err = f.p.stream.capture(func() error { return f.span(s, i == 0, i == len(spans)-1) }); err != nil {
				return err
			}
		}
		f.parts = append(f.parts, p)
	}
	return nil
}

// span does what a graph holds.
func (f *function) span(s span, first, last bool) error {
	if first {
		if err := f.before(); err != nil {
			return err
		}
	}
	for i := s.first; i < s.end; i++ {
		if err := f.launch(i); err != nil {
			return err
		}
	}
	if last {
		return f.after()
	}
	return nil
}

// run starts all of a function's parts.
func (f *function) run() error {
	for _, p := range f.parts {
		var err error
		if p.graph != nil {
			err = f.p.stream.launch(p.graph)
		} else {
			err = f.communicate(&f.steps[p.first])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
