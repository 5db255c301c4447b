// Package ir is the intermediate representation every phase works on. It has MLIR's structure: operations with operands,
// results, attributes, regions and a source location; blocks with arguments; SSA values with use chains; types and
// attributes that are immutable and interned in a Context, so that equality is pointer equality.
//
// The package knows nothing of any particular dialect: what an operation means is said by the OpDef its dialect
// registers. It never prints to the terminal, reads files or keeps state outside the values it is given.
package ir
