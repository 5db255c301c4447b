// Package litrun runs golden tests written for LLVM's lit: files with RUN lines, which are shell commands that all have
// to succeed. It gives the verdicts that lit gives, or refuses what it doesn't know.
//
// The room knows files, verdicts and the shell. It doesn't know what the commands are.
//
// The format is described in https://llvm.org/docs/CommandGuide/lit.html and https://llvm.org/docs/TestingGuide.html.
// Known: RUN with continuation lines, REQUIRES, UNSUPPORTED, XFAIL, END. and the substitutions listed in substitute.go.
// Tests should keep to what lit's internal shell and bash have in common: commands, arguments in quotes, | && || ;
// redirections, cd, export and globs; no $VARIABLES and no loops.
package litrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Verdict is what became of a test, as lit calls it.
type Verdict string

// PASS, XFAIL and UNSUPPORTED are good, the others aren't.
const (
	Pass        Verdict = "PASS"        // all commands succeeded
	XFail       Verdict = "XFAIL"       // a command failed, as the test's XFAIL line expects
	Unsupported Verdict = "UNSUPPORTED" // not run: the test's REQUIRES or UNSUPPORTED lines
	Fail        Verdict = "FAIL"        // a command failed
	XPass       Verdict = "XPASS"       // all commands succeeded, though the test's XFAIL line says that one fails
	Unresolved  Verdict = "UNRESOLVED"  // not run: the test is malformed
	Timeout     Verdict = "TIMEOUT"     // a command ran too long
)

// A Result is a verdict with its reason: what the commands printed, or why they weren't run.
type Result struct {
	Verdict Verdict
	Report  string
}

// Suffixes are the names' ends of files that are tests; lit.cfg.py has the same list.
var Suffixes = []string{".mlir", ".blu", ".test"}

// A Runner runs the tests of a suite. Its methods may be called concurrently.
type Runner struct {
	Root     string        // the suite's folder, absolute
	Output   string        // where tests write, absolute
	Path     []string      // folders searched for programs before those in PATH
	Features []string      // what REQUIRES, UNSUPPORTED and XFAIL can name
	Timeout  time.Duration // for one test
	shell    string
}

// New makes a runner. It fails where there is no shell that notices a failure before the end of a pipe.
func New(root, output string) (*Runner, error) {
	r := &Runner{Root: root, Output: output, Timeout: time.Minute}
	for _, dir := range []string{root, output} {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("litrun: the folder %s is not absolute", dir)
		}
	}
	for _, shell := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(shell); err == nil && exec.Command(path, "-c", "set -o pipefail").Run() == nil {
			r.shell = path
			return r, nil
		}
	}
	return nil, errors.New("litrun: neither bash nor an sh that knows 'set -o pipefail' is installed")
}

// Discover lists the suite's tests, by their paths from its root. Folders called Inputs or Output hold no tests.
func (r *Runner) Discover() ([]string, error) {
	var names []string
	err := filepath.WalkDir(r.Root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "Inputs" || d.Name() == "Output"):
			return filepath.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), ".") || !slices.Contains(Suffixes, filepath.Ext(path)):
			return nil
		}
		name, err := filepath.Rel(r.Root, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

// Run runs the test of the given path from the root.
func (r *Runner) Run(ctx context.Context, name string) Result {
	text, err := os.ReadFile(filepath.Join(r.Root, name))
	if err != nil {
		return Result{Unresolved, err.Error()}
	}
	test, err := parse(string(text))
	if err != nil {
		return Result{Unresolved, name + ":" + err.Error()}
	}
	reason, expectFailure, err := test.conditions(r.Features)
	switch {
	case err != nil:
		return Result{Unresolved, name + ":" + err.Error()}
	case reason != "":
		return Result{Unsupported, reason}
	}
	script, err := r.script(name, test)
	if err != nil {
		return Result{Unresolved, name + ":" + err.Error()}
	}
	result := r.execute(ctx, name, script)
	switch {
	case expectFailure && result.Verdict == Pass:
		result.Verdict = XPass
	case expectFailure && result.Verdict == Fail:
		result.Verdict = XFail
	}
	return result
}

// script puts the commands together so that the first that fails ends the script and is named.
func (r *Runner) script(name string, test *test) (string, error) {
	var b strings.Builder
	b.WriteString("set -o pipefail\n")
	for _, c := range test.commands {
		text, err := r.substitute(name, c)
		if err != nil {
			return "", err
		}
		if text == "" {
			continue
		}
		message := quote(fmt.Sprintf("%s:%d: command failed: %s", name, c.line, text))
		fmt.Fprintf(&b, "{ %s\n} || { printf '%%s\\n' %s >&2; exit 1; }\n", text, message)
	}
	return b.String(), nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// execute runs a script in the test's own folder, with nothing of the environment but where things are.
func (r *Runner) execute(ctx context.Context, name, script string) Result {
	dir := filepath.Join(r.Output, filepath.Dir(name))
	if err := os.MkdirAll(filepath.Join(dir, "Output"), 0o777); err != nil {
		return Result{Unresolved, err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.shell, "-c", script)
	cmd.Dir = dir
	cmd.Env = r.environment()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the commands too
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return Result{Pass, output.String()}
	case ctx.Err() != nil:
		return Result{Timeout, fmt.Sprintf("%s: not done after %v\n%s", name, r.Timeout, output.String())}
	}
	return Result{Fail, output.String() + err.Error() + "\n"}
}

func (r *Runner) environment() []string {
	path := strings.Join(append(slices.Clone(r.Path), os.Getenv("PATH")), string(filepath.ListSeparator))
	env := []string{"PATH=" + path}
	for _, name := range []string{"HOME", "TMPDIR", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
