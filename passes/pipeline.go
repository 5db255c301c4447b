package passes

import (
	"fmt"
	"strings"

	"blutrain/internal/near"
)

// Pipeline is passes to run, in order, on operations of one name.
type Pipeline struct {
	Anchor string // the operation's full name: "builtin.module"
	Steps  []Step
}

// Step is a pass with its options or, on the operations directly inside, a pipeline.
type Step struct {
	Pass    *Pass
	Options any
	Nested  *Pipeline
}

// NewPipeline is a pipeline of passes with default options on a module.
func NewPipeline(table []Pass, names ...string) (*Pipeline, error) {
	return ParsePipeline(table, "builtin.module("+strings.Join(names, ",")+")")
}

// ParsePipeline reads builtin.module(pass,pass{option=value option},func.func(pass)) and checks the order of the passes.
// Errors give the column.
func ParsePipeline(table []Pass, text string) (*Pipeline, error) {
	p := &pipelineParser{table: table, src: text}
	p.space()
	name := p.name()
	if name == "" || p.peek() != '(' {
		return nil, p.errorf("expected an operation and passes for it, as in builtin.module(canonicalize,cse)")
	}
	pl, err := p.pipeline(name, 0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(p.src) {
		return nil, p.errorf("expected the end")
	}
	return pl, checkPipelineOrder(pl.flat(nil))
}

type pipelineParser struct {
	table []Pass
	src   string
	pos   int
}

func (p *pipelineParser) errorf(format string, args ...any) error {
	return fmt.Errorf("pass pipeline, column %d: %s", p.pos+1, fmt.Sprintf(format, args...))
}

func (p *pipelineParser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *pipelineParser) space() {
	for p.peek() == ' ' || p.peek() == '\n' || p.peek() == '\t' {
		p.pos++
	}
}

// name reads letters, digits, '-', '_' and '.'.
func (p *pipelineParser) name() string {
	start := p.pos
	for c := p.peek(); c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'; c = p.peek() {
		p.pos++
	}
	return p.src[start:p.pos]
}

// maxNesting bounds the operations within operations of a pipeline.
const maxNesting = 32

// pipeline reads (steps) after the anchor's name.
func (p *pipelineParser) pipeline(anchor string, depth int) (*Pipeline, error) {
	if depth > maxNesting {
		return nil, p.errorf("nested deeper than %d levels", maxNesting)
	}
	pl := &Pipeline{Anchor: anchor}
	p.pos++ // '('
	for p.space(); p.peek() != ')'; p.space() {
		if len(pl.Steps) > 0 {
			if p.peek() != ',' {
				return nil, p.errorf("expected ',' or ')'")
			}
			p.pos++
			p.space()
		}
		s, err := p.step(depth)
		if err != nil {
			return nil, err
		}
		pl.Steps = append(pl.Steps, s)
	}
	p.pos++
	return pl, nil
}

func (p *pipelineParser) step(depth int) (Step, error) {
	at := p.pos
	name := p.name()
	if name == "" {
		return Step{}, p.errorf("expected a pass")
	}
	if p.peek() == '(' {
		nested, err := p.pipeline(name, depth+1)
		return Step{Nested: nested}, err
	}
	pass := Find(p.table, name)
	if pass == nil {
		p.pos = at
		var names []string
		for i := range p.table {
			names = append(names, p.table[i].Name)
		}
		return Step{}, p.errorf("no pass %s%s", name, near.Suggest(name, names))
	}
	s := Step{Pass: pass, Options: pass.Options}
	if p.peek() == '{' {
		return s, p.options(&s)
	}
	return s, nil
}

// options reads {name=value name}.
func (p *pipelineParser) options(s *Step) error {
	p.pos++
	for p.space(); p.peek() != '}'; p.space() {
		at := p.pos
		name := p.name()
		if name == "" {
			return p.errorf("expected an option of %s or '}'", s.Pass.Name)
		}
		if s.Options == nil {
			p.pos = at
			return p.errorf("%s has no options", s.Pass.Name)
		}
		value, given := "", p.peek() == '='
		if given {
			p.pos++
			end := strings.IndexAny(p.src[p.pos:], " \n\t}")
			if end < 0 {
				return p.errorf("expected '}'")
			}
			value = p.src[p.pos : p.pos+end]
			p.pos += end
		}
		o, err := setOption(s.Options, name, value, given)
		if err != nil {
			p.pos = at
			return p.errorf("%s: %v", s.Pass.Name, err)
		}
		s.Options = o
	}
	p.pos++
	return nil
}

// Find is the row of that name, or nil.
func Find(table []Pass, name string) *Pass {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// String is the pipeline's text, which ParsePipeline reads; only options that differ from the defaults are in it.
func (pl *Pipeline) String() string {
	steps := make([]string, len(pl.Steps))
	for i, s := range pl.Steps {
		if s.Nested != nil {
			steps[i] = s.Nested.String()
			continue
		}
		steps[i] = s.Pass.Name
		if o := changedOptions(s.Pass.Options, s.Options); len(o) > 0 {
			steps[i] += "{" + strings.Join(o, " ") + "}"
		}
	}
	return pl.Anchor + "(" + strings.Join(steps, ",") + ")"
}

// flat appends the passes of a pipeline, nested ones in their place.
func (pl *Pipeline) flat(ps []*Pass) []*Pass {
	for _, s := range pl.Steps {
		if s.Nested != nil {
			ps = s.Nested.flat(ps)
		} else {
			ps = append(ps, s.Pass)
		}
	}
	return ps
}

// checkPipelineOrder holds the passes to their After lists: what must come before a pass may not appear only behind it.
func checkPipelineOrder(ps []*Pass) error {
	first := map[string]int{}
	for i, p := range ps {
		if _, ok := first[p.Name]; !ok {
			first[p.Name] = i
		}
	}
	for i, p := range ps {
		for _, a := range p.After {
			if at, ok := first[a.Pass]; ok && at > i {
				return fmt.Errorf("pass pipeline: %s must run before %s: %s", a.Pass, p.Name, a.Reason)
			}
		}
	}
	return nil
}
