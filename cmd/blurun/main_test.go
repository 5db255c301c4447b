package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/formats/npy"
	"blutrain/formats/safetensors"
	"blutrain/runtime"
	"blutrain/runtime/cuda"
	"blutrain/runtime/device"
	"blutrain/runtime/ref"
	"blutrain/runtime/verify"
	"blutrain/train/logs"
)

// source is a language model of bytes that learns in seconds on the reference device.
const source = `
model tiny(V = 256, C = 8) {
  param wte: f32[V, C] = normal(std: 0.5)
  param head: f32[V, C] = normal(std: 0.1)
  param bias: f32[V] = zeros

  fn logits(tokens: i32[B, S]) -> f32[B, S, V] {
    return linear(wte[tokens], head, bias)
  }
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    return cross_entropy(logits(tokens), targets, ignore: -1)
  }
}
train tiny {
  minimize loss
  batch B = 2, S = 8, accumulate = 2
  optimizer adamw(lr: cosine(max: 0.05, min: 0.01, warmup: 2, steps: 12), weight_decay: 0.01 where rank >= 2)
  clip global_norm 1.0
}
`

// work is a folder with the compiled model and a text of it, prepared.
type work struct {
	t   *testing.T
	dir string
}

func setUp(t *testing.T) work {
	w := work{t, t.TempDir()}
	w.compile("tiny.blx", source, "ref")
	w.write("text.txt", strings.Repeat("the quick brown fox jumps over the lazy dog. ", 20))
	_, _ = w.ok("data", "prepare", w.path("text.txt"), "-o", w.path("text.bin"), "--tokenizer", "byte")
	return w
}

func (w work) compile(name, source, target string) {
	r, err := driver.Compile("tiny.blu", []byte(source), driver.Options{Target: target})
	require.NoError(w.t, err)
	require.NoError(w.t, r.Artifact.Write(w.path(name)))
}

func (w work) path(name string) string { return filepath.Join(w.dir, name) }

func (w work) write(name, text string) {
	require.NoError(w.t, os.WriteFile(w.path(name), []byte(text), 0o644))
}

// run runs a command line and returns its exit status and output.
func (w work) run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	e := &env{ctx: context.Background(), stdout: &out, stderr: &errs, openDevice: device.Open,
		openReference: func(a *artifact.Artifact) (runtime.Program, error) { return ref.Open(a, runtime.Options{}) }}
	status = run(args, e)
	return status, out.String(), errs.String()
}

// ok runs a command line that must succeed.
func (w work) ok(args ...string) (stdout, stderr string) {
	w.t.Helper()
	status, stdout, stderr := w.run(args...)
	require.Zero(w.t, status, "%v: %s", args, stderr)
	return stdout, stderr
}

// train runs a training with JSON output and returns its steps and the end.
func (w work) train(args ...string) (steps []logs.Step, evals []logs.Eval, done logs.Done) {
	w.t.Helper()
	out, _ := w.ok(append([]string{"train", w.path("tiny.blx"), "--data", w.path("text.bin"), "--json"}, args...)...)
	for line := range strings.Lines(out) {
		switch {
		case strings.HasPrefix(line, `{"done"`):
			require.NoError(w.t, json.Unmarshal([]byte(line), &done))
		case strings.Contains(line, "checkpoint_stall_ms"):
			require.NotContains(w.t, line, "null")
		case strings.Contains(line, "val_loss"):
			var e logs.Eval
			require.NoError(w.t, json.Unmarshal([]byte(line), &e))
			evals = append(evals, e)
		default:
			var s logs.Step
			require.NoError(w.t, json.Unmarshal([]byte(line), &s))
			steps = append(steps, s)
		}
	}
	return steps, evals, done
}

