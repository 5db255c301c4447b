// Command blurun runs compiled models: trains them, evaluates, samples, and calls their functions.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"blutrain/artifact"
	"blutrain/dtms/launch"
	"blutrain/runtime"
	"blutrain/runtime/device"
	"blutrain/runtime/ref"
	"blutrain/train"
)

// cli is the command line. Each command is in a file of its own.
type cli struct {
	Train   trainCmd   `cmd:"" help:"Train a compiled model."`
	Eval    evalCmd    `cmd:"" help:"Print the loss on a data set."`
	Sample  sampleCmd  `cmd:"" help:"Continue a text."`
	Exec    execCmd    `cmd:"" help:"Call one function on .npy or .safetensors inputs."`
	Verify  verifyCmd  `cmd:"" help:"Compare a compiled model with the reference on this device."`
	Bench   benchCmd   `cmd:"" help:"Time steps of training, or calls of a function, on random inputs."`
	Profile profileCmd `cmd:"" help:"Show which kernels the time of a step goes to."`
	Tune    tuneCmd    `cmd:"" help:"Measure which kernels are the fastest on this device, for bluc compile --tuning."`
	Data    dataCmd    `cmd:"" help:"Make data sets."`
	Devices devicesCmd `cmd:"" help:"List the devices of this machine."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Assemble assembleCmd `cmd:"" hidden:"" help:"Assemble kernels for another process."`
}

// deviceFlags choose where a model runs.
type deviceFlags struct {
	Device  string `placeholder:"NAME" help:"Device to run on: cpu, cuda, cuda:N (the GPU of a number, see 'blurun devices') or ref, as the model was compiled for. Default: that one, and of GPUs the first."`
	Threads int    `placeholder:"N" help:"Workers of the CPU device. Default: one a core."`

	DebugMemory bool `help:"Find what touches memory that it shouldn't, slowly: run kernel by kernel, with NaN in what a call hasn't written and guards around each piece of memory, so that an error names the kernel and its line. For cpu and cuda."`
}

// openOn opens a model there, with what options say beside the flags.
func (e *env) openOn(a *artifact.Artifact, d deviceFlags, o runtime.Options) (runtime.Program, error) {
	if d.DebugMemory {
		if a.Manifest.Target == "ref" {
			return nil, errors.New("the reference has no memory of its own that kernels could touch: --debug-memory is for the devices cpu and cuda")
		}
		o.Poison, o.Guard = true, true
	}
	return e.openDevice(a, d.Device, o)
}

// env is what commands see of the world.
type env struct {
	ctx            context.Context
	args, environ  []string // the command line without the program's name, and os.Environ's
	program        string   // the file that runs; empty: not known
	stdin          io.Reader
	stdout, stderr io.Writer
	openDevice     func(a *artifact.Artifact, device string, o runtime.Options) (runtime.Program, error)
	openReference  func(a *artifact.Artifact) (runtime.Program, error)
}

// Validate implements kong's interface, for all commands that have these flags.
func (d deviceFlags) Validate() error {
	if d.Threads < 0 || d.Threads > maxThreads {
		return fmt.Errorf("--threads must be from 0 to %d", maxThreads)
	}
	return nil
}

// maxThreads is more than any machine has cores. Each worker holds memory of its own.
const maxThreads = 4096

// checkSeed refuses a seed that a run-time scalar can't hold.
func checkSeed(seed uint64) error {
	if seed > train.MaxSeed {
		return fmt.Errorf("--seed %d is larger than %d", seed, uint64(train.MaxSeed))
	}
	return nil
}

// open reads a compiled model and opens it on a device.
func (e *env) open(path string, d deviceFlags) (*artifact.Artifact, runtime.Program, error) {
	a, err := artifact.Open(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := e.openOn(a, d, runtime.Options{Threads: d.Threads, Helpers: e.helpers(1), Apart: true})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, p, nil
}

func main() {
	ctx, interrupted := watchSignals()
	program, _ := os.Executable() // without it there are no helpers
	e := &env{
		ctx: ctx, environ: os.Environ(), program: program, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, openDevice: device.Open,
		openReference: func(a *artifact.Artifact) (runtime.Program, error) { return ref.Open(a, runtime.Options{}) },
	}
	status := run(os.Args[1:], e)
	if s := interrupted(); s != 0 && status != 0 {
		status = 128 + int(s)
	}
	os.Exit(status)
}

// watchSignals ends the context at the first SIGINT or SIGTERM, so that a run can save its state, and the process at the second.
func watchSignals() (ctx context.Context, interrupted func() syscall.Signal) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		first := (<-signals).(syscall.Signal)
		cancel(signalError(first))
		second := (<-signals).(syscall.Signal)
		os.Exit(128 + int(second))
	}()
	return ctx, func() syscall.Signal {
		var s signalError
		errors.As(context.Cause(ctx), &s)
		return syscall.Signal(s)
	}
}

type signalError syscall.Signal

func (s signalError) Error() string { return syscall.Signal(s).String() }

// exit is what kong's request to leave, after printing help, becomes on its way to command.
type exit struct{}

// run parses and runs a command line. The exit status is 2 for wrong usage, that of the rank which failed first where this process
// has started ranks, and 1 for any other error.
func run(args []string, e *env) (status int) {
	out := &stickyWriter{w: e.stdout}
	inner := *e
	inner.args, inner.stdout = args, out
	err := command(args, &inner)
	if out.err != nil && !errors.Is(err, out.err) {
		err = errors.Join(out.err, err)
	}
	if err == nil {
		return 0
	}
	printErrors(e.stderr, err)
	if rank := (*launch.Ended)(nil); errors.As(err, &rank) {
		return rank.Status
	}
	if wrong := usageError(""); errors.As(err, &wrong) && out.err == nil {
		return 2
	}
	return 1
}

// command parses and runs a command line, or prints help.
func command(args []string, e *env) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, left := r.(exit); !left {
				panic(r)
			}
			err = nil
		}
	}()
	parser, err := newParser(kong.Writers(e.stdout, e.stderr), kong.Exit(func(int) { panic(exit{}) }), kong.Bind(e))
	if err != nil {
		panic(err) // the command line's description above is wrong
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if err != nil {
		return usageError(err.Error())
	}
	return k.Run()
}

// newParser is the parser of the command line.
func newParser(options ...kong.Option) (*kong.Kong, error) {
	return kong.New(&cli{}, append(options, kong.Name("blurun"), kong.Description("Run models compiled by bluc."), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
}

// stickyWriter keeps the first error of writing, so that a command that printed to a full disk does not succeed.
type stickyWriter struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (s *stickyWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// printErrors prints an error, one line for each that it joins.
func printErrors(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "blurun: error: %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// usageError is a command line that cannot be meant, found after parsing.
type usageError string

func (u usageError) Error() string { return string(u) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// restore gives a program parameters from a file or checkpoint, or, without one, those of its initializers.
func (e *env) restore(p runtime.Program, params string, seed uint64) error {
	if params != "" {
		taken, err := train.LoadParams(p, params)
		if err == nil && taken != params {
			fmt.Fprintf(e.stderr, "parameters from %s\n", taken)
		}
		return err
	}
	if err := checkSeed(seed); err != nil {
		return usageError(err.Error())
	}
	_, err := p.Call("init", nil, runtime.Scalars{"seed": float64(seed)})
	return err
}
