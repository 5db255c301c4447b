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
	Data    []string `required:"" placeholder:"FILES" help:"Files of tokens or arrays, as for train; patterns like val_*.bin are expanded."`
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
	source, err := openData(c.Data)
	if err != nil {
		return err
	}
	defer source.Close()
	if !j.first() {
		quiet := *e
		quiet.stderr = io.Discard
		e = &quiet
	}
	if err := e.restore(p, c.Params, 0); err != nil {
		return err
	}
	if err := c.agree(e.ctx, j, p, source); err != nil {
		return err
	}
	loss, err := train.Evaluate(p, j.mesh, source, c.Batches)
	if err != nil {
		return err
	}
	if !j.first() {
		return nil
	}
	return c.report(e, p.Manifest(), loss)
}

// report prints the loss, and of a model of sequences what it means: its perplexity.
func (c *evalCmd) report(e *env, m *artifact.Manifest, loss float64) error {
	r := struct {
		Loss       logs.Number  `json:"loss"`
		Perplexity *logs.Number `json:"perplexity,omitempty"`
	}{Loss: logs.Number(loss)}
	text := fmt.Sprintf("loss %.6f", loss)
	if m.Train.Batch.S > 0 {
		perplexity := logs.Number(math.Exp(loss))
		r.Perplexity = &perplexity
		text += fmt.Sprintf(", perplexity %.3f", float64(perplexity))
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(r)
	}
	_, err := fmt.Fprintln(e.stdout, text)
	return err
}

// agree makes sure that all ranks evaluate the same parameters on the same data.
func (c *evalCmd) agree(ctx context.Context, j *job, p runtime.Program, source data.Source) error {
	if j.size == 1 {
		return nil
	}
	print, err := source.Fingerprint()
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
		{Name: "data", Value: fmt.Sprintf("of %s, fingerprint %.16s", source, print)},
	})
}
