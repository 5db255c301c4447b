package artifact

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
)

// sample is a small artifact with every field set.
func sample() *Artifact {
	value := func(name string, d formats.DType, shape ...int64) Value {
		return Value{Name: name, DType: d, Shape: append([]int64{}, shape...)}
	}
	tokens := []Value{value("tokens", formats.I32, 2, 8), value("targets", formats.I32, 2, 8)}
	return &Artifact{
		Manifest: Manifest{
			Compiler: "test", Target: "cpu", Precision: "fp32", Model: "toy",
			Args: map[string]float64{"V": 256, "C": 4, "p": 0.1, "L": 1, "H": 2},
			Train: &Train{
				Minimize:  "loss",
				Batch:     Batch{2, 8, 1},
				Schedule:  Method{"cosine", map[string]float64{"max": 6e-4, "min": 6e-5, "warmup": 10, "steps": 100}},
				Optimizer: Method{"adamw", map[string]float64{"beta1": 0.9, "beta2": 0.95, "eps": 1e-8}},
				ClipNorm:  1,
				Inputs:    tokens,
			},
			States: []State{
				{Value: value("wte", formats.F32, 256, 4), Role: Param, Persist: true, Init: "normal(std: 0.02)", Dims: []string{"V", "C"}, WeightDecay: 0.1},
				{Value: value("grads/wte", formats.F32, 256, 4), Role: Gradient},
				{Value: value("adamw.m/wte", formats.F32, 256), Role: Optimizer, Persist: true, Shard: &Shard{Group: World, Ranks: 4, Shape: []int64{256, 4}}},
				{Value: value("count", formats.F32), Role: Accumulator},
				{Value: value("bf16/wte", formats.BF16, 256, 4), Role: Copy, Of: "wte"},
			},
			Functions: []Function{
				{Name: "init", Scalars: []Value{value("seed", formats.I64)}},
				{Name: "accumulate", Inputs: tokens, Scalars: []Value{value("first", formats.Bool)}, Arena: 4096, Flops: 1e6},
				{Name: "apply", Scalars: []Value{value("lr", formats.F32)}, Outputs: []Value{value("loss", formats.F32)},
					Collectives: []Collective{{Op: "all_gather", Group: World, DType: formats.F32, Elements: 256, Sent: 3072}}},
				{Name: "eval", Inputs: tokens, Outputs: []Value{value("loss_sum", formats.F32)}},
				{Name: Refresh},
			},
			Mesh:   &Mesh{DP: 2, CP: 2, Zero: 1, Context: "ring"},
			Memory: Memory{Params: 4096, Gradients: 4096, Optimizer: 4096, Copies: 2048, Arena: 4096, Total: 18432},
		},
		Files: []File{
			{"source/toy.blu", []byte("model toy() {}\n")},
			{ProgramName, []byte(strings.Repeat("exec.launch\n", 1000))},
			{"kernels/k0.ptx", nil},
		},
	}
}

func encode(t testing.TB, a *Artifact) []byte {
	b, err := a.Encode()
	require.NoError(t, err)
	return b
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toy.blx")
	a := sample()
	require.NoError(t, a.Write(path))
	b, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, a.Hash, b.Hash)
	require.Len(t, b.Files, 3)
	program, ok := b.File(ProgramName)
	require.True(t, ok)
	require.Len(t, program, 12000)
	_, ok = b.File("nobody")
	require.False(t, ok)
	want, _ := json.Marshal(a.Manifest)
	got, _ := json.Marshal(b.Manifest)
	require.JSONEq(t, string(want), string(got))
	f, ok := b.Manifest.Function("accumulate")
	require.True(t, ok)
	require.Equal(t, int64(64), f.Inputs[0].Bytes())
	s, ok := b.Manifest.State("wte")
	require.True(t, ok)
	require.Equal(t, []string{"V", "C"}, s.Dims)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(8000), "files are compressed")
}

// TestDeterministic: the order of files and maps leaves no trace.
func TestDeterministic(t *testing.T) {
	want := encode(t, sample())
	for range 20 {
		a := sample()
		a.Files[0], a.Files[2] = a.Files[2], a.Files[0]
		require.True(t, bytes.Equal(want, encode(t, a)))
	}
}

// TestOtherToolsReadIt: the file is a plain zip.
func TestOtherToolsReadIt(t *testing.T) {
	b := encode(t, sample())
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, "manifest.json", z.File[0].Name)
	require.Equal(t, "source/toy.blu", z.File[3].Name)
}

func TestEveryTruncationIsRefused(t *testing.T) {
	b := encode(t, sample())
	for n := range b {
		_, err := Decode(b[:n])
		require.ErrorContains(t, err, "not an artifact", "first %d bytes", n)
	}
}

