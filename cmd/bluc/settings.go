package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// settings is what --set NAME=VALUE,... gives: numbers and truth values. A name has one value: which of two was meant is not
// for the compiler to choose.
type settings struct {
	numbers map[string]float64
	truths  map[string]bool
}

// Decode implements kong's interface for values that read themselves. Of several flags all count.
func (s *settings) Decode(ctx *kong.DecodeContext) error {
	text := ""
	if err := ctx.Scan.PopValueInto("NAME=VALUE", &text); err != nil {
		return err
	}
	for item := range strings.SplitSeq(text, ",") {
		if err := s.set(item); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) set(item string) error {
	name, value, ok := strings.Cut(item, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" || value == "" {
		return fmt.Errorf("%q: expected NAME=VALUE", item)
	}
	_, number := s.numbers[name]
	_, truth := s.truths[name]
	if number || truth {
		return fmt.Errorf("%s is set twice", name)
	}
	if value == "true" || value == "false" {
		if s.truths == nil {
			s.truths = map[string]bool{}
		}
		s.truths[name] = value == "true"
		return nil
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%s=%s: expected a number, true or false", name, value)
	}
	if s.numbers == nil {
		s.numbers = map[string]float64{}
	}
	s.numbers[name] = v
	return nil
}
