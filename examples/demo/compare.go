package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"blutrain/examples/demo/ngram"
)

const (
	maxOrder = 5
	goal     = 1.70 // nats a byte that the model stays below
)

// comparison is losses on the held-out files in nats a byte: of tables of order 1, 2, ..., and of the model.
type comparison struct {
	tables []float64
	model  float64
}

// compare prints the model's loss on the held-out files beside those of tables that were counted on as many bytes as the
// model was trained on.
func (d *demo) compare() (comparison, error) {
	var c comparison
	out, err := d.command("blurun", "eval", d.path("gpt2.blx"), "--data", d.path("val.bin"), "--params", d.path("checkpoints"), "--json").Output()
	if err != nil {
		return c, fmt.Errorf("blurun eval: %w", err)
	}
	var eval struct{ Loss *float64 }
	if err := json.Unmarshal(out, &eval); err != nil || eval.Loss == nil {
		return c, fmt.Errorf("blurun eval printed %q", out)
	}
	c.model = *eval.Loss
	known, err := text(d.corpus.train, d.size.bytes())
	if err != nil {
		return c, err
	}
	held, err := text(d.corpus.held, 0)
	if err != nil {
		return c, err
	}
	fmt.Fprintf(d.out, "\nLoss on %d bytes of %d files that nothing has learned from, in nats a byte, after %d bytes:\n",
		len(held), len(d.corpus.held), len(known))
	table := ngram.Count(maxOrder, known)
	for order := 1; order <= maxOrder; order++ {
		loss := table.Loss(order, held)
		c.tables = append(c.tables, loss)
		fmt.Fprintf(d.out, "  table of the byte after %d  %.4f\n", order, loss)
	}
	fmt.Fprintf(d.out, "  gpt2.blu                   %.4f\n", c.model)
	return c, nil
}

// verdict is an error when the model did not learn what it should.
func (c comparison) verdict() error {
	if best := slices.Min(c.tables); !(c.model < best) {
		return fmt.Errorf("the model's loss %.4f is not below the best table's, %.4f", c.model, best)
	}
	if !(c.model < goal) {
		return fmt.Errorf("the model's loss %.4f is not below %.2f", c.model, goal)
	}
	return nil
}
