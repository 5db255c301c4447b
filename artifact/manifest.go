// Package artifact is the compiled file, NAME.blx: what bluc writes and blurun reads. It is a zip archive of a manifest, the
// program and what belongs to it, written the same byte for byte from the same content, and checked whole before any
// of it is believed. The package knows the manifest's fields and their consistency; what the program means is for others.
package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"blutrain/formats"
)

// Format and Version identify manifests that this package reads and writes.
const (
	Format  = "blx"
	Version = 1
)

// Names of the files every artifact has or may have. Kernels are in kernels/, the model's text in source/.
const (
	ManifestName  = "manifest.json"
	ProgramName   = "program.mlir"
	ReferenceName = "reference.mlir"
)

// Manifest says what an artifact holds.
type Manifest struct {
	Format       string             `json:"format"`
	Version      int                `json:"version"`
	Compiler     string             `json:"compiler"`                // version of the compiler
	Target       string             `json:"target"`                  // cpu, cuda, ref, llvm
	Arch         string             `json:"arch,omitempty"`          // sm_90a; empty where the target has no variants
	Precision    string             `json:"precision"`               // fp32, fp32-strict, tf32, bf16
	Model        string             `json:"model"`                   // the model's name in its source
	Args         map[string]float64 `json:"args"`                    // the model's arguments
	Tuning       *Tuning            `json:"tuning,omitempty"`        // nil where no measured choice decided anything
	ThreadStores bool               `json:"thread_stores,omitempty"` // kernels have threads store all results, none the copy engine
	Train        *Train             `json:"train,omitempty"`         // nil when the source has no train block
	Mesh         *Mesh              `json:"mesh,omitempty"`          // nil when the program runs on one rank
	States       []State            `json:"states"`
	Functions    []Function         `json:"functions"`
	Memory       Memory             `json:"memory"`
	Files        []FileInfo         `json:"files"` // all but the manifest, by name; filled in by Encode
}

// Tuning is the table of measured choices that a program was compiled with (package formats/tuning).
type Tuning struct {
	SHA256 string `json:"sha256"` // of the table's file
	Found  int    `json:"found"`  // choices that are the table's
	Keys   int    `json:"keys"`   // choices that there were
}

// Train is the train block of the model.
type Train struct {
	Minimize  string  `json:"minimize"` // the function that gives the loss
	Batch     Batch   `json:"batch"`
	Schedule  Method  `json:"schedule"` // the learning rate; package train/schedule evaluates it
	Optimizer Method  `json:"optimizer"`
	ClipNorm  float64 `json:"clip_norm,omitempty"` // 0: no clipping
	Inputs    []Value `json:"inputs"`              // of one micro-batch of one rank
}

// Batch is the size of a training step on one data-parallel rank.
type Batch struct {
	B          int64 `json:"b"`          // sequences of a micro-batch; 0 when the model has no size B
	S          int64 `json:"s"`          // tokens of a sequence; 0 when the model has no size S, since it is not one of sequences
	Accumulate int64 `json:"accumulate"` // micro-batches of a step
}

// Method is a kind and its named numbers: an optimizer, a schedule. Booleans are 0 and 1.
type Method struct {
	Kind   string             `json:"kind"`
	Params map[string]float64 `json:"params"`
}

// Value is a named tensor that goes into or comes out of a function. Rank 0 is a shape of length 0.
type Value struct {
	Name  string        `json:"name"`
	DType formats.DType `json:"dtype"`
	Shape []int64       `json:"shape"`
	Below int64         `json:"below,omitempty"` // of an input of indices: how many things they choose among; 0: not known, or none
}

// Role is what a state is for.
type Role string

// The roles.
const (
	Param       Role = "param"
	Gradient    Role = "gradient"
	Optimizer   Role = "optimizer"
	Accumulator Role = "accumulator"
	Copy        Role = "copy"
)

