package cuda

import (
	"encoding/binary"

	"blutrain/dialects/exec"
)

// findParams makes the parameters of every launch of a function: all memory has its place by now, and keeps it.
func (f *function) findParams() error {
	for i := range f.steps {
		s := &f.steps[i]
		for k := s.kernel; k != nil; k = k.then {
			params, err := f.paramsOf(s, k)
			if err != nil {
				return k.failed(err)
			}
			s.params = append(s.params, params)
		}
	}
	return nil
}

func (f *function) paramsOf(s *step, k *kernel) (params []any, err error) {
	switch {
	case k.params != nil:
		for _, p := range k.params {
			v, err := f.param(s, p)
			if err != nil {
				return nil, err
			}
			params = append(params, v)
		}
	case k.listed:
		table, err := f.table(s)
		if err != nil {
			return nil, err
		}
		params = append(params, table)
	default:
		for _, at := range s.refs {
			params = append(params, f.address(at))
		}
	}
	if len(k.records) > 0 {
		params = append(params, f.p.errors+Pointer(8*s.record))
	}
	if k.hasWorkspace {
		params = append(params, f.workspace())
	}
	return params, nil
}

// param is an address, a tensor map or a number.
func (f *function) param(s *step, p exec.Param) (any, error) {
	if p.Value != nil {
		return *p.Value, nil
	}
	at := f.workspace()
	if p.Ref >= 0 {
		at = f.address(s.refs[p.Ref])
	}
	at += Pointer(p.Offset)
	if p.Map == nil {
		return at, nil
	}
	element := map[string]Element{"bf16": BFloat16, "f16": Float16, "f32": Float32, "tf32": TFloat32}[p.Map.Elem]
	return f.p.ctx.Tiled(element, at, ints(p.Map.Dims), ints(p.Map.Strides), ints(p.Map.Box), Swizzle128)
}

func ints(xs []int64) []int {
	out := make([]int, len(xs))
	for i, x := range xs {
		out[i] = int(x)
	}
	return out
}

// table puts the addresses of a launch's references into memory, for a kernel that wants them there.
func (f *function) table(s *step) (Pointer, error) {
	var list []byte
	for _, at := range s.refs {
		list = binary.LittleEndian.AppendUint64(list, uint64(f.address(at)))
	}
	at, err := f.p.alloc(int64(len(list)), "tables of addresses", "a table of addresses")
	if err != nil {
		return 0, err
	}
	return at, f.p.stream.Upload(at, list)
}

// room is how many bytes the kernels of a function work in, one after the other.
func (f *function) room() (bytes int64) {
	for _, s := range f.steps {
		for k := s.kernel; k != nil; k = k.then {
			bytes = max(bytes, k.workspace*int64(k.blocks), k.scratch)
		}
	}
	return bytes
}

// workspace is where they do: in the program's, or where they need more in their own.
func (f *function) workspace() Pointer {
	if f.own != 0 {
		return f.own
	}
	return f.p.workspace
}
