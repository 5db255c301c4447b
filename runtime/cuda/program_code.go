package cuda

import (
	"cmp"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"blutrain/artifact"
)

// codeFile is a file whose kernels are to be loaded.
type codeFile struct {
	name    string
	text    []byte    // what the driver has to assemble; nil where the artifact has machine code
	kernels []*kernel // of this code
	module  *Module   // nil until it is loaded
}

// assemble loads the code of all kernels that a function launches, several files at a time.
func (p *program) assemble(f *function) error {
	if err := p.assembleTogether(f); err != nil {
		return err
	}
	files := p.missing(f)
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for _, f := range files {
		group.Go(func() error { return p.loadCode(f) })
	}
	err := group.Wait()
	p.keep(files)
	return err
}

// keep takes the files that were loaded into the program.
func (p *program) keep(files []*codeFile) {
	for _, f := range files {
		if f.module != nil && p.modules[f.name] == nil {
			p.modules[f.name] = f.module
			p.slow(f.name, f.module.performanceLoss())
		}
	}
}

// missing lists the files whose kernels functions launch and that aren't there yet, those with most text to assemble first.
func (p *program) missing(functions ...*function) (files []*codeFile) {
	at := map[string]*codeFile{}
	for _, f := range functions {
		for _, s := range f.steps {
			for k := s.kernel; k != nil; k = k.then {
				if k.code != nil {
					continue
				}
				if at[k.file] == nil {
					at[k.file] = &codeFile{name: k.file, text: p.text(k.file), module: p.modules[k.file]}
					files = append(files, at[k.file])
				}
				if in := at[k.file]; !slices.Contains(in.kernels, k) {
					in.kernels = append(in.kernels, k)
				}
			}
		}
	}
	slices.SortFunc(files, func(a, b *codeFile) int { return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.name, b.name)) })
	return files
}

// text is what the driver has to assemble for a file: nothing where the artifact has machine code, or where it was loaded.
func (p *program) text(file string) []byte {
	if _, ok := p.artifact.File(codeName(file)); ok || p.modules[file] != nil {
		return nil
	}
	text, _ := p.artifact.File(file)
	return text
}

// codeName is the file that has the machine code of a file's text, if there is one.
func codeName(file string) string {
	return strings.TrimSuffix(file, artifact.TextSuffix) + artifact.CodeSuffix
}

// assembleTogether has helpers assemble texts, where the first that a function needs shows that they aren't made yet: those of the
// whole program, since what one function of it needs is most of what the others do, and helpers take a while to start.
func (p *program) assembleTogether(f *function) error {
	files := p.missing(f)
	if len(p.options.Helpers.Command) == 0 || len(files) == 0 || len(files[0].text) == 0 {
		return nil
	}
	c := crew{files: []*codeFile{files[0]}, atOnce: atOnce, load: p.loadCode, loss: p.slow, start: func() (*helper, error) {
		return startHelper(p.options.CallContext(), append(slices.Clone(p.options.Helpers.Command), strconv.Itoa(p.ctx.Device.Ordinal)))
	}}
	bytes := int64(0)
	for _, other := range p.missing(append(slices.Collect(maps.Values(p.functions)), f)...) {
		if len(other.text) > 0 && other.name != files[0].name {
			c.files, bytes = append(c.files, other), bytes+int64(len(other.text))
		}
	}
	free, _, err := p.ctx.MemoryInfo()
	if err != nil {
		return err
	}
	if c.helpers = helpersFor(p.options.Helpers.Most, bytes, free); c.helpers == 0 {
		return nil
	}
	err = c.work()
	p.keep(c.files)
	return err
}

// loadCode loads a file and finds its kernels there, which is when a driver that loads late loads them.
func (p *program) loadCode(f *codeFile) (err error) {
	if f.module == nil {
		if f.module, err = p.loadFile(f.name, p.ctx.Load); err != nil {
			return err
		}
	}
	for _, k := range f.kernels {
		if k.code, err = f.module.Function(k.entry, k.shared); err != nil {
			return k.failed(err)
		}
	}
	return nil
}

// loadFile loads a file's kernels: machine code, where the artifact has it and the device takes it, or the text.
func (p *program) loadFile(file string, load func(name string, code []byte) (*Module, error)) (*Module, error) {
	if code, ok := p.artifact.File(codeName(file)); ok {
		m, err := load(file, code)
		if err == nil {
			return m, nil
		}
		p.warn(fmt.Sprintf("%v; the kernel's text is assembled instead", err))
	}
	text, _ := p.artifact.File(file)
	return load(file, text)
}

// slow warns of kernels that the assembler says are slow.
func (p *program) slow(file, loss string) {
	if loss != "" {
		p.warn(fmt.Sprintf("%s: %s", file, loss))
	}
}
