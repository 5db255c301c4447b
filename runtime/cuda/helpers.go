package cuda

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// A driver that is given the text of kernels assembles one after the other, whatever the number of threads, and keeps what it made in
// a folder (CUDA_CACHE_PATH) for all processes of the user. So other processes, helpers, have their drivers assemble a part of the
// kernels; after that this one's driver finds them made. A helper is given texts on its standard input and says on its standard output
// when each is done. It ends when its input does, and so when this process does, however that ends. That helpers fail, or that the
// driver keeps nothing, is no error: then this process's driver assembles as it would without them.

// order is a text that a helper is to have assembled, answer what came of it.
type order struct {
	Name, Entry string
	Text        []byte
}

type answer struct {
	Loss string // of performance, as the assembler says it
}

// Assemble has the driver assemble what it is given for a GPU, the one of that number, until there is no more. It is what helpers run.
func Assemble(ordinal int, in io.Reader, out io.Writer) (err error) {
	device, _, err := findDevice(ordinal)
	if err != nil {
		return err
	}
	ctx, err := device.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ctx.Close()) }()
	return answerOrders(in, out, func(o order) (answer, error) {
		m, err := ctx.Load(o.Name, o.Text)
		if err != nil {
			return answer{}, err
		}
		_, err = m.Function(o.Entry, 0)
		return answer{m.performanceLoss()}, errors.Join(err, m.Close())
	})
}

// answerOrders answers one order after the other.
func answerOrders(in io.Reader, out io.Writer, assemble func(order) (answer, error)) error {
	orders, answers := gob.NewDecoder(in), gob.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a kernel to assemble: %w", err)
		}
		a, err := assemble(o)
		if err != nil {
			return err
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("saying that a kernel is assembled: %w", err)
		}
	}
}

// helper is another process that runs Assemble.
type helper struct {
	process *exec.Cmd
	in      io.WriteCloser
	orders  *gob.Encoder
	answers *gob.Decoder
}

func startHelper(ctx context.Context, command []string) (*helper, error) {
	h := &helper{process: exec.CommandContext(ctx, command[0], command[1:]...)}
	in, err := h.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.in, h.orders, h.answers = in, gob.NewEncoder(in), gob.NewDecoder(bufio.NewReader(out))
	return h, h.process.Start()
}

func (h *helper) assemble(o order) (a answer, err error) {
	if err := h.orders.Encode(o); err != nil {
		return a, err
	}
	return a, h.answers.Decode(&a)
}

// end waits until the process has ended, and with it what it has of the GPU's memory.
func (h *helper) end() {
	_ = h.in.Close()
	_ = h.process.Wait()
}

const (
	atOnce     = 100 * time.Millisecond // a kernel that is loaded in less was made before, or is small
	shareBytes = 100 << 10              // of text that a helper is started for: about a second's work
	helperRoom = 1 << 30                // of the GPU's memory that a helper may take
)

// helpersFor is how many helpers to start, of so many at most, for texts of so many bytes, with so much of the GPU's memory free.
func helpersFor(most int, bytes, free int64) int {
	return max(0, min(most, int(bytes/shareBytes), int(free/helperRoom)-1))
}

// crew is what assembles files together: this process and helpers.
type crew struct {
	files   []*codeFile // with text, most first
	load    func(f *codeFile) error
	start   func() (*helper, error)
	loss    func(file, said string) // is told of slow kernels
	atOnce  time.Duration           // see the constant
	helpers int
}

// work has all files assembled, or none but the first, where that takes so little time that it must have been made before. What helpers
// have assembled isn't loaded here yet. When it returns no helper runs.
func (c *crew) work() error {
	first := make(chan error, 1)
	go func() { first <- c.load(c.files[0]) }()
	select {
	case err := <-first:
		return err
	case <-time.After(c.atOnce):
	}
	var taken atomic.Int64
	take := func() *codeFile {
		if i := int(taken.Add(1)); i < len(c.files) {
			return c.files[i]
		}
		return nil
	}
	var others sync.WaitGroup
	for range c.helpers {
		others.Go(func() { c.help(take) })
	}
	err := <-first
	for f := take(); f != nil && err == nil; f = take() {
		err = c.load(f)
	}
	taken.Store(int64(len(c.files)))
	others.Wait()
	return err
}

// help has a helper assemble files until none is left, or it fails.
func (c *crew) help(take func() *codeFile) {
	h, err := c.start()
	if err != nil {
		return
	}
	defer h.end()
	for f := take(); f != nil; f = take() {
		a, err := h.assemble(order{f.name, f.kernels[0].entry, f.text})
		if err != nil {
			return
		}
		if a.Loss != "" {
			c.loss(f.name, a.Loss)
		}
	}
}
