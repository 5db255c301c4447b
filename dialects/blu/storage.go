package blu

import (
	"math"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Named storage: what lives longer than a call. A param is what a person trains; a state is what the compiler adds for
// training it. Functions read and write storage through their interface (arg_attrs and res_attrs); only the module as
// written reads params in place, with get.

// The roles of blu.state.
const (
	RoleGradient    = "gradient"
	RoleOptimizer   = "optimizer"
	RoleAccumulator = "accumulator"
	RoleCopy        = "copy"
)

// Initializers lists the kinds of a parameter's init, each with the numbers its dictionary must hold.
var Initializers = map[string][]string{
	"normal":   {"mean", "std"},
	"uniform":  {"low", "high"},
	"zeros":    nil,
	"ones":     nil,
	"constant": {"value"},
}

// Param declares a parameter.
var Param = define(ir.OpDef{
	Name:    "param",
	Summary: "a named parameter of the model",
	Description: "Storage that lives as long as the program and is trained. `init` says what it holds before the first step: its `kind` is " +
		"normal (`mean`, `std`), uniform (`low`, `high`), zeros, ones or constant (`value`); its `text` is what the person wrote.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "name, layers by number: h.0.ln1_g"},
		{Name: "type", Kind: ir.TypeKind, Doc: "tensor type"},
		{Name: "init", Kind: ir.DictKind, Doc: "initial values"},
		{Name: "dims", Kind: ir.ArrayKind, Optional: true, Doc: "dimensions as the person wrote them, strings"},
		{Name: "weight_decay", Kind: ir.F64Kind, Optional: true, Doc: "weight decay of this parameter, where it is decayed"},
	},
	Traits: ir.Symbol,
	Verify: verifyParam,
})

// State declares storage of the training program.
var State = define(ir.OpDef{
	Name:    "state",
	Summary: "named storage of the training program: a gradient sum, an optimizer moment, an accumulator, a copy of a parameter",
	Description: "Storage that lives as long as the program and starts as zeros. States that `persist` belong in a checkpoint; the others " +
		"are rewritten before they are read at every step. A copy is of the parameter `of`, in another element type: who writes the parameter writes it. One with `shard` holds a part of a tensor: its elements in row-major order are cut into " +
		"as many equal blocks as there are ranks, with zeros behind them so that they divide, and each rank has its block.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "name: grads/wte, adamw.m/wte, loss_sum, bf16/wte"},
		{Name: "type", Kind: ir.TypeKind, Doc: "tensor type"},
		{Name: "role", Kind: ir.StringKind, Doc: "gradient, optimizer, accumulator or copy"},
		{Name: "persist", Kind: ir.BoolKind, Doc: "whether a checkpoint holds it"},
		{Name: "of", Kind: ir.SymbolKind, Optional: true, Doc: "of a copy: the parameter"},
		{Name: "shard", Kind: ir.DictKind, Optional: true, Doc: "of what it is a rank's shard: `group` and `ranks` that share it, `shape` of the whole"},
	},
	Traits: ir.Symbol,
	Verify: verifyState,
})

// Get reads a parameter in place.
var Get = define(ir.OpDef{
	Name:        "get",
	Summary:     "the value of a parameter",
	Description: "Reads the parameter that `param` names. Only the module as written has it: afterwards functions take parameters as arguments.",
	Attrs:       []ir.AttrDef{{Name: "param", Kind: ir.SymbolKind, Doc: "the parameter"}},
	Results:     []ir.ResultDef{{Name: "value", Type: kinds.AnyTensor}},
	Traits:      ir.Pure,
	Verify:      verifyGet,
})

func verifyParam(op *ir.Op) error {
	if err := verifyStorageType(op); err != nil {
		return err
	}
	init := op.Attr("init").(*ir.DictAttr)
	kind := ir.Attrs(init.Entries).Str("kind")
	numbers, known := Initializers[kind]
	if !known {
		return op.Errorf("parameter @%s: there is no initializer %q", ir.SymName(op), kind)
	}
	for _, name := range numbers {
		f, ok := ir.Attrs(init.Entries).Get(name).(*ir.FloatAttr)
		if !ok || math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			return op.Errorf("parameter @%s: initializer %s needs a finite number %q", ir.SymName(op), kind, name)
		}
	}
	if dims, ok := op.Attr("dims").(*ir.ArrayAttr); ok {
		if rank := len(storageType(op).Shape); len(dims.Elems) != rank {
			return op.Errorf("parameter @%s: %d names for %d dimensions", ir.SymName(op), len(dims.Elems), rank)
		}
		for _, d := range dims.Elems {
			if _, ok := d.(*ir.StringAttr); !ok {
				return op.Errorf("parameter @%s: dims holds %s, not a string", ir.SymName(op), d)
			}
		}
	}
	return nil
}

