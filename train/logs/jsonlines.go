package logs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Lines writes one JSON object a line.
type Lines struct {
	w     io.Writer
	close func() error
}

// NewLines writes to w, which stays open.
func NewLines(w io.Writer) *Lines { return &Lines{w, func() error { return nil }} }

// AppendLines goes on with a file, or begins it, and takes it for this run: a second one is refused until Close or the end of the
// process. A last line that a crash cut short is removed first.
func AppendLines(name string) (*Lines, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("%s is in use by another run", name), f.Close())
		}
		return nil, errors.Join(&fs.PathError{Op: "flock", Path: name, Err: err}, f.Close())
	}
	if err := cutUnfinished(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lines{f, f.Close}, nil
}

// cutUnfinished truncates f behind its last newline and goes there.
func cutUnfinished(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for block := make([]byte, 4096); end > 0; {
		n := min(end, int64(len(block)))
		if _, err := f.ReadAt(block[:n], end-n); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			end += int64(i) + 1 - n
			break
		}
		end -= n
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}

func (l *Lines) write(record any) error {
	text, err := json.Marshal(record)
	if err == nil {
		_, err = l.w.Write(append(text, '\n'))
	}
	return err
}

// Step implements Sink.
func (l *Lines) Step(r Step) error { return l.write(r) }

// Eval implements Sink.
func (l *Lines) Eval(r Eval) error { return l.write(r) }

// Checkpoint implements Sink.
func (l *Lines) Checkpoint(r Checkpoint) error { return l.write(r) }

// Note implements Sink.
func (l *Lines) Note(r Note) error { return l.write(r) }

// Done implements Sink.
func (l *Lines) Done(r Done) error { return l.write(r) }

// Close implements Sink.
func (l *Lines) Close() error { return l.close() }

// History is the losses of a run so far.
type History struct {
	Steps []Step
	Evals []Eval
}

// add appends a step; those at or after it are from before a resumption and give way.
func (h *History) add(r Step) {
	h.Steps = append(before(h.Steps, r.Step, func(s Step) int64 { return s.Step }), r)
}

func (h *History) addEval(r Eval) {
	h.Evals = append(before(h.Evals, r.Step, func(e Eval) int64 { return e.Step }), r)
}

func before[R any](list []R, step int64, of func(R) int64) []R {
	for len(list) > 0 && of(list[len(list)-1]) >= step {
		list = list[:len(list)-1]
	}
	return list
}

// ReadHistory reads what Lines wrote. A file that is not there is an empty history; a last line without its end is
// passed over.
func ReadHistory(name string) (*History, error) {
	h := &History{}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if err == io.EOF {
			return h, nil
		}
		if err == nil {
			err = h.parse(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

func (h *History) parse(line []byte) error {
	var r struct {
		Step
		Val  *Number `json:"val_loss"`
		Note *string `json:"note"`
		Save *int64  `json:"checkpoint_bytes"`
		Done *bool   `json:"done"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	switch {
	case r.Done != nil || r.Note != nil || r.Save != nil:
	case r.Val != nil:
		h.addEval(Eval{r.Step.Step, *r.Val})
	default:
		h.add(r.Step)
	}
	return nil
}
