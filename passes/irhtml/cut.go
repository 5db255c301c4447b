package irhtml

import (
	"encoding/json"
	"strconv"
	"strings"

	"blutrain/ir"
)

// A chunk is a part of a module's text that is stored once however many passes leave it as it is: an operation with
// regions, such as a function; a run of operations without; the first line of a symbol table; its last. These are its
// fields as the page reads them. Values have numbers within the chunk. A row is a line, or part of one that is too long.
type chunk struct {
	Kind    int      `json:"k"`           // one of the kinds below
	Name    string   `json:"n,omitempty"` // the symbol that it is
	Text    string   `json:"t"`           // rows, separated by line feeds; those that continue a line start with a tab
	Locs    []int    `json:"l"`           // for each row, the index of its operation's location
	Values  [][]int  `json:"v"`           // for each row, the numbers of the values that it names, in order; of several results the first
	Args    [][3]int `json:"a,omitempty"` // block arguments: number, row, index of the location
	Symbols []symbol `json:"d,omitempty"` // what it defines
}

const (
	kindPlain = iota
	kindOpen  // what follows until kindClose is inside
	kindClose
)

type symbol struct {
	Row  int    `json:"r"`
	Name string `json:"n"`
}

// cut prints an operation and cuts the text into chunks, which it stores. It follows the text and the operation in step:
// each operation starts a line, and so do a block's label and the brace that ends a region.
func (r *Recorder) cut(op *ir.Op, depth int) []entry {
	text := strings.TrimSuffix(string(ir.Print(op, r.print)), "\n")
	c := &cutter{r: r, lines: strings.Split(text, "\n"), indent: strings.Repeat("  ", depth)}
	c.piece(op, depth)
	return c.entries
}

type cutter struct {
	r       *Recorder
	lines   []string // those not taken yet
	indent  string   // what the lines lack
	entries []entry

	chunk   chunk
	rows    []string // of the chunk's text
	numbers map[*ir.Value]int
	count   int  // of numbers
	line    line // the last that was taken, and what is known of it
}

type line struct {
	text   string
	loc    int
	values []int
	args   []argument
}

type argument struct{ number, loc int }

// piece makes chunks of one operation that isn't part of a run.
func (c *cutter) piece(op *ir.Op, depth int) {
	if !isTable(op) {
		c.begin()
		c.op(op)
		c.end(kindPlain, op, depth)
		return
	}
	c.begin()
	c.head(op)
	c.end(kindOpen, op, depth)
	c.inside(op.Body(), depth+1)
	c.begin()
	c.take(nil)
	c.end(kindClose, nil, depth)
}

// isTable reports whether the operations in op are chunks of their own.
func isTable(op *ir.Op) bool {
	if !op.Has(ir.SymbolTable) || len(op.Regions()) != 1 || len(op.Region(0).Blocks()) != 1 {
		return false
	}
	b := op.Body()
	return len(b.Args()) == 0 && b.First() != nil
}

func (c *cutter) inside(b *ir.Block, depth int) {
	for op := b.First(); op != nil; {
		if len(op.Regions()) > 0 {
			c.piece(op, depth)
			op = op.Next()
			continue
		}
		c.begin()
		for ; op != nil && len(op.Regions()) == 0; op = op.Next() {
			c.op(op)
		}
		c.end(kindPlain, nil, depth)
	}
}

func (c *cutter) begin() {
	c.chunk, c.rows, c.numbers, c.count = chunk{}, nil, map[*ir.Value]int{}, 0
}

// end stores the chunk, or finds it stored.
func (c *cutter) end(kind int, op *ir.Op, depth int) {
	c.flush()
	c.chunk.Kind = kind
	c.chunk.Text = strings.Join(c.rows, "\n")
	if op != nil {
		c.chunk.Name = ir.SymName(op)
	}
	text, err := json.Marshal(c.chunk)
	if err != nil {
		panic(err) // there are only numbers and strings in it
	}
	id, known := c.r.index[string(text)]
	if !known {
		id = len(c.r.chunks)
		c.r.index[string(text)] = id
		c.r.chunks = append(c.r.chunks, text)
	}
	c.entries = append(c.entries, entry{op, depth, id})
}

// op takes the lines of an operation.
func (c *cutter) op(op *ir.Op) {
	c.head(op)
	text := c.line.text
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	for _, r := range op.Regions() {
		for i, b := range r.Blocks() {
			if c.nextIs("^bb" + strconv.Itoa(i)) {
				c.take(nil)
			}
			c.arguments(b)
			for o := range b.Ops() {
				c.op(o)
			}
		}
		if len(r.Blocks()) > 0 && len(c.lines) > 0 && strings.HasPrefix(c.indent+c.lines[0], indent+"}") {
			c.take(nil)
		}
	}
}

// head takes the first line of an operation.
func (c *cutter) head(op *ir.Op) {
	c.take(op.Loc())
	if name := ir.SymName(op); name != "" {
		c.chunk.Symbols = append(c.chunk.Symbols, symbol{len(c.chunk.Locs), name})
	}
	for i, v := range op.Results() {
		n := c.number(v)
		if i == 0 {
			c.line.values = append(c.line.values, n)
		}
	}
	for i := range op.NumOperands() {
		c.line.values = append(c.line.values, c.number(op.Operand(i)))
	}
}

// nextIs reports whether the next line starts with a block's label.
func (c *cutter) nextIs(label string) bool {
	if len(c.lines) == 0 {
		return false
	}
	rest, ok := strings.CutPrefix(strings.TrimLeft(c.lines[0], " "), label)
	return ok && (rest[0] == ':' || rest[0] == '(')
}

// arguments notes the arguments of a block, which the line that was taken last names.
func (c *cutter) arguments(b *ir.Block) {
	for _, v := range b.Args() {
		n := c.number(v)
		c.line.values = append(c.line.values, n)
		c.line.args = append(c.line.args, argument{n, c.r.locs.index(v.Loc())})
	}
}

func (c *cutter) number(v *ir.Value) int {
	n, known := c.numbers[v]
	if !known {
		n = c.count
		c.numbers[v] = n
		c.count++
	}
	return n
}

// take makes the next line the current one.
func (c *cutter) take(l *ir.Location) {
	c.flush()
	c.line = line{text: c.indent + c.lines[0], loc: c.r.locs.index(l)}
	c.lines = c.lines[1:]
}

// flush writes the current line as rows.
func (c *cutter) flush() {
	l := c.line
	c.line = line{}
	if l.text == "" {
		return
	}
	rows := wrap(l.text)
	named := 0
	for _, row := range rows {
		named += valuesIn(row)
	}
	if named != len(l.values) { // something else in the line looks like a value
		l.values, l.args = nil, nil
	}
	place := map[int]int{} // of values, in rows
	for i, row := range rows {
		if i > 0 {
			row = "\t" + row
		}
		c.rows = append(c.rows, row)
		n := min(valuesIn(row), len(l.values))
		for _, v := range l.values[:n] {
			place[v] = len(c.chunk.Locs)
		}
		c.chunk.Values = append(c.chunk.Values, append([]int{}, l.values[:n]...))
		c.chunk.Locs = append(c.chunk.Locs, l.loc)
		l.values = l.values[n:]
	}
	for _, a := range l.args {
		c.chunk.Args = append(c.chunk.Args, [3]int{a.number, place[a.number], a.loc})
	}
}
