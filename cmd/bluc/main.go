// Command bluc compiles models. This package reads flags and prints; each command is a file.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"blutrain/driver"
)

// cli is the commands and what all of them have.
type cli struct {
	Compile compileCmd `cmd:"" help:"Compile a model, or a module from any phase on, to an artifact."`
	Opt     optCmd     `cmd:"" help:"Run passes on a module and print it."`
	Check   checkCmd   `cmd:"" help:"Check models without compiling them."`
	Fmt     fmtCmd     `cmd:"" help:"Format models."`
	Inspect inspectCmd `cmd:"" help:"Print what an artifact holds."`
	Passes  passesCmd  `cmd:"" help:"List the passes and phases."`
	Ops     opsCmd     `cmd:"" help:"List the operations, or describe some."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// streams is where commands read and write.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Exit statuses: 128 and more are left to signals.
const (
	ok     = 0
	failed = 1 // the input is at fault, or the compiler
	usage  = 2 // the command line is
)

func main() {
	os.Exit(run(os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run runs a command line. What could not be printed is an error, whatever was to be printed.
func run(args []string, s *streams) int {
	out := &stickyWriter{w: s.out}
	code := command(args, &streams{s.in, out, s.err})
	if out.err == nil {
		return code
	}
	if code == ok {
		fmt.Fprintln(s.err, "bluc: error:", out.err)
	}
	return failed
}

// stickyWriter keeps the first error of writing.
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

func command(args []string, s *streams) int {
	exit := -1
	k, err := newParser(kong.Writers(s.out, s.err), kong.Exit(func(code int) { exit = code }))
	if err != nil {
		fmt.Fprintln(s.err, "bluc: error:", err)
		return failed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := k.Parse(args)
	if exit >= 0 { // help was asked for and printed
		return exit
	}
	if err != nil {
		fmt.Fprintln(s.err, "bluc: error:", err)
		return usage
	}
	if err := ctx.Run(s); err != nil {
		return report(s.err, err)
	}
	return ok
}

// newParser is the parser of the command line.
func newParser(options ...kong.Option) (*kong.Kong, error) {
	return kong.New(&cli{}, append(options, kong.Name("bluc"), kong.Description("The BluTrain compiler."), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"targets": strings.Join(driver.TargetNames(), ", "), "phases": phaseNames(), "precisions": precisions()})...)
}

func phaseNames() string {
	var names []string
	for _, p := range driver.Phases {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}

// precisions says which target has which.
func precisions() string {
	var list []string
	for _, t := range driver.Targets {
		list = append(list, t.Name+" has "+strings.Join(t.Precisions, ", "))
	}
	return strings.Join(list, "; ") + "; the first is the default."
}
