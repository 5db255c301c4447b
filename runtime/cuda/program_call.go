package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blutrain/artifact"
	"blutrain/dialects/mem"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
)

// Call runs a function: copies of inputs, launches and copies of outputs are one graph, or several with collectives between them,
// recorded the first time. With guards it is run launch by launch.
func (p *program) Call(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	if p.options.Guard {
		return p.aside(fn, in, s)
	}
	f, err := p.start(fn, in, s)
	if err != nil {
		return nil, err
	}
	if f.parts == nil {
		if err := f.record(); err != nil {
			return nil, f.failed(err)
		}
	}
	if err := f.run(); err != nil {
		return nil, f.failed(unnamed(err))
	}
	return f.finish()
}

// Trace runs a function launch by launch.
func (p *program) Trace(fn string, in map[string]runtime.Array, s runtime.Scalars, visit runtime.Visitor) (map[string]runtime.Array, error) {
	f, err := p.start(fn, in, s)
	if err != nil {
		return nil, err
	}
	if err := f.before(); err != nil {
		return nil, f.failed(err)
	}
	for i := range f.steps {
		if err := f.visit(i, visit); err != nil {
			return nil, f.failed(err)
		}
	}
	if err := f.after(); err != nil {
		return nil, f.failed(err)
	}
	return f.finish()
}

// start checks a call's arguments and puts them where the GPU fetches them.
func (p *program) start(fn string, in map[string]runtime.Array, s runtime.Scalars) (*function, error) {
	info, err := p.options.CheckCall(p.manifest, fn, in, s)
	if err != nil {
		return nil, err
	}
	f := p.functions[fn]
	if f == nil {
		return nil, fmt.Errorf("the program has no function %q", fn)
	}
	if err := p.refresher.Calls(p, fn); err != nil {
		return nil, err
	}
	if !f.ready {
		if err := f.prepare(info); err != nil {
			return nil, fmt.Errorf("%s: %w", fn, err)
		}
		f.ready = true
	}
	for _, v := range info.Inputs {
		copy(f.ports[port{mem.Input, v.Name}].host.bytes, in[v.Name].Data)
	}
	for _, v := range info.Scalars {
		copy(f.ports[port{mem.Scalar, v.Name}].host.bytes, ir.EncodeElement(nil, elementType(v.DType), p.options.Scalar(p.manifest, s, v.Name)))
	}
	return f, nil
}

// prepare allocates what a function's inputs, outputs and scalars take, and loads its kernels.
func (f *function) prepare(info *artifact.Function) (err error) {
	for _, g := range []struct {
		space  string
		values []artifact.Value
	}{{mem.Input, info.Inputs}, {mem.Scalar, info.Scalars}, {mem.Output, info.Outputs}} {
		for _, v := range g.values {
			m := &memory{value: v}
			if m.at, err = f.p.alloc(v.Bytes(), ports, g.space+" "+v.Name); err != nil {
				return err
			}
			if m.host, err = f.p.ctx.newPinned(v.Bytes()); err != nil {
				return err
			}
			f.ports[port{g.space, v.Name}] = m
			if g.space == mem.Output {
				f.outputs = append(f.outputs, m)
			} else {
				f.inputs = append(f.inputs, m)
			}
		}
	}
	if f.status, err = f.p.ctx.newPinned(int64(8 * len(f.records))); err != nil {
		return err
	}
	if err := f.findParams(); err != nil {
		return err
	}
	return f.p.assemble(f)
}

// nanWord is bits that are NaN as float32 and bfloat16, and an index far out of range as int32.
const nanWord = 0x7fc07fc0

// before starts the copies of what a call is given.
func (f *function) before() error {
	s := f.p.stream
	for _, m := range f.inputs {
		if err := s.upload(m.at, m.host); err != nil {
			return err
		}
	}
	if len(f.records) > 0 {
		if err := f.p.fill(f.p.errors, 0xffffffff, int64(2*len(f.records))); err != nil {
			return err
		}
	}
	if !f.p.options.Poison {
		return nil
	}
	info, _ := f.p.manifest.Function(f.name)
	if err := f.p.fill(f.p.arena, nanWord, info.Arena/4); err != nil {
		return err
	}
	if err := f.p.fill(f.p.workspace, nanWord, f.p.spare/4); err != nil {
		return err
	}
	for _, m := range f.outputs {
		if err := f.p.fill(m.at, nanWord, (m.value.Bytes()+3)/4); err != nil {
			return err
		}
	}
	return nil
}

// after starts the copies of what a call gives.
func (f *function) after() error {
	for _, m := range f.outputs {
		if err := f.p.stream.download(m.host, m.at); err != nil {
			return err
		}
	}
	return f.p.stream.download(f.status, f.p.errors)
}

func (f *function) address(at place) Pointer {
	base := at.base
	if at.port != nil {
		base = f.ports[*at.port].at
	}
	return base + Pointer(at.offset)
}

// launch starts step i: its kernel, and those that go with it.
func (f *function) launch(i int) error {
	s := &f.steps[i]
	n := 0
	for k := s.kernel; k != nil; k = k.then {
		if k.blocks > 0 {
			err := f.p.stream.Launch(k.code, Config{Grid: k.blocks, Threads: k.threads, Cluster: k.cluster, Shared: k.shared}, s.params[n]...)
			if err != nil && s.location != "" {
				return fmt.Errorf("%s: %w", s.location, err)
			}
			if err != nil {
				return err
			}
		}
		n++
	}
	return nil
}

