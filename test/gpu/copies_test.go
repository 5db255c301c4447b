package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/passes"
	"blutrain/runtime"
	"blutrain/runtime/ref"
	"blutrain/runtime/synthetic"
	"blutrain/runtime/verify"
	"blutrain/train"
	"blutrain/train/data"
	"blutrain/train/logs"
)

// copied is models whose weights products round.
var copied = []struct {
	file string
	set  map[string]float64
}{
	{"gpt2.blu", map[string]float64{"V": 256, "T": 8, "L": 1, "H": 2, "C": 32, "B": 1, "S": 5, "accumulate": 2}},
	{"llama.blu", map[string]float64{"V": 256, "L": 1, "H": 4, "K": 2, "C": 32, "F": 40, "B": 1, "S": 5, "accumulate": 2}},
	{"mlp.blu", map[string]float64{"V": 256, "W": 3, "E": 8, "M": 24, "B": 1, "S": 5, "accumulate": 2}},
}

// A program that keeps weights in bfloat16 too computes what one computes that rounds them whenever it multiplies them, bit for bit:
// losses, parameters and optimizer states, in a run in one go and in one that is stopped and resumed, and what it makes of weights of
// another run that it is given.
func TestCopiesChangeNoBit(t *testing.T) {
	for i, m := range copied {
		if testing.Short() && i > 0 {
			continue
		}
		t.Run(m.file, func(t *testing.T) {
			t.Parallel()
			src, o := example(t, m.file), driver.Options{Target: "cuda", Precision: "bf16", Arch: ptx.SM90A, Set: m.set}
			keeps := openEmulated(t, m.file, src, o)
			plain := openEmulated(t, "graph.mlir", withoutCopies(t, m.file, src, o), driver.Options{Target: o.Target, Precision: o.Precision, Arch: o.Arch})
			require.NotEqual(t, len(keeps.manifest.Own()), len(keeps.manifest.States), "there are copies")
			require.Len(t, plain.manifest.States, len(plain.manifest.Own()), "there are none")

			const steps = 2
			want := &training{t: t, data: letters(t), dir: t.TempDir()}
			want.run(plain, steps)
			whole := &training{t: t, data: letters(t), dir: t.TempDir()}
			whole.run(keeps, steps)
			parts := &training{t: t, data: letters(t), dir: t.TempDir()}
			parts.run(keeps, 1)
			parts.run(keeps, steps)
			for _, got := range []*training{whole, parts} {
				require.Equal(t, want.losses, got.losses)
				require.Equal(t, want.saved(steps), got.saved(steps))
			}

			for _, p := range []*emulated{keeps, plain} { // first weights of its own, with which it computes, then those of the run
				_, err := p.Call("init", nil, runtime.Scalars{"seed": 8})
				require.NoError(t, err)
				evaluated(t, p)
				_, err = train.LoadParams(p, want.dir)
				require.NoError(t, err)
			}
			require.Equal(t, evaluated(t, plain), evaluated(t, keeps))
		})
	}
}

// The reference that the artifact carries has copies, too, and its functions and the device's agree; the device's copies are its
// parameters, rounded.
func TestCopiesVerify(t *testing.T) {
	m := copied[0]
	o := driver.Options{Target: "cuda", Precision: "bf16", Arch: ptx.SM90A, Set: m.set}
	p := openEmulated(t, m.file, example(t, m.file), o)
	r, err := ref.Open(p.artifact, runtime.Options{})
	require.NoError(t, err)
	rows, err := verify.Compare(p, r, 5e-2, 1)
	require.NoError(t, err)
	found := map[string]int{}
	for _, row := range rows {
		require.False(t, row.Off(), "%+v", row)
		if strings.HasPrefix(row.Name, "bf16/") {
			found[row.Function]++
			require.Zero(t, row.Error.Error)
		}
	}
	require.Equal(t, map[string]int{"init": 5, "apply": 5, "refresh": 5}, found)

	s, _ := p.manifest.State("bf16/wte")
	require.ErrorContains(t, p.WriteState(s.Name, make([]byte, s.Bytes())), `a copy of parameter "wte"`)
	p.after = func(fn string) {
		if fn == "apply" {
			p.states[s.Name].Data[1] ^= 1
		}
	}
	rows, err = verify.Compare(p, r, 5e-2, 1)
	require.NoError(t, err)
	for _, row := range rows {
		require.Equal(t, row.Function == "apply" && row.Name == s.Name, row.Off(), "%+v", row)
	}
}

// example is the text of an example.
func example(t *testing.T, file string) []byte {
	src, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
	require.NoError(t, err)
	return src
}

// withoutCopies is a model's module after the phase graph, without the pass that has it keep copies.
func withoutCopies(t *testing.T, file string, src []byte, o driver.Options) []byte {
	o.CompileTo = "train"
	r, err := driver.Compile(file, src, o)
	require.NoError(t, err)
	for _, p := range driver.Phases {
		if p.Name == "graph" {
			text, ok := strings.CutSuffix(o.Pipeline(p), ",copies")
			require.True(t, ok)
			pl, err := passes.ParsePipeline(driver.Passes(), "builtin.module("+text+")")
			require.NoError(t, err)
			require.NoError(t, (&passes.Config{}).Run(r.Ctx, r.Module, pl))
		}
	}
	r.Module.SetAttr(driver.PhaseAttr, r.Ctx.String("graph"))
	return driver.Text(r.Module, false)
}

// emulated is a device as a runtime.Program.
type emulated struct {
	*device
	artifact  *artifact.Artifact
	manifest  *artifact.Manifest
	refresher runtime.Refresher
	after     func(fn string) // called when a function has run, unless nil
}

