package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"blutrain/formats/atomicfile"
	"blutrain/formats/safetensors"
)

// Checkpoint is a checkpoint whose manifest is whole. Its files are held to their checksums where they are read.
type Checkpoint struct {
	Manifest Manifest
	Path     string // of its folder

	fsys  atomicfile.FS
	infos map[string]*Info
}

// Open reads and checks the manifest of the checkpoint in one folder.
func Open(fsys atomicfile.FS, path string) (*Checkpoint, error) {
	text, err := atomicfile.ReadAll(fsys, filepath.Join(path, manifestName), maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	if step, ok := parseStep(filepath.Base(path)); ok && step != m.Step {
		return nil, fmt.Errorf("its manifest is of step %d", m.Step)
	}
	c := &Checkpoint{Manifest: *m, Path: path, fsys: fsys, infos: map[string]*Info{}}
	for i, t := range m.Tensors {
		c.infos[t.Name] = &m.Tensors[i]
	}
	return c, nil
}

// Want is the elements [Begin, End) of a tensor in row-major order, to be read.
type Want struct {
	Name       string
	Begin, End int64
	// Put is given the bytes, piece by piece, by several goroutines at once: data goes to byte at, counted from Begin. The
	// memory is used again when it returns.
	Put func(at int64, data []byte) error
}

// Whole wants all of a tensor in dst.
func (t Info) Whole(dst []byte) Want {
	return Want{t.Name, 0, t.elements(), func(at int64, data []byte) error {
		if at+int64(len(data)) > int64(len(dst)) {
			return fmt.Errorf("tensor %q has more than %d bytes", t.Name, len(dst))
		}
		copy(dst[at:], data)
		return nil
	}}
}

// Read reads a tensor's bytes into dst, which must have their number.
func (c *Checkpoint) Read(name string, dst []byte) error {
	t, ok := c.infos[name]
	if !ok {
		return c.missing(name)
	}
	if n := t.elements() * int64(t.DType.Size()); n != int64(len(dst)) {
		return otherError{fmt.Errorf("tensor %q has %d bytes, asked for %d", name, n, len(dst))}
	}
	return c.Load([]Want{t.Whole(dst)})
}

func (c *Checkpoint) missing(name string) error {
	return otherError{fmt.Errorf("checkpoint %s has no tensor %q", c.Path, name)}
}

// everything wants all tensors, to see whether they are whole.
func everything(m *Manifest) (all []Want, err error) {
	for _, t := range m.Tensors {
		all = append(all, Want{t.Name, 0, t.elements(), func(int64, []byte) error { return nil }})
	}
	return all, nil
}

// Read opens a checkpoint and loads what is wanted of it, which may depend on what there is.
func Read(fsys atomicfile.FS, path string, wants func(*Manifest) ([]Want, error)) (*Checkpoint, error) {
	c, err := Open(fsys, path)
	if err != nil {
		return nil, err
	}
	list, err := wants(&c.Manifest)
	if err != nil {
		return nil, otherError{err}
	}
	return c, c.Load(list)
}

// Load reads what is wanted, once, and no other chunks of the files than those it is in; each must have its checksum, before
// anything in it is put anywhere. Reading, hashing and putting go on side by side.
func (c *Checkpoint) Load(wants []Want) error {
	files, err := c.openFiles(wants)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	var jobs []job
	for _, f := range files {
		jobs = append(jobs, f.jobs()...)
	}
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	// Twice as many workers as processors: while one hashes, another waits for the disk.
	return inParallel(2*runtime.GOMAXPROCS(0), len(jobs), func(i int) error {
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		if err := jobs[i].run(buffer); err != nil {
			return fmt.Errorf("%s: %w", rankFile(jobs[i].file.info.Rank), err)
		}
		return nil
	})
}

// openFile is the file of a rank and what is wanted of it.
type openFile struct {
	atomicfile.ReadFile
	info    FileInfo
	tensors *safetensors.File
	spans   []span
}

// span is a run of bytes of a file that is wanted.
type span struct {
	from, n int64 // in the file
	at      int64 // in what is wanted
	put     func(at int64, data []byte) error
}

// openFiles opens the files that are needed, in the order of ranks, and says what to read of each.
func (c *Checkpoint) openFiles(wants []Want) ([]*openFile, error) {
	byRank := map[int]*openFile{}
	var files []*openFile
	for _, w := range wants {
		t, ok := c.infos[w.Name]
		if !ok {
			return files, c.missing(w.Name)
		}
		if w.Begin < 0 || w.End < w.Begin || w.End > t.elements() {
			return files, otherError{fmt.Errorf("tensor %q has %d elements, asked for [%d, %d)", t.Name, t.elements(), w.Begin, w.End)}
		}
		for _, p := range t.Pieces {
			if p.End > p.Begin && max(p.Begin, w.Begin) >= min(p.End, w.End) {
				continue
			}
			f := byRank[p.Rank]
			if f == nil {
				var err error
				if f, err = c.openFile(p.Rank); err != nil {
					return files, fmt.Errorf("%s: %w", rankFile(p.Rank), err)
				}
				byRank[p.Rank], files = f, append(files, f)
			}
			f.want(t, p, w)
		}
	}
	slices.SortFunc(files, func(a, b *openFile) int { return a.info.Rank - b.info.Rank })
	return files, nil
}

func (f *openFile) want(t *Info, p Piece, w Want) {
	in, _ := f.tensors.Lookup(t.Name)
	begin, end, size := max(p.Begin, w.Begin), min(p.End, w.End), int64(t.DType.Size())
	f.spans = append(f.spans, span{
		from: f.tensors.DataStart() + in.Begin + (begin-p.Begin)*size, n: (end - begin) * size, at: (begin - w.Begin) * size, put: w.Put,
	})
}

// openFile opens a rank's file and holds its size and its header to the manifest.
func (c *Checkpoint) openFile(rank int) (*openFile, error) {
	f, err := c.fsys.Open(filePath(c.Path, rank))
	if err != nil {
		return nil, err
	}
	open := &openFile{ReadFile: f, info: c.Manifest.file(rank)}
	if err := c.checkFile(open); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return open, nil
}

func (c *Checkpoint) checkFile(f *openFile) (err error) {
	if f.Size() != f.info.Bytes {
		return fmt.Errorf("it has %d bytes, the manifest lists %d", f.Size(), f.info.Bytes)
	}
	if f.tensors, err = safetensors.Open(f, f.Size()); err != nil {
		return err
	}
	count := 0
	for i := range c.Manifest.Tensors {
		t := &c.Manifest.Tensors[i]
		for _, p := range t.Pieces {
			if p.Rank != f.info.Rank {
				continue
			}
			count++
			in, ok := f.tensors.Lookup(t.Name)
			if shape := t.stored(p); !ok || in.DType != t.DType || !slices.Equal(in.Shape, shape) {
				return fmt.Errorf("it has no tensor %q of %s%v", t.Name, t.DType, shape)
			}
		}
	}
	if count != len(f.tensors.Tensors) {
		return fmt.Errorf("it holds %d tensors, the manifest lists %d", len(f.tensors.Tensors), count)
	}
	return nil
}

// job is a chunk of a file to read, and the spans that begin before its end and end behind its beginning.
type job struct {
	file  *openFile
	index int64
	spans []span
}

// jobs cuts what is wanted of a file into chunks. The header's are always among them.
func (f *openFile) jobs() (list []job) {
	slices.SortFunc(f.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	need := append([]span{{from: 0, n: f.tensors.DataStart()}}, f.spans...)
	chunk := f.info.Chunk
	for _, s := range need {
		if s.n == 0 {
			continue
		}
		for i := s.from / chunk; i*chunk < s.from+s.n; i++ {
			if len(list) == 0 || list[len(list)-1].index < i {
				list = append(list, job{file: f, index: i})
			}
			last := len(list) - 1
			for list[last].index > i { // a tensor that is wanted twice
				last--
			}
			list[last].spans = append(list[last].spans, s)
		}
	}
	return list
}

func (j job) run(buffer *[]byte) error {
	f := j.file
	begin := j.index * f.info.Chunk
	n := int(min(f.info.Chunk, f.info.Bytes-begin))
	if cap(*buffer) < n {
		*buffer = make([]byte, n)
	}
	b := (*buffer)[:n]
	if _, err := io.ReadFull(io.NewSectionReader(f, begin, int64(n)), b); err != nil {
		return err
	}
	if digits(crc(0, b)) != f.info.Chunks[j.index] {
		return fmt.Errorf("it is damaged: bytes [%d, %d) do not have the checksum in the manifest", begin, begin+int64(n))
	}
	for _, s := range j.spans {
		from, to := max(s.from, begin), min(s.from+s.n, begin+int64(n))
		if s.put == nil || from >= to {
			continue
		}
		if err := s.put(s.at+from-s.from, b[from-begin:to-begin]); err != nil {
			return otherError{err}
		}
	}
	return nil
}
