package driver

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"blutrain/blublas/tables"
	"blutrain/formats/tuning"
	"blutrain/ir"
	"blutrain/lower/binary"
	"blutrain/lower/ptx"
	"blutrain/passes"
)

// Names in the place of a tuning table's file.
const (
	shippedTable = "shipped" // the one that comes with the compiler, if there is one for the arch
	noTable      = "none"
)

// maxCandidates bounds the kernels that are made for one choice.
const maxCandidates = 64

// openTable reads the table of that name for an arch: nil where there is none.
func openTable(name, arch string) (t *tuning.Table, hash string, err error) {
	switch name {
	case noTable:
		return nil, "", nil
	case shippedTable:
		file, text, ok := tables.For(arch)
		if !ok {
			return nil, "", nil
		}
		t, err = tuning.Parse(file, text)
		hash = tuning.Hash(text)
	default:
		t, hash, err = tuning.Open(name)
	}
	if err == nil && t.Arch != arch {
		err = fmt.Errorf("%s: the table was measured with kernels for %s (on %s), and can't choose among those for %s", name, t.Arch, t.Device, arch)
	}
	return t, hash, err
}

// tableName is the table as an option of the pass ptx.
func (o Options) tableName() string {
	text, _ := fileName(cmp.Or(o.Tuning, shippedTable)).MarshalText() // never fails
	return string(text)
}

// checkLowering refuses options of the lowering to PTX where there is none, or that contradict each other, and a table that can't be read.
func (c *compilation) checkLowering() error {
	if c.Candidates != 0 && (c.Candidates < 2 || c.Candidates > maxCandidates) {
		return optionErrorf("--candidates must be from 2 to %d kernels for each choice, the one that is used included", maxCandidates)
	}
	if c.Candidates != 0 && c.ThreadStores {
		return optionErrorf("--thread-stores can't be combined with --candidates: it makes other kernels than those that are to be measured")
	}
	if !c.lowersToPTX() {
		return nil
	}
	if !slices.ContainsFunc(c.phases, func(p Phase) bool { return strings.Contains(p.Passes, "$TUNING") }) {
		return optionErrorf("--tuning, --candidates and --thread-stores are for --target cuda: the target %s has no kernels in PTX", c.Target)
	}
	if c.Tuning == "" {
		return nil
	}
	_, _, err := openTable(c.Tuning, c.Arch)
	return err
}

// lowersToPTX says that there are options of the lowering to PTX.
func (o Options) lowersToPTX() bool { return o.Tuning != "" || o.Candidates != 0 || o.ThreadStores }

// lowerToPTX is the pass ptx.
func lowerToPTX(s *passes.State, m *ir.Op, o ptxOptions) error {
	name := string(o.Tuning)
	table, hash, err := openTable(name, o.Arch)
	if err != nil {
		return err
	}
	t := &ptx.Tuning{Table: table, Candidates: o.Candidates}
	options := ptx.Options{Target: o.Arch, Products: o.Products, Tuning: t, ThreadStores: o.ThreadStores}
	if o.Memory > 0 {
		plan, err := binary.PlanOf(m)
		if err != nil {
			return err
		}
		options.Room = max(1, int64(o.Memory)-plan.Total)
	}
	if err := ptx.Run(s.Ctx, m, options); err != nil {
		return err
	}
	if o.ThreadStores {
		m.SetAttr(binary.ThreadStoresAttr, s.Ctx.Unit())
	}
	found, keys := t.Found()
	if table == nil || found == 0 && name == shippedTable {
		return nil // it is as if there were none
	}
	m.SetAttr(binary.TuningAttr, s.Ctx.Dict(ir.NamedAttr{Name: "found", Value: s.Ctx.Int64(int64(found))},
		ir.NamedAttr{Name: "keys", Value: s.Ctx.Int64(int64(keys))}, ir.NamedAttr{Name: "sha256", Value: s.Ctx.String(hash)}))
	if name != shippedTable {
		s.Remark(m.Loc(), fmt.Sprintf("%d of %d choices between kernels are those of %s", found, keys, name))
	}
	if table.Compiler != Version {
		s.Remark(m.Loc(), fmt.Sprintf("%s was measured with kernels of compiler %s, this is %s: others may be best now", name, table.Compiler, Version))
	}
	return nil
}

// fileName is a file's name as an option of a pass: without what ends an option there.
type fileName string

// MarshalText implements encoding.TextMarshaler.
func (f fileName) MarshalText() ([]byte, error) {
	return []byte(strings.NewReplacer("%", "%25", " ", "%20", "\t", "%09", "\n", "%0A", "}", "%7D").Replace(string(f))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *fileName) UnmarshalText(text []byte) error {
	s, err := url.PathUnescape(string(text))
	*f = fileName(cmp.Or(s, noTable))
	return err
}
