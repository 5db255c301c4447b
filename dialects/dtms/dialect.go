package dtms

import (
	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "dtms",
	Summary: "programs on many ranks: collective operations on tensors",
	Ops:     []*ir.OpDef{AllReduce, ReduceScatter, AllGather, AllToAll, Permute, Start, Wait},
}

// The groups of ranks: all of them, those of one place in the sequence, those with the same batch.
const (
	World = "world"
	DP    = "dp"
	CP    = "cp"
)

// Groups lists the groups.
var Groups = []string{World, DP, CP}
