package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"blutrain/runtime"
	"blutrain/train"
	"blutrain/train/data"
)

type sampleCmd struct {
	Model       string  `arg:"" help:"Compiled model, NAME.blx."`
	Params      string  `required:"" placeholder:"PATH" help:"Checkpoint, folder of checkpoints, or .safetensors file."`
	Prompt      string  `placeholder:"TEXT" help:"Text to continue. Default: the beginning of a document."`
	Tokens      int     `placeholder:"N" default:"100" help:"Tokens to add (${default})."`
	Temperature float64 `placeholder:"X" default:"1" help:"Divides the logits (${default}); 0: always the likeliest token."`
	TopK        int     `placeholder:"N" help:"Draw among the N likeliest tokens only. Default: all."`
	Seed        uint64  `placeholder:"N" help:"Seed of the drawing (0)."`
	Fn          string  `default:"logits" placeholder:"NAME" help:"Function that gives logits [B, S, V] (${default})."`
	Tokenizer   string  `enum:"auto,byte,gpt2" default:"auto" placeholder:"NAME" help:"byte or gpt2. Default: the one with the model's vocabulary."`
	deviceFlags
}

// Validate implements kong's interface: it refuses flags that cannot be meant.
func (c *sampleCmd) Validate() error {
	switch {
	case c.Tokens < 0 || c.TopK < 0:
		return errors.New("--tokens and --top-k must not be negative")
	case !(c.Temperature >= 0) || math.IsInf(c.Temperature, 0):
		return errors.New("--temperature must be a number from 0 on")
	}
	return c.deviceFlags.Validate()
}

// Run implements the command.
func (c *sampleCmd) Run(e *env) (err error) {
	_, p, err := e.open(c.Model, c.deviceFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	t, err := c.tokenizer(p)
	if err != nil {
		return err
	}
	prompt := []uint16{t.Separator}
	if c.Prompt != "" {
		if prompt, err = t.Encode(c.Prompt); err != nil {
			return err
		}
	}
	if err := e.restore(p, c.Params, 0); err != nil {
		return err
	}
	fmt.Fprint(e.stdout, c.Prompt)
	s := train.Sampler{Program: p, Function: c.Fn, Temperature: c.Temperature, TopK: c.TopK, Seed: c.Seed}
	err = s.Generate(prompt, c.Tokens, func(token uint16) error {
		if e.ctx.Err() != nil {
			return context.Cause(e.ctx)
		}
		text, err := t.Decode([]uint16{token})
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(e.stdout, text)
		return err
	})
	fmt.Fprintln(e.stdout)
	return err
}

func (c *sampleCmd) tokenizer(p runtime.Program) (*data.Tokenizer, error) {
	if c.Tokenizer != "auto" {
		return data.NewTokenizer(c.Tokenizer)
	}
	vocab := train.SampleVocabulary(p.Manifest(), c.Fn)
	if vocab == 0 {
		return nil, fmt.Errorf("model %s has no function %s that gives logits [B, S, V]", p.Manifest().Model, c.Fn)
	}
	t, err := data.TokenizerFor(vocab)
	if err != nil {
		return nil, fmt.Errorf("%w: choose one with --tokenizer", err)
	}
	return t, nil
}
