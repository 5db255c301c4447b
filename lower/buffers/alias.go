package buffers

import "blutrain/ir"

// mayShare reports whether argument in and argument out of a kernel may be the same memory: whether each grid point reads
// of the input exactly the block it later writes of the output, and nothing else. That is so when the output has one
// store, and every use of the input is a load of the same block at the same offsets, before the store and in its block.
func mayShare(kernel *ir.Op, in, out int) bool {
	body := kernel.Body()
	src, dst := body.Arg(in), body.Arg(out)
	if src.Type() != dst.Type() {
		return false
	}
	store := onlyStore(dst)
	if store == nil || store.Block() != body {
		return false
	}
	for u := range src.Uses() {
		load := u.Owner()
		if load.Name() != "tile.load" || load.Block() != body || !load.IsBefore(store) || !sameBlock(load, store) {
			return false
		}
	}
	return true
}

// onlyStore is the single tile.store to a reference, or nil when it is used in any other way.
func onlyStore(ref *ir.Value) *ir.Op {
	if !ref.HasOneUse() {
		return nil
	}
	for u := range ref.Uses() {
		if op := u.Owner(); op.Name() == "tile.store" && u.Index() == 1 {
			return op
		}
	}
	return nil
}

// sameBlock reports whether load and store touch the same block: equal offsets and equal block types.
func sameBlock(load, store *ir.Op) bool {
	if load.Result(0).Type() != store.Operand(0).Type() || load.NumOperands()-1 != store.NumOperands()-2 {
		return false
	}
	for i := 1; i < load.NumOperands(); i++ {
		if load.Operand(i) != store.Operand(i+1) {
			return false
		}
	}
	return true
}
