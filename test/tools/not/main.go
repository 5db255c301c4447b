// Command not runs a command and succeeds if that fails with an exit status, as LLVM's tool of that name does. With
// --crash it succeeds if a signal ended the command.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	args := os.Args[1:]
	wantCrash := len(args) > 0 && args[0] == "--crash"
	if wantCrash {
		args = args[1:]
	}
	if len(args) == 0 {
		fail("usage: not [--crash] COMMAND ARGUMENTS...")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fail("not: %v", err)
	}
	crashed := exit != nil && !exit.Exited()
	switch {
	case crashed && !wantCrash:
		fail("not: %s: %v", args[0], exit)
	case !crashed && wantCrash:
		fail("not: %s: expected a crash, got %v", args[0], cmd.ProcessState)
	case !crashed && exit == nil:
		fail("not: %s: expected a failure, but it succeeded", args[0])
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}
