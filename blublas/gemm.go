package blublas

import (
	"fmt"
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Precision is how products are computed.
type Precision string

const (
	FP32Strict Precision = "fp32-strict" // IEEE fused multiply-add, no tensor cores
	FP16x3     Precision = "fp16x3"      // two scaled float16 planes, three products, promoted to float32 every 64 of K; see Split
	BF16x6     Precision = "bf16x6"      // three bf16 planes, six products, promoted alike: float32's range, half the speed
	TF32       Precision = "tf32"        // one tf32 product, float32 accumulation
	BF16       Precision = "bf16"        // bf16 operands, float32 accumulation
)

// Unit is what multiplies.
type Unit string

const (
	SIMT  Unit = "simt"  // float32 units
	MMA   Unit = "mma"   // tensor cores, a warp at a time (sm_80)
	WGMMA Unit = "wgmma" // tensor cores, a warpgroup at a time, fed by the copy engine (sm_90a)
)

// Operand is how a matrix lies in memory. A is M x K, B is N x K, whichever is contiguous.
type Operand struct {
	MNMajor bool // the dimension that isn't contracted is contiguous
	Pitch   int  // elements from one row of the contiguous dimension to the next
}

// Gemm describes one kernel: C[i, j] = epilogue(sum over k of A[i, k] * B[j, k]).
type Gemm struct {
	M, N, K      int
	Precision    Precision
	Unit         Unit
	Target       string // sm_80, sm_89 or sm_90a
	A, B         Operand
	Unaligned    [2]bool      // A, B may start at an address that is no multiple of 16
	Of           [2]*Function // of A's and B's numbers, which are multiplied instead of them; SIMT has such
	Batch        []Batch      // products of one shape, each of matrices of its own
	BM, BN       int          // a block's tile of C
	BK           int          // depth of one stage
	Stages       int          // of the shared-memory ring
	Consumers    int          // warpgroups that multiply (WGMMA, SIMT)
	Pingpong     bool         // two consumers take turns at whole tiles, so that one's epilogue runs beside the other's products
	Cluster      int          // blocks along M that share B by multicast (WGMMA)
	SplitK       int          // parts of K, summed in fixed order by a second kernel
	Epilogue     Epilogue
	ThreadStores bool   // threads store results themselves, where the copy engine would
	Flags        [2]int // how many words of each operand say that planes don't hold all its numbers (FP16x3), each unless it is 0; none: nothing watches
	Refuge       *Gemm  // what is computed where they don't: on the float32 units, of the operands
}

// Batch is a dimension of a batch: how many products, and how far the matrices of A and B are apart, in elements; 0 where
// all products share one.
type Batch struct{ Size, A, B int }

// MaxBatch is how many dimensions a batch can have: with the two of a matrix as many as a tensor map describes.
const MaxBatch = 3

// matrices is how many products there are.
func (g Gemm) matrices() int {
	n := 1
	for _, b := range g.Batch {
		n *= b.Size
	}
	return n
}

// PartialBytes is the size of the products of all parts of K.
func (g Gemm) PartialBytes() int64 {
	return 4 * int64(g.SplitK) * int64(g.matrices()) * int64(g.M) * int64(g.N)
}

// Device is what Check and Cost know of a GPU.
type Device struct {
	Name           string
	Target         string  // the newest target it runs
	SMs            int     // multiprocessors
	SharedPerBlock int     // bytes
	Clock          float64 // Hz under load
	Tensor         float64 // products of bf16 in a cycle on the tensor cores of a multiprocessor
	MMA            float64 // the part of them that mma instructions reach
	Float          float64 // float32 multiply-adds in a cycle of a multiprocessor
	Bandwidth      float64 // of device memory, bytes/s read plus written
	L2Bandwidth    float64 // bytes/s
}

// H200 is the SXM part. The clock is what 800 TFLOP/s of bf16 come to, which power limits (bench/NOTES.md); device memory as a
// large copy moves it, read plus written. L2's bandwidth is not measured: it is set so that it doesn't limit 128 x 128 tiles,
// as it doesn't when they are timed.
var H200 = Device{Name: "NVIDIA H200", Target: ptx.SM90A, SMs: 132, SharedPerBlock: 232448, Clock: 1.55e9, Tensor: 2048, MMA: 0.42, Float: 128,
	Bandwidth: 4.3e12, L2Bandwidth: 1.2e13}

// A100 and L40S are described from their data sheets, not from measurements: the SXM part with 80 GB, and Ada's.
var (
	A100 = Device{Name: "NVIDIA A100", Target: ptx.SM80, SMs: 108, SharedPerBlock: 166912, Clock: 1.35e9, Tensor: 1024, MMA: 0.8, Float: 64,
		Bandwidth: 1.7e12, L2Bandwidth: 5e12}
	L40S = Device{Name: "NVIDIA L40S", Target: ptx.SM89, SMs: 142, SharedPerBlock: 101376, Clock: 2.2e9, Tensor: 512, MMA: 0.8, Float: 128,
		Bandwidth: 0.75e12, L2Bandwidth: 5e12}
)

// DeviceFor is the device that kernels for a target are cut for.
func DeviceFor(target string) Device {
	for _, d := range []Device{A100, L40S} {
		if d.Target == target {
			return d
		}
	}
	return H200
}

// elem is the bytes of an operand's element and how many planes it has.
func (g Gemm) elem() (size, planes int) {
	switch g.Precision {
	case BF16:
		return 2, 1
	case FP16x3:
		return 2, 2
	case BF16x6:
		return 2, 3
	}
	return 4, 1
}

// products lists the pairs of planes of A and B that are multiplied, smallest results first; plane 0 is the largest part
// of a number.
func (g Gemm) products() [][2]int {
	switch g.Precision {
	case FP16x3:
		return [][2]int{{1, 0}, {0, 1}, {0, 0}}
	case BF16x6:
		return [][2]int{{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}}
	}
	return [][2]int{{0, 0}}
}

// format is the matrix instructions' name for the operands' elements.
func (g Gemm) format() string {
	return map[Precision]string{BF16: "bf16", FP16x3: "f16", BF16x6: "bf16", TF32: "tf32"}[g.Precision]
}

func ceil(n, d int) int { return (n + d - 1) / d }

// depth is the part of K that one split contracts, a multiple of BK.
func (g Gemm) depth() int { return ceil(ceil(g.K, g.BK), g.SplitK) * g.BK }

// Name identifies the kernel among those of a program: equal kernels have equal names.
func (g Gemm) Name() string {
	layout := map[bool]string{false: "k", true: "m"}
	name := fmt.Sprintf("gemm_%s_%s_%s%s_%dx%dx%d_p%d_%d_t%dx%dx%d_s%d", g.Precision, g.Unit, layout[g.A.MNMajor], layout[g.B.MNMajor],
		g.M, g.N, g.K, g.A.Pitch, g.B.Pitch, g.BM, g.BN, g.BK, g.Stages)
	switch g.Unit {
	case WGMMA:
		name += fmt.Sprintf("_w%d_c%d", g.Consumers, g.Cluster)
	case SIMT:
		name += fmt.Sprintf("_w%d", g.Consumers)
	}
	if g.Pingpong {
		name += "_pp"
	}
	if g.ThreadStores {
		name += "_rows"
	}
	name += g.guarded()
	if g.SplitK > 1 {
		name += fmt.Sprintf("_k%d", g.SplitK)
	}
	for _, b := range g.Batch {
		name += fmt.Sprintf("_b%dx%d_%d", b.Size, b.A, b.B)
	}
	if g.Epilogue.Key != "" {
		name += "_" + g.Epilogue.Key
	}
	return symbol(name)
}

// symbol makes a name that PTX accepts.
func symbol(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			b[i] = '_'
		}
	}
	return string(b)
}

