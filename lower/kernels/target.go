package kernels

// Target describes what kernels are cut for: sizes of blocks and what a target's kernels can do.
type Target struct {
	Name string

	// BlockElems is the elements of a block in fused loops: a chain of operations on blocks of that size stays in cache.
	BlockElems int64
	// TransposeEdge is the rows and the columns of a block of what is read along one axis and written along another; 0: blocks are
	// as others.
	TransposeEdge int64
	// EvenRows says that the rows of a block should be a power of two.
	EvenRows bool
	// RowElems is the longest row that is held in one block while it is reduced and used; longer ones are gone over
	// several times, in pieces.
	RowElems int64
	// OnlineSums says that the sum of a softmax over a longer row is made in the pass that finds its greatest element.
	OnlineSums bool
	// ColumnElems is the longest column that is held in one block while it is reduced, Columns the fewest of them in one.
	ColumnElems, Columns int64
	// SumRows is the rows of a block, of all tensors read together, of which the columns are added up, and nothing else is
	// reduced, if BlockElems are fewer rows; 0: they are as many.
	SumRows int64
	// PassElems is the elements of a block of a row that is gone over in pieces.
	PassElems int64
	// Panels is about the number of partial results of a sum over rows, PanelRows the fewest rows of each; PanelElems is the
	// most elements of a panel whose rows are gone over in pieces, if that is more than one.
	Panels, PanelRows, PanelElems int64
	// ScatterCols is the columns of a table that one grid point of a scatter fills.
	ScatterCols int64

	// ConstantElems is the most elements, equal ones, that a kernel reads from a constant in memory where it doesn't make them itself;
	// more are filled in by a kernel before. Copies of constants are the target's to make.
	ConstantElems int64

	// Lists says that independent kernels next to each other are launched together: each may work on one tensor of many that
	// are treated alike.
	Lists bool
	// LogitsElems is the most elements of logits that are treated like any tensor where a loss alone needs them; ClassifierRows is
	// how many rows of them, of float32, are computed at a time otherwise.
	LogitsElems, ClassifierRows int64

	// GemmRows and GemmCols is the block of a product that a grid point computes.
	GemmRows, GemmCols int64
	// GemmPoints is how many grid points a product should have: one that has fewer gets smaller blocks, down to 64 by 64.
	GemmPoints int64
	// GemmColumnSums says that a product's epilogue may add up the rows of its block.
	GemmColumnSums bool
	// Beside lists the precisions of products whose operands another product's epilogue may write beside its own results, if it reads
	// what they are computed of. Those of others are better computed where they are read.
	Beside []string
	// WideProducts says that products, and arithmetic, take float32 where elements are narrower: casts are made before.
	WideProducts bool

	// Float64 and Int64 say that kernels compute with such elements, and don't only move or convert them; Float64Products that
	// products do too.
	Float64, Float64Products, Int64 bool

	// Queries and Keys is the block of scores that attention works on.
	Queries, Keys int64
	// AttentionSumRows is over how many positions the gradient of attention adds up its results' columns, for the gradients of biases;
	// 0: it doesn't.
	AttentionSumRows int64
	// AttentionSteps says that the gradient of attention may be computed by several kernels, one after the other.
	AttentionSteps bool
}

// CPU describes processors as runtime/host/prim uses them: blocks of 16 KiB, of which a few fit the first-level cache;
// products in pieces of 32 by 128, on whole matrices that the matrix product itself cuts.
func CPU() Target {
	return Target{
		Name:       "cpu",
		BlockElems: 4096, RowElems: 8192, ColumnElems: 512, Columns: 16, PassElems: 4096, Panels: 64, PanelRows: 64, PanelElems: 1 << 40, ScatterCols: 64, ConstantElems: smallElems,
		LogitsElems: 1 << 26, ClassifierRows: 1024,
		GemmRows: 32, GemmCols: 128, WideProducts: true,
		Queries: 64, Keys: 128,
	}
}

// CUDA describes GPUs as lower/ptx uses them: a grid point is a block of up to 512 threads that hold 16 elements each of the
// largest block in registers, and sums over rows are cut into two pieces for each multiprocessor of an H200, which are all at work at once.
func CUDA() Target {
	return Target{
		Name:       "cuda",
		BlockElems: 4096, TransposeEdge: 64, EvenRows: true, RowElems: 8192, OnlineSums: true, ColumnElems: 1024, Columns: 8, SumRows: 8, PassElems: 8192, Panels: 264, PanelRows: 16, PanelElems: 1 << 15, ScatterCols: 256, Lists: true,
		LogitsElems: 1 << 24, ClassifierRows: 2048,
		GemmRows: 64, GemmCols: 128, GemmPoints: 128, GemmColumnSums: true, Beside: []string{"bf16", "tf32"}, WideProducts: true, Float64: true, Int64: true,
		Queries: 64, Keys: 64, AttentionSumRows: 16, AttentionSteps: true,
	}
}
