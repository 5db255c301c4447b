package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/runtime"
	"blutrain/train"
	"blutrain/train/data"
	"blutrain/train/logs"
)

type evalCmd struct {
	Model   string   `arg:"" help:"Compiled model, NAME.blx."`
	Data    []string `required:"" placeholder:"FILES" help:"Token files; patterns like val_*.bin are expanded."`
	Params  string   `required:"" placeholder:"PATH" help:"Checkpoint, folder of checkpoints, or .safetensors file."`
	Batches int64    `placeholder:"N" help:"Number of batches, of all ranks together, spread evenly over the data. Default: all whole ones."`
	JSON    bool     `help:"Print a JSON object."`
	deviceFlags
	rankFlags
}

// Validate implements kong's interface: it refuses flags that cannot be meant.
func (c *evalCmd) Validate() error {
	if c.Batches < 0 {
		return errors.New("--batches must not be negative")
	}
	return errors.Join(c.deviceFlags.Validate(), c.rankFlags.Validate())
}

// Run implements the command.
func (c *evalCmd) Run(e *env) error {
	return e.asRanks(c.rankFlags, func(j *job) error { return c.eval(e, j) })
}

// eval is the command on one rank.
func (c *evalCmd) eval(e *env, j *job) (err error) {
	_, p, err := j.open(e, c.Model, c.deviceFlags)
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
	if !j.first() {
		quiet := *e
		quiet.stderr = io.Discard
		e = &quiet
	}
	if err := e.restore(p, c.Params, 0); err != nil {
		return err
	}
	if err := c.agree(e.ctx, j, p, shards); err != nil {
		return err
	}
	loss, err := train.Evaluate(p, j.mesh, shards, c.Batches)
	if err != nil {
		return err
	}
	if !j.first() {
		return nil
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

// agree makes sure that all ranks evaluate the same parameters on the same data.
func (c *evalCmd) agree(ctx context.Context, j *job, p runtime.Program, shards *data.Shards) error {
	if j.size == 1 {
		return nil
	}
	tokens, err := shards.Fingerprint()
	if err != nil {
		return err
	}
	sum := sha256.New()
	for _, s := range p.Manifest().States {
		if s.Role != artifact.Param {
			continue
		}
		raw := make([]byte, s.Bytes())
		if err := p.ReadState(s.Name, raw); err != nil {
			return err
		}
		sum.Write(raw)
	}
	return dtms.Agree(ctx, j.world, []dtms.Fact{
		{Name: "--batches", Value: fmt.Sprint(c.Batches)}, {Name: "parameters with fingerprint", Value: fmt.Sprintf("%.8x", sum.Sum(nil))},
		{Name: "data", Value: fmt.Sprintf("of %d tokens, fingerprint %.16s", shards.Tokens(), tokens)},
	})
}