func openEmulated(t *testing.T, file string, src []byte, o driver.Options) *emulated {
	r, err := driver.Compile(file, src, o)
	require.NoError(t, err)
	e := &emulated{device: newDevice(t, file, src, o, "templates"), artifact: r.Artifact, manifest: &r.Artifact.Manifest}
	e.forget()
	return e
}

// forget makes it a program that has just been opened.
func (e *emulated) forget() {
	for _, b := range e.states {
		b.Write(0, make([]byte, len(b.Data)))
	}
	e.refresher = runtime.Refresher{}
}

func (e *emulated) Manifest() *artifact.Manifest { return e.manifest }
func (e *emulated) MemoryInUse() int64           { return e.manifest.Memory.Total }
func (e *emulated) Close() error                 { return nil }

func (e *emulated) Call(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	info, err := runtime.Options{}.CheckCall(e.manifest, fn, in, s)
	if err != nil {
		return nil, err
	}
	if err := e.refresher.Calls(e, fn); err != nil {
		return nil, err
	}
	out := e.call(fn, info, in, s)
	if e.after != nil {
		e.after(fn)
	}
	return out, nil
}

func (e *emulated) ReadState(name string, dst []byte) error {
	copy(dst, e.states[name].Data)
	return nil
}

func (e *emulated) WriteState(name string, src []byte) error {
	if err := e.refresher.Writes(e.manifest, name); err != nil {
		return err
	}
	e.states[name].Write(0, src)
	return nil
}

// training is a run, of several processes' worth.
type training struct {
	t      *testing.T
	data   data.Source
	dir    string
	losses []logs.Number
}

// run trains until a step, from where the run stands, as another process would.
func (r *training) run(p *emulated, steps int64) {
	p.forget()
	seed := uint64(3)
	_, err := train.Run(context.Background(), train.Config{
		Program: p, Data: r.data, Val: r.data, ValEvery: 2, ValBatches: 1, Steps: steps, Seed: &seed, CheckpointDir: r.dir, Resume: len(r.losses) > 0,
		Logs: func(int64) (logs.Multi, error) { return logs.Multi{r}, nil },
	})
	require.NoError(r.t, err)
}

// saved is the bytes of a checkpoint's tensors.
func (r *training) saved(step int) []byte {
	b, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("step-%08d", step), "rank-00000.safetensors"))
	require.NoError(r.t, err)
	return b
}

func (r *training) Step(s logs.Step) error {
	r.losses = append(r.losses, s.Loss, s.GradNorm)
	return nil
}
func (r *training) Eval(logs.Eval) error             { return nil }
func (r *training) Checkpoint(logs.Checkpoint) error { return nil }
func (r *training) Note(logs.Note) error             { return nil }
func (r *training) Done(logs.Done) error             { return nil }
func (r *training) Close() error                     { return nil }

// letters is text as tokens.
func letters(t *testing.T) data.Source {
	dir := t.TempDir()
	source, tokens := filepath.Join(dir, "text"), filepath.Join(dir, "text.bin")
	require.NoError(t, os.WriteFile(source, []byte(strings.Repeat("a rounded number is as good as another. ", 8)), 0o644))
	tokenizer, err := data.NewTokenizer("byte")
	require.NoError(t, err)
	_, err = data.Prepare(tokens, tokenizer, []string{source})
	require.NoError(t, err)
	s, err := data.OpenShards([]string{tokens})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// evaluated is what the model makes of a batch.
func evaluated(t *testing.T, p *emulated) map[string]runtime.Array {
	all := map[string]runtime.Array{}
	for _, fn := range []string{"eval", "logits"} {
		f, ok := p.manifest.Function(fn)
		require.True(t, ok)
		out, err := p.Call(fn, synthetic.Inputs(p.manifest, f, rand.New(rand.NewPCG(1, 2))), synthetic.Scalars(true))
		require.NoError(t, err)
		for name, a := range out {
			all[fn+" "+name] = a
		}
	}
	return all
}

// Ranks that give each other updated pieces of parameters round what they were given: the functions of each rank, as they are before
// they are cut into kernels, do together what one rank does without copies.
func TestCopiesOnRanks(t *testing.T) {
	for _, x := range []struct {
		sharding driver.Sharding
		dp, cp   int
	}{
		{driver.Sharding{Mesh: "dp"}, 2, 1},
		{driver.Sharding{Mesh: "dp=2", Zero: 1}, 2, 1},
		{driver.Sharding{Mesh: "dp=1,cp=2", Zero: 1}, 1, 2},
	} {
		t.Run(fmt.Sprint(x.sharding.Mesh, " ", x.sharding.Zero), func(t *testing.T) {
			t.Parallel()
			set := map[string]float64{"V": 24, "T": 8, "L": 1, "H": 2, "C": 16, "B": 1, "S": 8}
			r, err := driver.Compile("gpt2.blu", example(t, "gpt2.blu"), driver.Options{Target: "cuda", Precision: "bf16", Set: set, Sharding: x.sharding})
			require.NoError(t, err)
			text, ok := r.Artifact.File(artifact.ReferenceName)
			require.True(t, ok)
			a := &artifact.Artifact{Manifest: r.Artifact.Manifest, Files: []artifact.File{{Name: artifact.ProgramName, Data: text}, {Name: artifact.ReferenceName, Data: text}}}
			a.Manifest.Target = "ref"
			rows, err := verify.Mesh(context.Background(), a, "ref", x.dp, x.cp, runtime.Options{}, 5e-2, 1)
			require.NoError(t, err)
			copies := 0
			for _, row := range rows {
				require.False(t, row.Off(), "%+v", row)
				if strings.HasPrefix(row.Name, "bf16/") {
					copies++
				}
			}
			require.Equal(t, 5, copies)
		})
	}
}