// Accumulate is the function that a micro-batch is given to, AccumulateLast the one for the last of a step in programs of a mesh whose ranks
// add up what they have once a step: it does that, too. Others have none.
const (
	Accumulate     = "accumulate"
	AccumulateLast = "accumulate_last"
)

// LastAccumulate is the function for the last micro-batch of a step.
func (m *Manifest) LastAccumulate() string {
	if m.sumsOnce() {
		return AccumulateLast
	}
	return Accumulate
}

// sumsOnce reports whether ranks add up gradients once a step, and not for each micro-batch, as shards of them need.
func (m *Manifest) sumsOnce() bool { return m.Mesh != nil && m.Mesh.Zero == 0 }

// Refresh is the function that makes copies of parameters anew, in programs that have some. It takes and gives states alone.
const Refresh = "refresh"

// State is a named tensor that lives as long as the program.
type State struct {
	Value
	Role        Role     `json:"role"`
	Persist     bool     `json:"persist"`                // part of a checkpoint
	Of          string   `json:"of,omitempty"`           // of a copy, which is in bfloat16: the parameter
	Init        string   `json:"init,omitempty"`         // the initializer as written
	Dims        []string `json:"dims,omitempty"`         // the dimensions as written
	WeightDecay float64  `json:"weight_decay,omitempty"` // of a parameter
	Shard       *Shard   `json:"shard,omitempty"`        // nil: every rank has all of it
}

// Function is a function that can be called by name.
type Function struct {
	Name    string  `json:"name"`
	Inputs  []Value `json:"inputs"`
	Outputs []Value `json:"outputs"`
	Scalars []Value `json:"scalars"` // rank 0, set at each call
	Arena   int64   `json:"arena_bytes"`
	Flops   float64 `json:"flops"` // floating-point operations of one call

	Collectives []Collective `json:"collectives,omitempty"` // in the order in which they begin
}

// Memory is the static plan, in bytes.
type Memory struct {
	Params    int64 `json:"params"`
	Gradients int64 `json:"gradients"`
	Optimizer int64 `json:"optimizer"` // and accumulators
	Copies    int64 `json:"copies,omitempty"`
	Arena     int64 `json:"arena"` // of the function that needs most
	Total     int64 `json:"total"`
}

// FileInfo is a file of the archive.
type FileInfo struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Function finds a function by name.
func (m *Manifest) Function(name string) (*Function, bool) {
	for i := range m.Functions {
		if m.Functions[i].Name == name {
			return &m.Functions[i], true
		}
	}
	return nil, false
}

// State finds a state by name.
func (m *Manifest) State(name string) (*State, bool) {
	for i := range m.States {
		if m.States[i].Name == name {
			return &m.States[i], true
		}
	}
	return nil, false
}

// Own lists the states that are no copies of others: what can be written, and what there is to compare.
func (m *Manifest) Own() []State {
	return slices.DeleteFunc(slices.Clone(m.States), func(s State) bool { return s.Role == Copy })
}

// Bytes is the size of a value that Check accepted.
func (v Value) Bytes() int64 {
	n, err := formats.ByteSize(v.DType, v.Shape)
	if err != nil {
		panic("artifact: size of a value that was not checked: " + err.Error())
	}
	return n
}

// parseManifest reads JSON. Format and version come first, so that another version is named as such and not by its new fields.
func parseManifest(text []byte) (Manifest, error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Manifest{}, err
	}
	if head.Format != Format {
		return Manifest{}, fmt.Errorf("format is %q, expected %q", clip(head.Format), Format)
	}
	if head.Version != Version {
		return Manifest{}, fmt.Errorf("format version is %d, this program reads %d: compile the model again with the matching bluc", head.Version, Version)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var m Manifest
	if err := d.Decode(&m); err != nil {
		return Manifest{}, err
	}
	return m, m.Check()
}

