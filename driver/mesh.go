package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blutrain/dialects/dtms"
	"blutrain/internal/near"
)

// Sharding is how a program is shared between ranks. The zero value is for a program of one rank, which is not sharded.
type Sharding struct {
	Mesh    string // its axes: dp (any number of ranks), dp=4, cp=2, or dp,cp=2
	Zero    int    // 1: gradients and optimizer state are cut into shards, one a rank
	Context string // ring, ulysses or gather; "" is ring
	Bucket  int64  // bytes of tensors that are communicated together; 0 is 25 MiB
}

// bucketSize is what Bucket is by default: large enough that the time to begin a call doesn't count, small enough that most
// of a model's gradients are under way before the last are computed.
const bucketSize = 25 << 20

// intensity is how many floating-point operations of products take as long as bringing a byte to another rank, which decides how much is
// computed behind the last sum. Measured on two H200s (bench/RESULTS.md): an all-reduce of 25 MiB has 217 GB/s, products of bf16, tf32, fp32
// and fp32-strict in a step of GPT-2 have about 650, 320, 160 and 52 TFLOP/s. Processors with TCP between them are about as far apart as
// 100 GFLOP/s and 2 GB/s.
func intensity(target, precision string) float64 {
	if target != "cuda" {
		return 50
	}
	return map[string]float64{"bf16": 3000, "tf32": 1500, "fp32": 740, "fp32-strict": 240}[precision]
}

// given reports whether any option of it is.
func (o Sharding) given() bool { return o != Sharding{} }

// parse reads the mesh; without one the others have no meaning.
func (o Sharding) parse() (m dtms.Mesh, err error) {
	m = dtms.Mesh{DP: 1, CP: 1, Zero: o.Zero, Context: cmp.Or(o.Context, dtms.Contexts[0])}
	if o.Mesh == "" {
		return m, optionErrorf("--zero, --context and --bucket-size are about many ranks: they need --mesh, as in --mesh dp=4")
	}
	var axes []string
	for axis := range strings.SplitSeq(o.Mesh, ",") {
		name, size, sized := strings.Cut(axis, "=")
		if slices.Contains(axes, name) {
			return m, optionErrorf("--mesh %s: the axis %s is there twice", o.Mesh, name)
		}
		axes = append(axes, name)
		n, err := strconv.Atoi(size)
		if sized && (err != nil || n < 1 || n > dtms.MaxRanks) {
			return m, optionErrorf("--mesh %s: %s has a number of ranks from 1 to %d, not %q", o.Mesh, name, dtms.MaxRanks, size)
		}
		switch {
		case name == dtms.DP:
			m.DP = n // 0 where it is any number
		case name == dtms.CP && sized:
			m.CP = n
		case name == dtms.CP:
			return m, optionErrorf("--mesh %s: the number of ranks that share a sequence must be known: say cp=2", o.Mesh)
		default:
			return m, optionErrorf("--mesh %s: there is no axis %q%s; there are dp, cp", o.Mesh, name, near.Suggest(name, []string{dtms.DP, dtms.CP}))
		}
	}
	return m, o.check(m)
}

// check refuses what doesn't go together.
func (o Sharding) check(m dtms.Mesh) error {
	switch {
	case o.Context != "" && !slices.Contains(dtms.Contexts, o.Context):
		return optionErrorf("--context %s: there is no such way%s; there are %s", o.Context, near.Suggest(o.Context, dtms.Contexts), strings.Join(dtms.Contexts, ", "))
	case o.Context != "" && m.CP == 1:
		return optionErrorf("--context %s is about ranks that share a sequence: it needs cp in --mesh, as in --mesh dp,cp=2", o.Context)
	case o.Zero == 1 && m.DP == 0:
		return optionErrorf("--zero 1 cuts states into one shard a rank: the number of ranks must be known, as in --mesh dp=4")
	case o.Bucket < 0:
		return optionErrorf("--bucket-size %d: expected a number of bytes", o.Bucket)
	}
	if err := m.Check(); err != nil {
		return optionErrorf("--mesh %s: %v", o.Mesh, err)
	}
	return nil
}

// passOptions is the mesh as the pass shard wants it; the mesh has been checked.
func (o Sharding) passOptions() string {
	m, err := o.parse()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("dp=%d cp=%d zero=%d context=%s", m.DP, m.CP, m.Zero, m.Context)
}
