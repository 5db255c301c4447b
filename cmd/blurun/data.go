package main

import (
	"encoding/json"
	"fmt"

	"blutrain/train/data"
)

type dataCmd struct {
	Prepare prepareCmd `cmd:"" help:"Tokenize text files into one token file."`
}

type prepareCmd struct {
	Texts     []string `arg:"" name:"text" help:"Text files. Each is preceded by the tokenizer's separator."`
	Output    string   `short:"o" required:"" placeholder:"FILE" help:"Token file to write."`
	Tokenizer string   `enum:"byte,gpt2" required:"" placeholder:"NAME" help:"byte (256 tokens, separator 0) or gpt2 (50257 tokens, separator 50256)."`
	JSON      bool     `help:"Print a JSON object."`
}

// Run implements the command.
func (c *prepareCmd) Run(e *env) error {
	t, err := data.NewTokenizer(c.Tokenizer)
	if err != nil {
		return err
	}
	n, err := data.Prepare(c.Output, t, c.Texts)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(struct {
			Tokens int64 `json:"tokens"`
			Vocab  int   `json:"vocab"`
		}{n, t.Vocab})
	}
	_, err = fmt.Fprintf(e.stdout, "%s: %d tokens of %d files, vocabulary %d (%s)\n", c.Output, n, len(c.Texts), t.Vocab, t.Name)
	return err
}