func TestEveryDamagedByteIsRefused(t *testing.T) {
	b := encode(t, sample())
	for i := range b {
		for _, flip := range []byte{1, 0x80} {
			b[i] ^= flip
			_, err := Decode(b)
			require.Error(t, err, "byte %d", i)
			b[i] ^= flip
		}
	}
	_, err := Decode(append(b, 0))
	require.ErrorContains(t, err, "cut short")
}

// TestRefusesForgedArchives: a right checksum at the end does not make an archive right.
func TestRefusesForgedArchives(t *testing.T) {
	a := sample()
	encode(t, a)
	manifest := func(change func(m *Manifest)) string {
		c := sample()
		encode(t, c)
		change(&c.Manifest)
		text, err := json.Marshal(c.Manifest)
		require.NoError(t, err)
		return string(text)
	}
	good := manifest(func(*Manifest) {})
	ok := []File{{"kernels/k0.ptx", nil}, a.Files[1], a.Files[0]}
	with := func(text string, files ...File) []File { return append([]File{{ManifestName, []byte(text)}}, files...) }
	for _, c := range []struct {
		name   string
		files  []File
		reason string
	}{
		{"no entries", nil, "does not begin as a zip"},
		{"no manifest", ok, "the first entry is not manifest.json"},
		{"escaping path", with(good, File{"../../etc/passwd", nil}), "not a plain relative path"},
		{"absolute path", with(good, File{"/etc/passwd", nil}), "not a plain relative path"},
		{"windows path", with(good, File{`..\x`, nil}), "not a plain relative path"},
		{"entry twice", with(good, ok[0], ok[0]), "comes twice"},
		{"two manifests", with(good, File{ManifestName, nil}), "comes twice"},
		{"missing file", with(good, ok[:2]...), "has 2 files, the manifest lists 3"},
		{"extra file", with(good, append(ok[:3:3], File{"x", nil})...), "has 4 files"},
		{"renamed file", with(good, ok[0], ok[1], File{"source/other", a.Files[0].Data}), "stands where"},
		{"other content", with(good, ok[0], ok[1], File{"source/toy.blu", []byte("model toy() {!\n")}), "not the ones the manifest lists"},
		{"longer content", with(good, ok[0], ok[1], File{"source/toy.blu", make([]byte, 1000)}), "more than 15 bytes"},
		{"not JSON", with("{", ok...), "manifest: "},
		{"other format", with(`{"format":"onnx"}`, ok...), `format is "onnx"`},
		{"version 2", with(`{"format":"blx","version":2,"new":1}`, ok...), "format version is 2, this program reads 1"},
		{"unknown field", with(`{"format":"blx","version":1,"new":1}`, ok...), "unknown field"},
		{"text after", with(good+"{}", ok...), "after top-level value"},
		{"no target", with(manifest(func(m *Manifest) { m.Target = "" }), ok...), "target"},
		{"huge file", with(manifest(func(m *Manifest) { m.Files[0].Bytes = 1 << 60 }), ok...), "too large"},
		{"negative file", with(manifest(func(m *Manifest) { m.Files[0].Bytes = -1 }), ok...), "too large"},
		{"bad dtype", with(strings.Replace(good, `"f32"`, `"f31"`, 1), ok...), "f31"},
		{"shape overflow", with(manifest(func(m *Manifest) { m.States[0].Shape = []int64{1 << 40, 1 << 40} }), ok...), "overflows"},
		{"role", with(manifest(func(m *Manifest) { m.States[0].Role = "boss" }), ok...), `role "boss"`},
		{"copy of nothing", with(manifest(func(m *Manifest) { m.States[4].Of = "" }), ok...), `state "bf16/wte" is a copy of ""`},
		{"copy of no parameter", with(manifest(func(m *Manifest) { m.States[4].Of = "grads/wte" }), ok...), `is a copy of "grads/wte": that must be a parameter`},
		{"copy of another shape", with(manifest(func(m *Manifest) { m.States[4].Shape = []int64{4, 256} }), ok...), "of the same shape"},
		{"copy of the same type", with(manifest(func(m *Manifest) { m.States[4].DType = formats.F32 }), ok...), "of bfloat16"},
		{"copy that persists", with(manifest(func(m *Manifest) { m.States[4].Persist = true }), ok...), "doesn't persist"},
		{"copy of another role", with(manifest(func(m *Manifest) { m.States[4].Role = Gradient }), ok...), `has role "gradient" and is a copy of "wte"`},
		{"copies that nobody makes", with(manifest(func(m *Manifest) { m.Functions = m.Functions[:4] }), ok...), "no function refresh"},
		{"copies of something else", with(manifest(func(m *Manifest) { m.Functions[4].Inputs = m.Functions[1].Inputs }), ok...), "no function refresh"},
		{"no plan for copies", with(manifest(func(m *Manifest) { m.Memory.Copies = 0 }), ok...), "gives 0 bytes to copy"},
		{"indices below nothing", with(manifest(func(m *Manifest) { m.Functions[1].Inputs[0].Below = -1 }), ok...), `input "tokens": i32 below -1 are no indices`},
		{"indices that their type can't say", with(manifest(func(m *Manifest) { m.Functions[1].Inputs[0].Below = 1<<31 + 1 }), ok...), `input "tokens": i32 below 2147483649 are no indices`},
		{"numbers as indices", with(manifest(func(m *Manifest) { m.Functions[2].Scalars[0].Below = 2 }), ok...), `scalar "lr": f32 below 2`},
		{"a last function of ranks that add up each time", with(manifest(func(m *Manifest) { m.Functions[4].Name = AccumulateLast; m.States = m.States[:4] }), ok...), "and no mesh whose ranks add up gradients once a step"},
		{"a last function of one rank", with(manifest(func(m *Manifest) {
			m.Mesh, m.States[2], m.Functions[2].Collectives = nil, m.States[1], nil
			m.States[2].Name, m.Functions = "g", append(m.Functions, Function{Name: AccumulateLast})
		}), ok...), "there is a function accumulate_last, and no mesh"},
		{"ranks that never add up", with(manifest(onceAStep), ok...), "add up gradients once a step, and there is no function accumulate_last"},
		{"a last function of another batch", with(manifest(func(m *Manifest) {
			onceAStep(m)
			m.Functions = append(m.Functions, Function{Name: AccumulateLast, Inputs: m.Functions[1].Inputs})
		}), ok...), "function accumulate_last isn't called as accumulate is"},
		{"state twice", with(manifest(func(m *Manifest) { m.States[1].Name = "wte" }), ok...), "comes twice"},
		{"function twice", with(manifest(func(m *Manifest) { m.Functions[1].Name = "init" }), ok...), "comes twice"},
		{"no eval", with(manifest(func(m *Manifest) { m.Functions = slices.Delete(m.Functions, 3, 4) }), ok...), `"eval" is missing`},
		{"scalar with a shape", with(manifest(func(m *Manifest) { m.Functions[0].Scalars[0].Shape = []int64{1} }), ok...), "has shape"},
		{"input twice", with(manifest(func(m *Manifest) { m.Functions[1].Inputs[1].Name = "tokens" }), ok...), "comes twice"},
		{"batch", with(manifest(func(m *Manifest) { m.Train.Batch.S = -1 }), ok...), "S = -1"},
		{"plan too small", with(manifest(func(m *Manifest) { m.Memory.Params = 4095 }), ok...), "gives 4095 bytes to param"},
		{"plan without accumulators", with(manifest(func(m *Manifest) { m.Memory.Optimizer = 1024; m.Memory.Total = 18432 - 3072 }), ok...), "gives 1020 bytes to optimizer states, they need 1024"},
		{"total of something else", with(manifest(func(m *Manifest) { m.Memory.Total-- }), ok...), "a total of 18431 bytes, and other parts"},
		{"arena too small", with(manifest(func(m *Manifest) { m.Memory.Arena = 1 }), ok...), "arena of 1 bytes"},
		{"mesh of nobody", with(manifest(func(m *Manifest) { m.Mesh.CP = 0 }), ok...), "mesh: dp = 2, cp = 0"},
		{"mesh too large", with(manifest(func(m *Manifest) { m.Mesh.DP, m.Mesh.CP = 1<<20, 1<<20 }), ok...), "ranks are the most"},
		{"zero", with(manifest(func(m *Manifest) { m.Mesh.Zero = 3 }), ok...), "zero is 3"},
		{"zero of any number", with(manifest(func(m *Manifest) { m.Mesh.DP = 0 }), ok...), "needs the number of data-parallel ranks"},
		{"context", with(manifest(func(m *Manifest) { m.Mesh.Context = "star" }), ok...), `context is "star"`},
		{"shard without a mesh", with(manifest(func(m *Manifest) { m.Mesh = nil }), ok...), "has no mesh"},
		{"shard of another group", with(manifest(func(m *Manifest) { m.States[2].Shard.Group = "tp" }), ok...), `no group "tp"`},
		{"shard of other ranks", with(manifest(func(m *Manifest) { m.States[2].Shard.Ranks = 0 }), ok...), "over 0 ranks, group world has 4"},
		{"shard of another size", with(manifest(func(m *Manifest) { m.States[2].Shard.Shape = []int64{256, 5} }), ok...), "a piece of [256 5] on 4 ranks is [320]"},
		{"shard overflow", with(manifest(func(m *Manifest) { m.States[2].Shard.Shape = []int64{1 << 40, 1 << 40} }), ok...), "overflows"},
		{"negative shard", with(manifest(func(m *Manifest) { m.States[2].Shard.Shape = []int64{-1} }), ok...), "negative"},
		{"unknown collective", with(manifest(func(m *Manifest) { m.Functions[2].Collectives[0].Op = "scan" }), ok...), `there is no "scan"`},
		{"collective of nobody", with(manifest(func(m *Manifest) { m.Functions[2].Collectives[0].Group = "" }), ok...), `no group ""`},
		{"negative collective", with(manifest(func(m *Manifest) { m.Functions[2].Collectives[0].Elements = -1 }), ok...), "negative"},
		{"sends less than nothing", with(manifest(func(m *Manifest) { m.Functions[2].Collectives[0].Sent = -1 }), ok...), "sends -1 bytes"},
		{"negative arena", with(manifest(func(m *Manifest) { m.Functions[1].Arena = -1 }), ok...), "arena of -1"},
	} {
		b, err := pack(c.files)
		require.NoError(t, err)
		_, err = Decode(b)
		require.ErrorContains(t, err, c.reason, c.name)
		require.Less(t, len(err.Error()), 300, c.name)
	}
}