func TestTrainEvalSample(t *testing.T) {
	w := setUp(t)
	steps, evals, done := w.train("--val-data", w.path("text.bin"), "--val-every", "6", "--checkpoint-dir", w.path("ckpt"),
		"--log-dir", w.path("logs"), "--seed", "5")
	require.Len(t, steps, 12, "the length of the schedule")
	require.True(t, done.Done)
	require.InDelta(t, 5.55, float64(steps[0].Loss), 0.3, "ln 256 at first")
	require.Less(t, float64(done.Loss), float64(steps[0].Loss)-0.5)
	require.Len(t, evals, 2)
	require.Equal(t, evals[1].Loss, *done.ValLoss)
	require.InDelta(t, 0.05, float64(steps[1].LR), 1e-12)
	for _, name := range []string{"log.jsonl", "loss.png", "loss.svg"} {
		require.FileExists(t, w.path("logs/"+name))
	}
	history, err := logs.ReadHistory(w.path("logs/log.jsonl"))
	require.NoError(t, err)
	require.Len(t, history.Steps, 12)

	out, errs := w.ok("eval", w.path("tiny.blx"), "--data", w.path("text.bin"), "--params", w.path("ckpt"), "--batches", "20", "--json")
	var eval struct{ Loss, Perplexity float64 }
	require.NoError(t, json.Unmarshal([]byte(out), &eval))
	require.InDelta(t, float64(*done.ValLoss), eval.Loss, 1e-6)
	require.Contains(t, errs, "parameters from "+w.path("ckpt/step-00000012"))
	out, _ = w.ok("eval", w.path("tiny.blx"), "--data", w.path("text.bin"), "--params", w.path("ckpt/step-00000012"))
	require.Regexp(t, `^loss \d\.\d{6}, perplexity \d+\.\d{3}\n$`, out)

	sample := []string{"sample", w.path("tiny.blx"), "--params", w.path("ckpt"), "--prompt", "the ", "--tokens", "5", "--seed", "3"}
	first, _ := w.ok(sample...)
	require.True(t, strings.HasPrefix(first, "the ") && len(first) == len("the ")+5+1, "%q", first)
	again, _ := w.ok(sample...)
	require.Equal(t, first, again)
	_, _ = w.ok("sample", w.path("tiny.blx"), "--params", w.path("ckpt"), "--tokens", "3", "--temperature", "0", "--top-k", "4")
}

func TestProgressForPeople(t *testing.T) {
	w := setUp(t)
	out, errs := w.ok("train", w.path("tiny.blx"), "--data", w.path("*.bin"), "--steps", "3", "--peak-tflops", "0.001")
	require.Empty(t, out)
	require.Regexp(t, `(?m)^step 1/3: loss \d\.\d{4}, \d+ tokens/s, \ds left, MFU \d+\.\d%, lr 2\.50e-02, grad norm \d\.\d{3}, [\d.]+ KiB$`, errs)
	require.Regexp(t, `(?m)^3 steps in [\d.]+m?s, loss \d\.\d{4}$`, errs)
}

func TestDataPrepare(t *testing.T) {
	w := setUp(t)
	w.write("b.txt", "hello world")
	out, _ := w.ok("data", "prepare", w.path("text.txt"), w.path("b.txt"), "-o", w.path("x.bin"), "--tokenizer", "gpt2")
	require.Contains(t, out, "x.bin: 205 tokens of 2 files, vocabulary 50257 (gpt2)")
	out, _ = w.ok("data", "prepare", w.path("b.txt"), "-o", w.path("x.bin"), "--tokenizer", "byte", "--json")
	require.JSONEq(t, `{"tokens":12,"vocab":256}`, out)
}

func TestDevices(t *testing.T) {
	w := work{t, t.TempDir()}
	out, _ := w.ok("devices")
	require.Regexp(t, `^cpu  .*, \d+ workers, kernels for .*go\n$`, out)
	out, _ = w.ok("devices", "--json")
	require.True(t, json.Valid([]byte(out)))
	out, _ = w.ok("version")
	require.Regexp(t, `^blurun \d+\.\d+\.\d+ \(.*, go.*\)\n$`, out)
}

// What is no fault of a machine is told from what is.
func TestNoGPUs(t *testing.T) {
	for _, err := range []error{cuda.ErrNoGPU, fmt.Errorf("%w: no library", cuda.ErrNoDriver), cuda.TooOld(11080)} {
		require.True(t, none(err), "%v", err)
	}
	require.False(t, none(nil))
	require.False(t, none(&cuda.Error{Code: 803, Name: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}))
}