// Check says what in the manifest contradicts itself.
func (m *Manifest) Check() error {
	if m.Format != Format || m.Version != Version {
		return fmt.Errorf("format %q version %d, expected %q version %d", m.Format, m.Version, Format, Version)
	}
	if m.Target == "" || m.Model == "" {
		return errors.New("target or model is empty")
	}
	if t := m.Tuning; t != nil && (len(t.SHA256) != 2*sha256.Size || t.Found < 0 || t.Found > t.Keys) {
		return fmt.Errorf("tuning: %d of %d choices of table %q", t.Found, t.Keys, clip(t.SHA256))
	}
	if m.ThreadStores && m.Target != "cuda" {
		return fmt.Errorf("thread_stores: the target %s has no kernels of which that could be said", clip(m.Target))
	}
	names := map[string]bool{}
	if err := m.checkMesh(); err != nil {
		return fmt.Errorf("mesh: %w", err)
	}
	for _, s := range m.States {
		if err := s.check("state", names); err != nil {
			return err
		}
		if err := m.checkShard(s); err != nil {
			return fmt.Errorf("state %q: %w", s.Name, err)
		}
		if err := m.checkRole(s); err != nil {
			return fmt.Errorf("state %q %w", s.Name, err)
		}
	}
	names = map[string]bool{}
	for _, f := range m.Functions {
		if f.Name == "" || names[f.Name] {
			return fmt.Errorf("function %q has no name or comes twice", f.Name)
		}
		names[f.Name] = true
		if err := f.check(); err != nil {
			return fmt.Errorf("function %q: %w", f.Name, err)
		}
		for i, c := range f.Collectives {
			if err := m.checkCollective(c); err != nil {
				return fmt.Errorf("function %q: collective %d: %w", f.Name, i, err)
			}
		}
	}
	if m.Train != nil {
		if err := m.Train.check(names); err != nil {
			return fmt.Errorf("train: %w", err)
		}
	}
	if err := m.checkLast(); err != nil {
		return err
	}
	return m.checkMemory()
}

// checkLast holds accumulate_last to accumulate, and to the mesh whose ranks it adds up: training calls it where there is such a mesh, and
// without it ranks would go apart.
func (m *Manifest) checkLast() error {
	last, has := m.Function(AccumulateLast)
	switch {
	case has && !m.sumsOnce():
		return fmt.Errorf("there is a function %s, and no mesh whose ranks add up gradients once a step", AccumulateLast)
	case !has && m.sumsOnce() && m.Train != nil:
		return fmt.Errorf("the ranks of the mesh add up gradients once a step, and there is no function %s", AccumulateLast)
	case !has:
		return nil
	}
	one, ok := m.Function(Accumulate)
	same := func(a, b Value) bool {
		return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape)
	}
	if !ok || !slices.EqualFunc(one.Inputs, last.Inputs, same) || !slices.EqualFunc(one.Outputs, last.Outputs, same) || !slices.EqualFunc(one.Scalars, last.Scalars, same) {
		return fmt.Errorf("function %s isn't called as %s is", AccumulateLast, Accumulate)
	}
	return nil
}

// checkRole holds a copy to its parameter, and to there being what makes it anew.
func (m *Manifest) checkRole(s State) error {
	switch s.Role {
	case Param, Gradient, Optimizer, Accumulator:
		if s.Of != "" {
			return fmt.Errorf("has role %q and is a copy of %q", s.Role, clip(s.Of))
		}
		return nil
	case Copy:
	default:
		return fmt.Errorf("has role %q", clip(string(s.Role)))
	}
	param, ok := m.State(s.Of)
	if !ok || param.Role != Param || param.DType != formats.F32 || s.DType != formats.BF16 || !slices.Equal(param.Shape, s.Shape) || param.Shard != nil || s.Shard != nil || s.Persist {
		return fmt.Errorf("is a copy of %q: that must be a parameter of float32 and of the same shape, whole, and the copy, of bfloat16, doesn't persist", clip(s.Of))
	}
	if f, ok := m.Function(Refresh); !ok || len(f.Inputs)+len(f.Outputs)+len(f.Scalars)+len(f.Collectives) > 0 {
		return fmt.Errorf("is a copy, and there is no function %s that makes it of nothing but the parameter", Refresh)
	}
	return nil
}