// finish waits for the GPU and gives the outputs, or says what went wrong.
func (f *function) finish() (map[string]runtime.Array, error) {
	// Collectives first: where a rank has died, the streams' work ends when waiting for them has ended it.
	if err := errors.Join(f.land(), f.p.stream.Synchronize(), f.p.intact()); err != nil {
		return nil, f.failed(unnamed(err))
	}
	for i, r := range f.records {
		if bits := binary.LittleEndian.Uint64(f.status.bytes[8*i:]); bits != ^uint64(0) {
			err := fmt.Errorf("kernel %s: index %d at position %d is out of range: "+r.what, r.kernel.name, int32(bits), bits>>32, r.extent)
			if at := f.steps[r.step].location; at != "" {
				err = fmt.Errorf("%s: %w", at, err)
			}
			return nil, f.failed(err)
		}
	}
	out := map[string]runtime.Array{}
	for _, m := range f.outputs {
		out[m.value.Name] = runtime.Array{DType: m.value.DType, Shape: m.value.Shape, Data: append([]byte(nil), m.host.bytes...)}
	}
	return out, nil
}

// visit shows step i to a visitor, which runs it.
func (f *function) visit(i int, visit runtime.Visitor) error {
	s := &f.steps[i]
	k := s.kernel
	if k == nil {
		return f.visitCollective(s, visit)
	}
	t := &runtime.Step{Kernel: k.name, Reference: k.reference, Location: s.location, Flops: s.flops, Inputs: len(s.refs) - k.outs, Outputs: k.outs}
	if k.copies {
		t.Kernel = ""
	}
	var fault error
	t.Read = func(i int) runtime.Array {
		a, err := f.read(s, i)
		fault = errors.Join(fault, err)
		return a
	}
	ran := false
	err := visit(t, func() error {
		if ran {
			return fmt.Errorf("a step is run twice")
		}
		ran = true
		for j, r := range k.refs {
			n := ir.NumElements(r.Shape) * ir.ByteSize(r.Elem)
			if j < t.Inputs {
				t.Traffic.Read += n
			} else {
				t.Traffic.Written += n
			}
		}
		if err := f.launch(i); err != nil {
			return err
		}
		if err := f.p.stream.Synchronize(); err != nil {
			return fmt.Errorf("%s: kernel %s: %w", s.location, k.name, err)
		}
		if err := f.p.intact(); err != nil {
			return fmt.Errorf("%s: kernel %s: %w", s.location, k.name, err)
		}
		return nil
	})
	if err == nil && !ran {
		err = fmt.Errorf("a step was not run")
	}
	return errors.Join(err, fault)
}

// read copies what one of a step's references holds, row-major.
func (f *function) read(s *step, i int) (runtime.Array, error) {
	t := s.kernel.refs[i]
	size := ir.ByteSize(t.Elem)
	strides, _ := mem.Layout(t)
	reach := int64(1)
	for d, n := range t.Shape {
		reach += (n - 1) * strides[d]
	}
	a := runtime.Array{DType: storedType(t.Elem), Shape: t.Shape, Data: make([]byte, ir.NumElements(t.Shape)*size)}
	if len(a.Data) == 0 {
		return a, nil
	}
	raw := make([]byte, reach*size)
	if err := f.p.stream.Download(raw, f.address(s.refs[i])); err != nil {
		return a, err
	}
	gather(a.Data, raw, t.Shape, strides, size)
	return a, nil
}

// gather copies strided elements to rows one after the other, and returns what is left of dst.
func gather(dst, src []byte, shape, strides []int64, size int64) []byte {
	if len(shape) == 0 {
		copy(dst, src[:size])
		return dst[size:]
	}
	if len(shape) == 1 && strides[0] == 1 {
		copy(dst, src[:shape[0]*size])
		return dst[shape[0]*size:]
	}
	for i := range shape[0] {
		dst = gather(dst, src[i*strides[0]*size:], shape[1:], strides[1:], size)
	}
	return dst
}

// elementType is the IR type of a stored element type.
func elementType(t formats.DType) ir.Type {
	c := ir.NewContext()
	switch t {
	case formats.F32:
		return c.F32()
	case formats.F64:
		return c.F64()
	case formats.BF16:
		return c.Float(ir.BF16)
	case formats.F16:
		return c.Float(ir.F16)
	case formats.Bool:
		return c.I1()
	}
	return c.Int(8 * int(t.Size()))
}

// storedType is the stored element type of an IR type.
func storedType(t ir.Type) formats.DType {
	switch t := t.(type) {
	case *ir.FloatType:
		return map[ir.FloatKind]formats.DType{ir.F64: formats.F64, ir.F32: formats.F32, ir.F16: formats.F16, ir.BF16: formats.BF16}[t.Kind]
	case *ir.IntegerType:
		return map[int]formats.DType{1: formats.Bool, 8: formats.I8, 16: formats.I16, 32: formats.I32, 64: formats.I64}[t.Width]
	}
	return formats.Invalid
}