func TestVerify(t *testing.T) {
	w := setUp(t)
	out, _ := w.ok("verify", w.path("tiny.blx"))
	require.Contains(t, out, "function    output or state")
	for _, want := range []string{"init        wte", "accumulate  grads/wte", "apply       adamw.m/head", "eval        loss_sum", "logits      logits"} {
		require.Contains(t, out, want)
	}
	require.Contains(t, out, "accumulate  grads/wte (added)")
	require.Regexp(t, `\nall \d+ outputs and states are within 1e-04\n$`, out)
	out, _ = w.ok("verify", w.path("tiny.blx"), "--json")
	require.Contains(t, out, `{"function":"init","name":"wte","elements":2048,"relative_error":0,"largest_error":0,"off":false}`)

	// A device that computes something else is found.
	var buffer bytes.Buffer
	e := &env{ctx: context.Background(), stdout: &buffer, stderr: &buffer, openDevice: openWrong,
		openReference: func(a *artifact.Artifact) (runtime.Program, error) { return ref.Open(a, runtime.Options{}) }}
	require.Equal(t, 1, run([]string{"verify", w.path("tiny.blx")}, e))
	require.Contains(t, buffer.String(), "logits: logits is off by 1.0e-03, more than 1e-04\n")
	require.Regexp(t, `blurun: error: 1 of \d+ outputs and states differ from the reference`, buffer.String())
	require.Equal(t, 0, run([]string{"verify", w.path("tiny.blx"), "--tolerance", "0.01"}, e))
}

// The verdict on functions says what was not compared.
func TestVerdictOnLooseElements(t *testing.T) {
	for loose, said := range map[int]string{
		0: "all 2 outputs and states are within 1e-04\n",
		3: "all 2 outputs and states are within 1e-04, but for 6 elements that rounding an input can make infinite or no number: they are not compared\n",
	} {
		var out bytes.Buffer
		row := verify.Row{Function: "eval", Name: "x", Error: verify.Error{Elements: 5, Loose: loose, Norm: 1, Bound: 1e-4}}
		require.NoError(t, (&verifyCmd{}).judge(&env{stdout: &out, stderr: &out}, &artifact.Artifact{}, []verify.Row{row, row}))
		require.Contains(t, out.String(), said)
	}
}

// wrong is a device whose logits are off by a thousandth.
type wrong struct{ runtime.Program }

func openWrong(a *artifact.Artifact, name string, o runtime.Options) (runtime.Program, error) {
	p, err := device.Open(a, name, o)
	return wrong{p}, err
}

func (w wrong) Call(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	out, err := w.Program.Call(fn, in, s)
	if fn == "logits" && err == nil {
		values := formats.Tensor(out["logits"]).Float32s()
		for i := range values {
			values[i] *= 1.001
		}
		out["logits"] = runtime.Array(formats.FromFloat32s(values, out["logits"].Shape...))
	}
	return out, err
}

func TestExec(t *testing.T) {
	w := setUp(t)
	tokens, targets := make([]int32, 16), make([]int32, 16)
	for i := range tokens {
		tokens[i], targets[i] = int32(i), int32(i+1)
	}
	w.npy("tokens.npy", formats.FromInt32s(tokens, 2, 8))
	w.npy("targets.npy", formats.FromInt32s(targets, 2, 8))
	exec := func(args ...string) []string {
		return append([]string{"exec", w.path("tiny.blx"), "--seed", "9"}, args...)
	}

	_, _ = w.ok(exec("--fn", "logits", "--in", "tokens="+w.path("tokens.npy"), "--out", w.path("logits.npy"))...)
	logits := w.readNpy("logits.npy")
	require.Equal(t, []int64{2, 8, 256}, logits.Shape)

	// Loss and gradients: cross entropy's gradient of the bias is softmax minus one-hot, summed.
	_, _ = w.ok(exec("--fn", "loss", "--in", "tokens="+w.path("tokens.npy"), "--in", "targets="+w.path("targets.npy"), "--grad",
		"--out", w.path("all.safetensors"), "--out", "grads/bias="+w.path("bias.npy"))...)
	bias := w.readNpy("bias.npy").Float64s()
	want := gradientOfBias(logits.Float64s(), targets)
	require.InDeltaSlice(t, want, bias, 1e-5)
	all := w.readSafetensors("all.safetensors")
	require.InDeltaSlice(t, want, all["grads/bias"].Float64s(), 1e-5)
	require.Equal(t, []int64{256, 8}, all["grads/wte"].Shape)

	// Parameters from a file give the same as those of the seed.
	_, _ = w.ok("train", w.path("tiny.blx"), "--data", w.path("text.bin"), "--steps", "1", "--checkpoint-dir", w.path("ckpt"))
	_, _ = w.ok("exec", w.path("tiny.blx"), "--fn", "logits", "--in", "tokens="+w.path("tokens.npy"),
		"--params", w.path("ckpt/step-00000001/rank-00000.safetensors"), "--out", w.path("trained.safetensors"))
	require.NotEqual(t, logits.Data, w.readSafetensors("trained.safetensors")["logits"].Data)

	w.safetensors("in.safetensors", map[string]formats.Tensor{"tokens": formats.FromInt32s(tokens, 2, 8), "targets": formats.FromInt32s(targets, 2, 8)})
	out, _ := w.ok(exec("--fn", "loss", "--in", w.path("in.safetensors"))...)
	require.Regexp(t, `: f32 \[\d`, out)
	out, _ = w.ok(exec("--fn", "logits", "--in", "tokens="+w.path("in.safetensors"))...)
	require.Regexp(t, `^\S+: f32\[2, 8, 256\] \[.* \.\.\.\]\n$`, out)
}