// onceAStep makes it a manifest of ranks that keep whole gradients.
func onceAStep(m *Manifest) { m.Mesh.Zero = 0 }

// The function for a step's last micro-batch is the manifest's to say: by the mesh, not by names.
func TestLastAccumulate(t *testing.T) {
	for want, mesh := range map[string]*Mesh{Accumulate: nil, AccumulateLast: {CP: 1}} {
		require.Equal(t, want, (&Manifest{Mesh: mesh}).LastAccumulate())
	}
	require.Equal(t, Accumulate, (&Manifest{Mesh: &Mesh{DP: 2, CP: 1, Zero: 1}}).LastAccumulate())
	m := sample().Manifest
	onceAStep(&m)
	last := m.Functions[1]
	last.Name = AccumulateLast
	m.Functions = append(m.Functions, last)
	m.Format, m.Version = Format, Version
	require.NoError(t, m.Check())
}

// The last ranks' pieces are shorter where the ranks don't divide the tensor, but not their storage.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		ranks int
		shape []int64
		want  int64
	}{{4, []int64{256, 4}, 256}, {3, []int64{256, 4}, 342}, {8, []int64{3}, 1}, {2, nil, 1}, {2, []int64{0, 7}, 0}} {
		s := Shard{Group: World, Ranks: c.ranks, Shape: c.shape}
		require.Equal(t, c.want, s.Piece(), "%v", c)
	}
	m := &Mesh{DP: 3, CP: 2}
	require.Equal(t, []int{6, 3, 2}, []int{m.Ranks(World), m.Ranks(DP), m.Ranks(CP)})
	require.Equal(t, 0, (&Mesh{CP: 2}).Ranks(World))
	require.Equal(t, 1, (*Mesh)(nil).Ranks(World))
	require.True(t, (&Manifest{Mesh: m}).IsMeshScalar(DPRank))
	require.False(t, (&Manifest{}).IsMeshScalar(DPRank))
	require.False(t, (&Manifest{Mesh: m}).IsMeshScalar("lr"))
}

func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(a *Artifact)
		reason string
	}{
		{func(a *Artifact) { a.Files[0].Name = "../x" }, "plain relative path"},
		{func(a *Artifact) { a.Files[0].Name = ProgramName }, "comes twice"},
		{func(a *Artifact) { a.Files[0].Name = ManifestName }, "comes twice"},
		{func(a *Artifact) { a.Manifest.States[0].Shape[0] = -1 }, "negative"},
	} {
		a := sample()
		c.change(a)
		_, err := a.Encode()
		require.ErrorContains(t, err, c.reason)
		path := filepath.Join(t.TempDir(), "x.blx")
		require.Error(t, a.Write(path))
		require.NoFileExists(t, path)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, sample()))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(b) - commentSize; n > 0 { // forge the checksum, so that the fuzzer gets past it
			copy(b[n:], commentPrefix+hash(b[:n]))
		}
		a, err := Decode(b)
		if err != nil {
			return
		}
		_, err = a.Encode()
		require.NoError(t, err)
	})
}
