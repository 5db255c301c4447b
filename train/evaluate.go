package train

import (
	"blutrain/dtms"
	"blutrain/runtime"
	"blutrain/train/data"
)

// Evaluate gives the mean loss of a program over blocks of B rows that are spread evenly over the data; 0 blocks: all whole ones.
// The ranks of a mesh share the blocks, all call it, and get the mean of all, which is that of one rank but for the order of the sum.
func Evaluate(p runtime.Program, mesh *dtms.Mesh, source data.Source, blocks int64) (float64, error) {
	sum, count := 0.0, 0.0
	c := DataConfig(p.Manifest(), mesh)
	err := evaluation(source, c, blocks, func(rows data.Batch, shared bool) error {
		out, err := p.Call("eval", inputs(rows), runtime.Scalars{"seed": 0})
		if err != nil {
			return err
		}
		times := 1.0 // that a block is in the outputs, which are sums over the ranks
		if shared {
			times = float64(c.Ranks)
		}
		sum += float64(scalar(out, "loss_sum")) / times
		count += float64(scalar(out, "count")) / times
		return nil
	})
	return sum / count, err
}

// evaluation reads this rank's part of the blocks. Those that are left over when each rank has had the same number are shared: every rank
// reads them, since all must call a function that sums over the ranks.
func evaluation(source data.Source, c data.Config, blocks int64, use func(rows data.Batch, shared bool) error) error {
	c.Sequential, c.Sample = true, blocks
	whole := c
	whole.Rank, whole.Ranks = 0, 1
	rest, err := data.NewLoader(source, whole, nil)
	if err != nil {
		return err
	}
	defer func() { rest.Close() }()
	left := rest.Blocks()
	if rounds := left / int64(c.Ranks); c.Ranks > 1 && rounds > 0 {
		mine, err := data.NewLoader(source, c, nil)
		if err != nil {
			return err
		}
		defer mine.Close()
		if err := each(mine, rounds, func(rows data.Batch) error { return use(rows, false) }); err != nil {
			return err
		}
		state := mine.State()
		rest.Close()
		if rest, err = data.NewLoader(source, whole, &state); err != nil {
			return err
		}
		left -= rounds * int64(c.Ranks)
	}
	return each(rest, left, func(rows data.Batch) error { return use(rows, c.Ranks > 1) })
}

func each(l *data.Loader, n int64, use func(data.Batch) error) error {
	for range n {
		rows, err := l.Next()
		if err != nil {
			return err
		}
		if err := use(rows); err != nil {
			return err
		}
	}
	return nil
}
