package atomicfile

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
)

// Spool is a temporary file for data whose size must be known before the final file can be begun.
type Spool struct {
	fsys   FS
	name   string
	file   File
	buffer *bufio.Writer
}

// NewSpool makes a spool beside the file that its data is for, or, when that is a device or a pipe, in the folder of temporary files.
func NewSpool(fsys FS, final string) (*Spool, error) {
	to, err := fsys.Destination(final)
	if err != nil {
		return nil, err
	}
	if to.Open != nil {
		to.Name = filepath.Join(os.TempDir(), filepath.Base(final))
	}
	name := temp(to.Name + ".spool")
	f, err := fsys.Create(name, 0)
	if err != nil {
		return nil, err
	}
	return &Spool{fsys, name, f, bufio.NewWriterSize(f, 1<<20)}, nil
}

// Write appends to the spool.
func (s *Spool) Write(p []byte) (int, error) { return s.buffer.Write(p) }

// CopyTo ends writing and copies everything to w.
func (s *Spool) CopyTo(w io.Writer) error {
	if err := s.close(); err != nil {
		return err
	}
	f, err := s.fsys.Open(s.name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, io.NewSectionReader(f, 0, f.Size()))
	return err
}

// Remove removes the spool.
func (s *Spool) Remove() error {
	closeErr := s.close()
	if err := discard(s.fsys, s.name); err != nil {
		return err
	}
	return closeErr
}

func (s *Spool) close() error {
	if s.file == nil {
		return nil
	}
	err := s.buffer.Flush()
	if closeErr := s.file.Close(); err == nil {
		err = closeErr
	}
	s.file = nil
	return err
}
