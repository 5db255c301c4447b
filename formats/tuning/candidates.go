package tuning

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// CandidatesName is the file of an artifact that lists its candidates.
const CandidatesName = "candidates.json"

// Candidates is the choices that an artifact leaves to be measured.
type Candidates struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Sites   []Site `json:"sites"`
}

// candidatesFormat identifies the file.
const candidatesFormat = "blutrain-candidates"

// Site is a choice: the kernels of the program that it is about, and those that can stand for the first of them.
type Site struct {
	Key     string      `json:"key"`
	Kernels []string    `json:"kernels"`          // of the program, that have this key
	Normal  []float64   `json:"normal,omitempty"` // mean and deviation of the random numbers to measure with, for each reference; none: 0 and 1
	Options []Candidate `json:"options"`          // what the program runs first, then by predicted time
}

// Candidate is a choice and the kernel that was made by it, which takes the references of the site's kernels.
type Candidate struct {
	Choice string `json:"choice"`
	Kernel string `json:"kernel"`
}

// Encode is the list as text.
func (c *Candidates) Encode() ([]byte, error) {
	c.Format, c.Version = candidatesFormat, Version
	if err := c.check(); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(c, "", " ")
	return append(text, '\n'), err
}

// ParseCandidates reads the list.
func ParseCandidates(text []byte) (*Candidates, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	c := &Candidates{}
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: %w", CandidatesName, err)
	}
	if c.Format != candidatesFormat || c.Version != Version {
		return nil, fmt.Errorf("%s: format %q version %d, expected %q version %d", CandidatesName, c.Format, c.Version, candidatesFormat, Version)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", CandidatesName, err)
	}
	return c, nil
}

func (c *Candidates) check() error {
	seen := map[string]bool{}
	for _, s := range c.Sites {
		if s.Key == "" || seen[s.Key] {
			return fmt.Errorf("key %q is empty or comes twice", s.Key)
		}
		seen[s.Key] = true
		if len(s.Kernels) == 0 || len(s.Options) == 0 || s.Options[0].Kernel != s.Kernels[0] {
			return fmt.Errorf("key %q: its first option is not the program's kernel", s.Key)
		}
		if len(s.Normal)%2 != 0 {
			return fmt.Errorf("key %q: %d numbers are no means and deviations", s.Key, len(s.Normal))
		}
		choices := map[string]bool{}
		for _, o := range s.Options {
			if o.Choice == "" || o.Kernel == "" || choices[o.Choice] {
				return fmt.Errorf("key %q: choice %q is empty, comes twice or has no kernel", s.Key, o.Choice)
			}
			choices[o.Choice] = true
		}
	}
	if len(c.Sites) == 0 {
		return errors.New("there are no candidates")
	}
	return nil
}