func verifyState(op *ir.Op) error {
	if err := verifyStorageType(op); err != nil {
		return err
	}
	if !slices.Contains([]string{RoleGradient, RoleOptimizer, RoleAccumulator, RoleCopy}, op.Attrs().Str("role")) {
		return op.Errorf("state @%s: there is no role %q", ir.SymName(op), op.Attrs().Str("role"))
	}
	if err := verifyCopy(op); err != nil {
		return err
	}
	return verifyShard(op)
}

// verifyCopy holds a copy to its parameter.
func verifyCopy(op *ir.Op) error {
	name, copies := op.Attrs().Sym("of"), op.Attrs().Str("role") == RoleCopy
	if copies != (name != "") || copies && op.Attrs().Bool("persist") {
		return op.Errorf("state @%s: a copy, and nothing else, says of which parameter it is one, and doesn't persist", ir.SymName(op))
	}
	module := enclosingTable(op)
	if !copies || module == nil {
		return nil
	}
	param := ir.LookupSymbol(module, name)
	if param == nil || !param.Is(Param) {
		return op.Errorf("state @%s: there is no parameter @%s", ir.SymName(op), name)
	}
	if t := param.Attr("type").(*ir.TypeAttr).Type; !slices.Equal(storageType(op).Shape, storageType(param).Shape) {
		return op.Errorf("state @%s of type %s is no copy of parameter @%s, a %s", ir.SymName(op), storageType(op), name, t)
	}
	return nil
}

// verifyShard holds a shard to the size that the whole and the number of ranks give.
func verifyShard(op *ir.Op) error {
	d, ok := op.Attr("shard").(*ir.DictAttr)
	if !ok {
		return nil
	}
	at := ir.Attrs(d.Entries)
	ranks, _ := at.Int("ranks")
	shape, given := at.Get("shape").(*ir.DenseArrayAttr)
	if at.Str("group") == "" || ranks < 1 || !given || !kinds.AnyTensor.OK(&ir.TensorType{Shape: shape.Ints, Elem: storageType(op).Elem}) {
		return op.Errorf("state @%s: shard needs a group, a number of ranks and the shape of the whole", ir.SymName(op))
	}
	size := (ir.NumElements(shape.Ints) + ranks - 1) / ranks
	if t := storageType(op); len(t.Shape) != 1 || t.Shape[0] != size {
		return op.Errorf("state @%s: its type is %s, a shard of %v for one of %d ranks has %d elements", ir.SymName(op), t, shape.Ints, ranks, size)
	}
	return nil
}

func verifyStorageType(op *ir.Op) error {
	if t := op.Attr("type").(*ir.TypeAttr).Type; !kinds.AnyTensor.OK(t) {
		return op.Errorf("@%s has type %s, which is no tensor of static shape", ir.SymName(op), t)
	}
	return nil
}

// storageType is the tensor type of a verified param or state.
func storageType(op *ir.Op) *ir.TensorType {
	return op.Attr("type").(*ir.TypeAttr).Type.(*ir.TensorType)
}

func verifyGet(op *ir.Op) error {
	name := op.Attrs().Sym("param")
	module := enclosingTable(op)
	if module == nil {
		return nil // detached: nothing to look the name up in
	}
	param := ir.LookupSymbol(module, name)
	if param == nil || param.Name() != "blu.param" {
		return op.Errorf("there is no parameter @%s", name)
	}
	if t := op.Result(0).Type(); t != param.Attr("type").(*ir.TypeAttr).Type {
		return op.Errorf("parameter @%s is a %s, read as %s", name, param.Attr("type"), t)
	}
	return nil
}

// enclosingTable is the nearest symbol table around op, or nil.
func enclosingTable(op *ir.Op) *ir.Op {
	p := op.Parent()
	for p != nil && !p.Has(ir.SymbolTable) {
		p = p.Parent()
	}
	return p
}
