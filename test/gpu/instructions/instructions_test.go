package instructions

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	codegen "blutrain/codegen/ptx"
	"blutrain/dialects/ptx"
	"blutrain/internal/upstream"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

func experiments() []experiment {
	return slices.Concat(arithmetic(), memory(), matrices(), boxes(), barriers())
}

// The emulator runs every experiment and finds nothing wrong with it, and every operation of the dialect is in one.
func TestEmulated(t *testing.T) {
	used := map[string]bool{}
	for i, e := range experiments() {
		t.Run(e.name, func(t *testing.T) {
			k := e.build(t, i)
			ir.Walk(k, func(op *ir.Op) ir.WalkResult {
				used[op.Name()] = true
				return ir.Advance
			})
			out := e.emulate(t, k)
			require.NotEqual(t, filled(e.out), out, "nothing was written")
		})
	}
	for _, def := range ptx.Dialect.Ops {
		if def != ptx.Yield {
			require.True(t, used[def.FullName()], "no experiment has %s", def.FullName())
		}
	}
}

// module is all kernels as one text.
func module(t testing.TB, kernels []*ir.Op) []byte {
	var all bytes.Buffer
	fmt.Fprintf(&all, ".version %s\n.target %s\n.address_size 64\n\n.extern .shared .align 1024 .b8 shared_memory[];\n\n", codegen.Version, ptx.SM90A)
	for _, k := range kernels {
		text, err := codegen.Print(k)
		require.NoError(t, err)
		_, entry, found := strings.Cut(string(text), ".visible .entry")
		require.True(t, found)
		all.WriteString(".visible .entry" + entry + "\n")
	}
	return all.Bytes()
}

func kernels(t testing.TB, all []experiment) []*ir.Op {
	var ks []*ir.Op
	for i := range all {
		ks = append(ks, all[i].build(t, i))
	}
	return ks
}

// The assembler takes them all.
func TestAssembled(t *testing.T) {
	tool := upstream.PTXAS(t)
	file := filepath.Join(t.TempDir(), "experiments.ptx")
	require.NoError(t, os.WriteFile(file, module(t, kernels(t, experiments())), 0o644))
	out, err := exec.Command(tool, "-v", "-arch="+ptx.SM90A, "-o", os.DevNull, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		require.False(t, strings.Contains(line, "warning") || strings.Contains(line, "C75"), line)
	}
}

// The GPU computes what the emulator does. Run it with -test.v for the table.
func TestOnGPU(t *testing.T) {
	d, err := cuda.Open()
	if err != nil {
		t.Skip(err)
	}
	devices, err := d.Devices()
	require.NoError(t, err)
	ctx, err := devices[0].Open()
	require.NoError(t, err)
	all := experiments()
	ks := kernels(t, all)
	m, err := ctx.Load("experiments", module(t, ks))
	require.NoError(t, err)
	g := gpu{ctx, m}
	fmt.Printf("%-44s %9s %9s %9s %s\n", "instruction", "results", "bits", "of bound", "")
	for i := range all {
		want := all[i].emulate(t, ks[i])
		got, err := g.run(&all[i], ir.SymName(ks[i]))
		require.NoError(t, err, all[i].name) // nothing runs on the GPU after a fault
		c := all[i].compare(want, got)
		verdict := "ok"
		if c.wrong > 0 {
			verdict = fmt.Sprintf("%d WRONG: %s", c.wrong, c.first)
			t.Errorf("%s: %s", all[i].name, verdict)
		}
		fmt.Printf("%-44s %9d %8.1f%% %9.2f %s\n", all[i].name, c.elements, 100*float64(c.same)/float64(c.elements), c.worst, verdict)
	}
}

// gpu runs experiments.
type gpu struct {
	ctx    *cuda.Context
	module *cuda.Module
}

func (g *gpu) run(e *experiment, kernel string) (out []byte, err error) {
	f, err := g.module.Function(kernel, e.shared)
	if err != nil {
		return nil, err
	}
	in, err := g.ctx.Alloc(int64(max(len(e.in), 16)))
	if err != nil {
		return nil, err
	}
	to, err := g.ctx.Alloc(int64(e.out))
	if err != nil {
		return nil, err
	}
	if err := g.ctx.Upload(in, e.in); err != nil {
		return nil, err
	}
	if err := g.ctx.Upload(to, filled(e.out)); err != nil {
		return nil, err
	}
	params := []any{in, to}
	for _, d := range e.maps {
		base := in
		if d.output {
			base = to
		}
		swizzle := map[int]cuda.Swizzle{0: cuda.NoSwizzle, 32: cuda.Swizzle32, 64: cuda.Swizzle64, 128: cuda.Swizzle128}[d.swizzle]
		m, err := g.ctx.Tiled(cuda.Element(d.driverName), base, d.dims, d.strides, d.box, swizzle)
		if err != nil {
			return nil, err
		}
		params = append(params, m)
	}
	s := g.ctx.NullStream()
	if err := s.Launch(f, cuda.Config{Grid: e.blocks, Threads: e.threads, Cluster: e.cluster, Shared: e.shared}, params...); err != nil {
		return nil, err
	}
	if err := finish(s); err != nil {
		return nil, err
	}
	out = make([]byte, e.out)
	if err := g.ctx.Download(out, to); err != nil {
		return nil, err
	}
	if err := g.ctx.Free(in); err != nil {
		return nil, err
	}
	return out, g.ctx.Free(to)
}

// patience is how long an experiment may take, which takes microseconds.
const patience = 10 * time.Second

func finish(s *cuda.Stream) error {
	for start := time.Now(); time.Since(start) < patience; time.Sleep(100 * time.Microsecond) {
		if done, err := s.Done(); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("is not done after %v", patience)
}

// What differs is seen.
func TestCompare(t *testing.T) {
	e := experiment{elem: "f32", bound: func(_ int, want float64) float64 { return 1e-6 }}
	one, near, far, nan := []byte{0, 0, 0x80, 0x3F}, []byte{1, 0, 0x80, 0x3F}, []byte{0, 1, 0x80, 0x3F}, []byte{1, 0, 0xC0, 0x7F}
	c := e.compare(slices.Concat(one, one, one, nan, one), slices.Concat(one, near, far, []byte{0, 0, 0xC0, 0xFF}, nan))
	require.Equal(t, 5, c.elements)
	require.Equal(t, 2, c.same)
	require.Equal(t, 2, c.wrong)
	require.Contains(t, c.first, "[2] want 3f800000 (1), got 3f800100")
	e.bound = nil
	require.Equal(t, 1, e.compare(one, near).wrong)
}