// Param is one parameter of a kernel, in order: a pointer, or a tensor map where Map is not nil, which starts Offset bytes
// after what the name stands for.
type Param struct {
	Name   string
	Map    *TensorMap
	Offset int64
}

// TensorMap describes the boxes of a matrix that the copy engine moves under the 128-byte swizzle. Element is bf16, f16,
// f32 or tf32 (float32 in memory, rounded while copied). The contiguous dimension comes first.
type TensorMap struct {
	Element string
	Dims    [2]int
	Pitch   int // bytes
	Box     [2]int
	Outer   []Outer // dimensions of a batch, in boxes of 1
}

// Outer is a dimension of a tensor map beyond the two of a matrix.
type Outer struct{ Size, Pitch int } // elements, bytes

// Layout is all dimensions of a map: elements, bytes from one to the next of all but the first, elements of a box. Where there is
// one of a dimension the distance says nothing, and may be any in what a view has, but the driver wants one that it knows.
func (m *TensorMap) Layout() (dims, strides, box []int) {
	dims, strides, box = slices.Clone(m.Dims[:]), []int{m.Pitch}, slices.Clone(m.Box[:])
	for _, o := range m.Outer {
		dims, strides, box = append(dims, o.Size), append(strides, o.Pitch), append(box, 1)
	}
	for i, n := range dims[1:] {
		if n == 1 {
			strides[i] = 16
		}
	}
	return dims, strides, box
}

// Kernel is a kernel and how it is launched.
type Kernel struct {
	Name    string
	Op      *ir.Op
	Grid    int // blocks, along x
	Threads int
	Cluster int
	Shared  int // bytes of dynamic shared memory
	Params  []Param
}

// Build makes the kernel. Parameters are A's planes, B's planes, then (fp16x3) A's and B's scales, then (with
// Flags) A and B themselves, then the epilogue's, then A's and B's flags. The configuration must pass Check.
func (g Gemm) Build(at *ir.Builder, d Device) (*Kernel, error) {
	if err := g.Check(d); err != nil {
		return nil, err
	}
	switch g.Unit {
	case WGMMA:
		return g.buildWGMMA(at, d), nil
	case SIMT:
		return g.buildSIMT(at, d), nil
	}
	return g.buildMMA(at, d), nil
}