// gradientOfBias is the sum over rows of softmax(logits) - onehot(target).
func gradientOfBias(logits []float64, targets []int32) []float64 {
	out := make([]float64, 256)
	for i, target := range targets {
		row := logits[256*i : 256*(i+1)]
		p := softmax(row)
		for j := range p {
			out[j] += p[j]
		}
		out[target]--
	}
	return out
}

func (w work) npy(name string, x formats.Tensor) {
	var b bytes.Buffer
	require.NoError(w.t, npy.Write(&b, x))
	w.write(name, b.String())
}

func (w work) readNpy(name string) formats.Tensor {
	f, err := os.Open(w.path(name))
	require.NoError(w.t, err)
	defer f.Close()
	x, err := npy.ReadAll(f)
	require.NoError(w.t, err)
	return x
}

func (w work) safetensors(name string, tensors map[string]formats.Tensor) {
	var b bytes.Buffer
	var entries []safetensors.Entry
	for name, x := range tensors {
		entries = append(entries, safetensors.Of(name, x))
	}
	require.NoError(w.t, safetensors.Write(&b, entries, nil))
	w.write(name, b.String())
}

func (w work) readSafetensors(name string) map[string]formats.Tensor {
	b, err := os.ReadFile(w.path(name))
	require.NoError(w.t, err)
	f, err := safetensors.Open(bytes.NewReader(b), int64(len(b)))
	require.NoError(w.t, err)
	all := map[string]formats.Tensor{}
	for _, info := range f.Tensors {
		all[info.Name], err = f.Read(info.Name)
		require.NoError(w.t, err)
	}
	return all
}

