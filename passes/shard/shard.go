package shard

import (
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// Names of the functions of training that are sharded; all others are computed whole by every rank.
const (
	initialize = "init"
	accumulate = "accumulate"
	apply      = "apply"
	eval       = "eval"
)

// Run makes a module of training functions, as autodiff leaves it, into the module of one rank of the mesh, and sets its
// attribute dtms.MeshAttr. Errors are about what is in the module, or say that it can't be sharded so.
func Run(c *ir.Context, module *ir.Op, mesh dtms.Mesh, watch Watch) error {
	if err := mesh.Check(); err != nil {
		return module.Errorf("shard: %v", err)
	}
	if module.Attr(dtms.MeshAttr) != nil {
		return module.Errorf("shard: the module is sharded already")
	}
	if mesh.CP == 1 {
		mesh.Context = ""
	}
	s := &sharder{c: c, module: module, mesh: mesh, visit: watch.Visit, remark: watch.Remark}
	if mesh.CP > 1 {
		if err := s.shardContext(); err != nil {
			return err
		}
	}
	if err := s.shardData(); err != nil {
		return err
	}
	module.SetAttr(dtms.MeshAttr, mesh.Attr(c))
	return nil
}

// Watch is told of what the pass does.
type Watch struct {
	Visit  func(*ir.Op)                        // each operation, before it is worked on
	Remark func(loc *ir.Location, text string) // what a person may want to know of the program, once a place
}

// sharder is a run of the pass.
type sharder struct {
	c      *ir.Context
	module *ir.Op
	mesh   dtms.Mesh
	visit  func(*ir.Op)
	remark func(*ir.Location, string)
}

// function is the function of that name, or nil.
func (s *sharder) function(name string) *ir.Op {
	return ir.LookupSymbol(s.module, name)
}
