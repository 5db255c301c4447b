package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"blutrain/train"
	"blutrain/train/logs"
)

type evalCmd struct {
	Model   string   `arg:"" help:"Compiled model, NAME.blx."`
	Data    []string `required:"" placeholder:"FILES" help:"Token files; patterns like val_*.bin are expanded."`
	Params  string   `required:"" placeholder:"PATH" help:"Checkpoint, folder of checkpoints, or .safetensors file."`
	Batches int64    `placeholder:"N" help:"Number of batches, spread evenly over the data. Default: all whole ones."`
	JSON    bool     `help:"Print a JSON object."`
	deviceFlags
}

// Validate implements kong's interface: it refuses flags that cannot be meant.
func (c *evalCmd) Validate() error {
	if c.Batches < 0 {
		return errors.New("--batches must not be negative")
	}
	return c.deviceFlags.Validate()
}

// Run implements the command.
func (c *evalCmd) Run(e *env) (err error) {
	_, p, err := e.open(c.Model, c.deviceFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := train.CheckFunctions(p.Manifest()); err != nil {
		return err
	}
	shards, err := openShards(c.Data)
	if err != nil {
		return err
	}
	defer shards.Close()
	if err := e.restore(p, c.Params, 0); err != nil {
		return err
	}
	loss, err := train.Evaluate(p, nil, shards, c.Batches)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(struct {
			Loss       logs.Number `json:"loss"`
			Perplexity logs.Number `json:"perplexity"`
		}{logs.Number(loss), logs.Number(math.Exp(loss))})
	}
	_, err = fmt.Fprintf(e.stdout, "loss %.6f, perplexity %.3f\n", loss, math.Exp(loss))
	return err
}