func TestErrors(t *testing.T) {
	w := setUp(t)
	w.npy("tokens.npy", formats.FromInt32s(make([]int32, 16), 2, 8))
	w.npy("wide.npy", formats.Tensor{DType: formats.I64, Shape: []int64{1}, Data: make([]byte, 8)})
	w.write("bad.blx", "no artifact")
	w.write("small.bin", "0123456789")
	plain, _, _ := strings.Cut(source, "train tiny")
	w.compile("plain.blx", strings.NewReplacer("B, S", "2, 8").Replace(plain), "ref")
	require.NoError(t, os.MkdirAll(w.path("logs"), 0o755))
	w.write("logs/log.jsonl", `{"step":1,"loss":2}`+"\n")
	model, data, tokens := w.path("tiny.blx"), w.path("text.bin"), "tokens="+w.path("tokens.npy")
	for _, c := range []struct {
		status int
		reason string
		args   []string
	}{
		{2, "expected \"prepare\"", []string{"data"}},
		{2, "unexpected argument fly", []string{"fly"}},
		{2, "unknown flag --datum", []string{"train", model, "--datum", data}},
		{2, "missing flags: --data", []string{"train", model}},
		{1, "no such file", []string{"train", w.path("none.blx"), "--data", data}},
		{2, "--resume and --checkpoint-every need --checkpoint-dir", []string{"train", model, "--data", data, "--resume"}},
		{2, "--steps must be at least 1", []string{"train", model, "--data", data, "--steps=-1"}},
		{2, "--steps", []string{"train", model, "--data", data, "--steps", "many"}},
		{2, "--steps must be at least 1", []string{"train", model, "--data", data, "--steps", "0"}},
		{2, "must not be negative", []string{"train", model, "--data", data, "--val-every=-1"}},
		{2, "must not be negative", []string{"train", model, "--data", data, "--keep=-1"}},
		{2, "--accumulate must be at most 2147483647", []string{"train", model, "--data", data, "--accumulate", "9223372036854775807"}},
		{2, "--peak-tflops must be a number above 0", []string{"train", model, "--data", data, "--peak-tflops", "NaN"}},
		{2, "--peak-tflops must be a number above 0", []string{"train", model, "--data", data, "--peak-tflops", "0"}},
		{2, "--peak-tflops must be a number above 0", []string{"train", model, "--data", data, "--peak-tflops", "inf"}},
		{2, "larger than", []string{"train", model, "--data", data, "--seed", fmt.Sprint(uint64(1) << 60)}},
		{2, "larger than", []string{"verify", model, "--seed", fmt.Sprint(uint64(1) << 60)}},
		{2, "--threads must be from 0 to 4096", []string{"train", model, "--data", data, "--threads", "100000"}},
		{2, "--threads must be from 0 to 4096", []string{"bench", model, "--threads=-1"}},
		{2, "must not be negative", []string{"sample", model, "--params", model, "--tokens=-1"}},
		{2, "must not be negative", []string{"sample", model, "--params", model, "--top-k=-1"}},
		{2, "--temperature must be a number from 0 on", []string{"sample", model, "--params", model, "--temperature", "NaN"}},
		{2, "--batches must not be negative", []string{"eval", model, "--data", data, "--params", model, "--batches=-1"}},
		{2, "--tolerance must be a number from 0 on", []string{"verify", model, "--tolerance", "NaN"}},
		{2, `input "tokens" is given twice`, []string{"exec", model, "--fn", "logits", "--in", tokens, "--in", tokens}},
		{2, "is both input and output", []string{"exec", model, "--fn", "logits", "--in", tokens, "--out", w.path("tokens.npy")}},
		{2, "is both input and output", []string{"exec", model, "--fn", "logits", "--in", tokens, "--out", "logits=" + model}},
		{2, "is the place of two outputs", []string{"exec", model, "--fn", "logits", "--in", tokens, "--out", w.path("x.npy"), "--out", w.path("x.npy")}},
		{2, "is both input and output", []string{"profile", model, "--trace", model}},
		{1, `scalar "seed" is 1.5, wants a whole number`, []string{"exec", model, "--fn", "init", "--scalar", "seed=1.5"}},
		{2, "--tokenizer must be one of", []string{"data", "prepare", data, "-o", w.path("x"), "--tokenizer", "word"}},
		{2, `no input "token"; did you mean tokens?`, []string{"exec", model, "--fn", "logits", "--in", "token=" + w.path("tokens.npy")}},
		{2, `input "tokens" (i32[2, 8]) is missing`, []string{"exec", model, "--fn", "logits"}},
		{2, "say which input", []string{"exec", model, "--fn", "logits", "--in", w.path("tokens.npy")}},
		{2, "are .npy or .safetensors", []string{"exec", model, "--fn", "logits", "--in", "tokens=" + data}},
		{2, `no scalar "lr"`, []string{"exec", model, "--fn", "logits", "--in", tokens, "--scalar", "lr=1"}},
		{2, "outputs are NAME=FILE.npy or", []string{"exec", model, "--fn", "logits", "--in", tokens, "--out", w.path("x.txt")}},
		{2, `no output "logit"`, []string{"exec", model, "--fn", "logits", "--in", tokens, "--out", "logit=" + w.path("x.npy")}},
		{2, "training does not minimize logits", []string{"exec", model, "--fn", "logits", "--in", tokens, "--grad"}},
		{2, "larger than", []string{"exec", model, "--fn", "logits", "--in", tokens, "--seed", fmt.Sprint(uint64(1) << 60)}},
		{1, "bad.blx: not an artifact", []string{"train", w.path("bad.blx"), "--data", data}},
		{1, `the artifact was compiled for ref and doesn't run on device cpu`, []string{"train", model, "--data", data, "--device", "cpu"}},
		{1, `there is no device "tpu": there are cpu, ref (the reference), cuda`, []string{"train", model, "--data", data, "--device", "tpu"}},
		{1, "none*.bin: no such file", []string{"train", model, "--data", w.path("none*.bin")}},
		{1, "small.bin: its 5 tokens hold no window of 8 tokens", []string{"train", model, "--data", w.path("small.bin")}},
		{1, "has no train block", []string{"train", w.path("plain.blx"), "--data", data}},
		{1, "has no train block", []string{"eval", w.path("plain.blx"), "--data", data, "--params", model}},
		{1, "log.jsonl is the log of an earlier run", []string{"train", model, "--data", data, "--log-dir", w.path("logs")}},
		{1, "no valid checkpoint", []string{"eval", model, "--data", data, "--params", w.dir}},
		{1, `no function "logit" (it has`, []string{"exec", model, "--fn", "logit"}},
		{1, `input "tokens" is i64[1], the function takes i32[2, 8]`, []string{"exec", model, "--fn", "logits", "--in", "tokens=" + w.path("wide.npy")}},
		{1, `no input "x"`, []string{"exec", model, "--fn", "logits", "--in", w.other("x.safetensors")}},
		{1, "has no function lo that gives logits", []string{"sample", model, "--params", model, "--fn", "lo"}},
		{1, "both input and output", []string{"data", "prepare", data, "-o", data, "--tokenizer", "byte"}},
	} {
		status, out, errs := w.run(c.args...)
		require.Equal(t, c.status, status, "%v: %s", c.args, errs)
		require.Contains(t, errs, "blurun: error: ", "%v", c.args)
		require.Contains(t, errs, c.reason, "%v", c.args)
		require.NotContains(t, errs, "goroutine", "%v", c.args)
		require.Empty(t, out, "%v", c.args)
	}
	require.NoFileExists(t, w.path("x.npy"))
	for _, args := range [][]string{{"--help"}, nil} {
		status, out, errs := w.run(args...)
		require.Zero(t, status)
		require.Contains(t, out, "Continue a text.")
		require.Empty(t, errs)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestPrintingToAFullDisk: what could not be printed is an error, whatever was to be printed.
func TestPrintingToAFullDisk(t *testing.T) {
	w := setUp(t)
	w.npy("tokens.npy", formats.FromInt32s(make([]int32, 16), 2, 8))
	_, _ = w.ok("train", w.path("tiny.blx"), "--data", w.path("text.bin"), "--steps", "1", "--checkpoint-dir", w.path("ckpt"))
	model, data, params := w.path("tiny.blx"), w.path("text.bin"), w.path("ckpt")
	for _, args := range [][]string{
		{"--help"}, {"devices"}, {"devices", "--json"}, {"version"}, {"verify", model}, {"verify", model, "--json"}, {"bench", model, "--steps", "1"},
		{"sample", model, "--params", params}, {"eval", model, "--params", params, "--data", data, "--batches", "1"},
		{"exec", model, "--fn", "logits", "--in", "tokens=" + w.path("tokens.npy")}, {"data", "prepare", data, "-o", w.path("x.bin"), "--tokenizer", "byte"},
	} {
		var errs bytes.Buffer
		e := &env{ctx: context.Background(), stdout: fullDisk{}, stderr: &errs, openDevice: device.Open,
			openReference: func(a *artifact.Artifact) (runtime.Program, error) { return ref.Open(a, runtime.Options{}) }}
		require.Equal(t, 1, run(args, e), "%v", args)
		require.Contains(t, errs.String(), "blurun: error: no space left on device\n", "%v", args)
	}
}

func (w work) other(name string) string {
	w.safetensors(name, map[string]formats.Tensor{"x": formats.FromInt32s([]int32{1}, 1)})
	return w.path(name)
}
func softmax(x []float64) []float64 {
	p, sum := make([]float64, len(x)), 0.0
	for i, v := range x {
		p[i] = math.Exp(v)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
