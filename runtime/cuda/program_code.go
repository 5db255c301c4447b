package cuda

import (
	"fmt"
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
	done    bool
}

// assemble loads the code of all kernels that a function launches, several files at a time.
func (p *program) assemble(f *function) error {
	files := p.missing(f)
	err := p.assembleTogether(files)
	if err == nil {
		var group errgroup.Group
		group.SetLimit(goruntime.GOMAXPROCS(0))
		for _, f := range files {
			if !f.done {
				group.Go(func() error { return p.loadCode(f) })
			}
		}
		err = group.Wait()
	}
	for _, f := range files {
		if f.module != nil && p.modules[f.name] == nil {
			p.modules[f.name] = f.module
			p.slow(f.name, f.module.performanceLoss())
		}
	}
	return err
}

// missing lists the files whose kernels a function launches and that aren't there yet, those with most text to assemble first.
func (p *program) missing(f *function) (files []*codeFile) {
	for _, s := range f.steps {
		for k := s.kernel; k != nil; k = k.then {
			if k.code != nil {
				continue
			}
			i := slices.IndexFunc(files, func(f *codeFile) bool { return f.name == k.file })
			if i < 0 {
				i = len(files)
				files = append(files, &codeFile{name: k.file, text: p.text(k.file), module: p.modules[k.file]})
			}
			if !slices.Contains(files[i].kernels, k) {
				files[i].kernels = append(files[i].kernels, k)
			}
		}
	}
	slices.SortStableFunc(files, func(a, b *codeFile) int { return len(b.text) - len(a.text) })
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

// assembleTogether has helpers assemble most of the texts, where they are worth it.
func (p *program) assembleTogether(files []*codeFile) error {
	c := crew{atOnce: atOnce, load: p.loadCode, loss: p.slow, start: func() (*helper, error) {
		return startHelper(p.options.CallContext(), append(slices.Clone(p.options.Helpers.Command), strconv.Itoa(p.ctx.Device.Ordinal)))
	}}
	bytes := int64(0) // of texts but the first
	for _, f := range files {
		if len(f.text) > 0 {
			c.files, bytes = append(c.files, f), bytes+int64(len(f.text))
		}
	}
	if len(c.files) == 0 || len(p.options.Helpers.Command) == 0 {
		return nil
	}
	free, _, err := p.ctx.MemoryInfo()
	if err != nil {
		return err
	}
	if c.helpers = helpersFor(p.options.Helpers.Most, bytes-int64(len(files[0].text)), free); c.helpers == 0 {
		return nil
	}
	return c.work()
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
	f.done = true
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