func (v Value) check(what string, names map[string]bool) error {
	if v.Name == "" || names[v.Name] {
		return fmt.Errorf("%s %q has no name or comes twice", what, v.Name)
	}
	names[v.Name] = true
	if _, err := formats.ByteSize(v.DType, v.Shape); err != nil {
		return fmt.Errorf("%s %q: %w", what, v.Name, err)
	}
	if v.Below < 0 || v.Below > 0 && (what != "input" || v.DType.IsFloat() || v.DType == formats.Bool || v.Below-1 > math.MaxInt64>>(64-8*v.DType.Size())) {
		return fmt.Errorf("%s %q: %s below %d are no indices", what, v.Name, v.DType, v.Below)
	}
	return nil
}

func (f *Function) check() error {
	names := map[string]bool{} // inputs and scalars share the names of a call
	for _, v := range f.Inputs {
		if err := v.check("input", names); err != nil {
			return err
		}
	}
	for _, v := range f.Scalars {
		if err := v.check("scalar", names); err != nil {
			return err
		}
		if len(v.Shape) != 0 {
			return fmt.Errorf("scalar %q has shape %v", v.Name, v.Shape)
		}
	}
	names = map[string]bool{}
	for _, v := range f.Outputs {
		if err := v.check("output", names); err != nil {
			return err
		}
	}
	if f.Arena < 0 || f.Flops < 0 || math.IsNaN(f.Flops) {
		return fmt.Errorf("arena of %d bytes, %g flops", f.Arena, f.Flops)
	}
	return nil
}

func (t *Train) check(functions map[string]bool) error {
	if t.Batch.B < 0 || t.Batch.S < 0 || t.Batch.Accumulate < 1 {
		return fmt.Errorf("batch B = %d, S = %d, accumulate = %d: accumulate must be at least 1, the others not negative", t.Batch.B, t.Batch.S, t.Batch.Accumulate)
	}
	if !(t.ClipNorm >= 0) {
		return fmt.Errorf("clip_norm is %g", t.ClipNorm)
	}
	for _, need := range []string{"init", "accumulate", "apply", "eval"} {
		if !functions[need] {
			return fmt.Errorf("function %q is missing", need)
		}
	}
	names := map[string]bool{}
	for _, v := range t.Inputs {
		if err := v.check("input", names); err != nil {
			return err
		}
	}
	return nil
}

// checkMemory compares the plan with the states it is the plan of.
func (m *Manifest) checkMemory() error {
	sums := map[Role]int64{}
	for _, s := range m.States {
		if sums[s.Role] += s.Bytes(); sums[s.Role] < 0 {
			return fmt.Errorf("%s states overflow 63 bits of bytes", s.Role)
		}
	}
	for _, part := range []struct {
		role Role
		plan int64
	}{{Param, m.Memory.Params}, {Gradient, m.Memory.Gradients}, {Optimizer, m.Memory.Optimizer - sums[Accumulator]}, {Copy, m.Memory.Copies}} {
		if part.plan < sums[part.role] {
			return fmt.Errorf("memory plan gives %d bytes to %s states, they need %d", part.plan, part.role, sums[part.role])
		}
	}
	for _, f := range m.Functions {
		if f.Arena > m.Memory.Arena {
			return fmt.Errorf("memory plan has an arena of %d bytes, function %q needs %d", m.Memory.Arena, f.Name, f.Arena)
		}
	}
	if p := m.Memory; p.Total != p.Params+p.Gradients+p.Optimizer+p.Copies+p.Arena {
		return fmt.Errorf("memory plan has a total of %d bytes, and other parts", p.Total)
	}
	return nil
}

func clip(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
