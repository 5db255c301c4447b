package sema

import (
	"maps"
	"slices"

	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
)

// batch is the sizes that exported functions are compiled for.
type batch struct {
	names      []string // in the order written, then those set on the command line, sorted
	sizes      map[string]shape.Int
	accumulate int64
}

// evalBatch computes the sizes that the train block names and those that the command line sets: a name that is free
// in some function's head may be set, so that a file without a train block can be compiled too.
func (c *checker) evalBatch() {
	c.batch = &batch{sizes: map[string]shape.Int{}, accumulate: 1}
	if clause := c.batchClause(); clause != nil {
		for _, b := range clause.Sizes {
			c.batchSize(b)
		}
	}
	if n, ok := c.setInt("accumulate"); ok {
		c.setSize("accumulate", n)
	}
	for _, name := range slices.Sorted(maps.Keys(c.opts.Set)) {
		_, isArg := c.args[name]
		_, known := c.batch.sizes[name]
		if !isArg && !known && name != "accumulate" && c.isFree(name) {
			c.batch.names = append(c.batch.names, name)
			n, _ := c.setInt(name)
			c.setSize(name, n)
		}
	}
}

func (c *checker) batchClause() *syntax.Batch {
	if c.train == nil {
		return nil
	}
	for _, clause := range c.train.Clauses {
		if b, ok := clause.(*syntax.Batch); ok {
			return b
		}
	}
	return nil
}

func (c *checker) batchSize(b *syntax.Binding) {
	name := b.Name.Name
	if _, isArg := c.args[name]; isArg {
		c.errorf(b.Name.Span, "%s is an argument of the model, not a size of the batch", name)
		return
	}
	if _, twice := c.batch.sizes[name]; twice {
		c.errorf(b.Name.Span, "%s is given twice", name)
		return
	}
	n, _ := c.size(c.newEnv(nil), b.Value, name)
	if set, isSet := c.setInt(name); isSet {
		n = shape.Lit(set)
	}
	if name == "accumulate" {
		c.setAccumulate(b.Name.Span, n.N)
		return
	}
	if !c.isFree(name) {
		c.warnf(b.Name.Span, "no function has a size %s", name)
	}
	c.batch.names = append(c.batch.names, name)
	c.setSize(name, n.N)
}

func (c *checker) setSize(name string, n int64) {
	if n < 1 {
		c.errorf(syntax.Span{}, "%s must be at least 1, it is set to %d", name, n)
		n = 1
	}
	if name == "accumulate" {
		c.setAccumulate(syntax.Span{}, n)
		return
	}
	c.batch.sizes[name] = shape.Named(name, n)
}

// mostMicroBatches is how many a step may have: more take longer than anybody waits for a step.
const mostMicroBatches = 1<<31 - 1

func (c *checker) setAccumulate(at syntax.Span, n int64) {
	if n > mostMicroBatches {
		c.errorf(at, "accumulate must be at most %d, it is %d", mostMicroBatches, n)
		n = 1
	}
	c.batch.accumulate = n
}

// isFree tells whether some function's head leaves a name open.
func (c *checker) isFree(name string) bool {
	return slices.ContainsFunc(c.allFuncs(), func(f callable) bool {
		return slices.ContainsFunc(c.head(f.decl).free, func(d syntax.Ident) bool { return d.Name == name })
	})
}
