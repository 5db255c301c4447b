// Command split-file writes the parts of a file into a folder, as LLVM's tool of that name does. A part begins after a
// line "//--- NAME", or with another character in place of the slashes, and ends before the next such line. What is
// before the first part is left out.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	flags := flag.NewFlagSet("split-file", flag.ExitOnError)
	leading := flags.Bool("leading-lines", false, "put empty lines before each part, so that it keeps its line numbers")
	flags.Bool("no-leading-lines", true, "the opposite, which is the default")
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: split-file [--leading-lines] FILE FOLDER")
		flags.PrintDefaults()
	}
	flags.Parse(os.Args[1:])
	if flags.NArg() != 2 {
		flags.Usage()
		os.Exit(1)
	}
	if err := run(flags.Arg(0), flags.Arg(1), *leading); err != nil {
		fmt.Fprintf(os.Stderr, "split-file: %v\n", err)
		os.Exit(1)
	}
}

func run(file, folder string, leading bool) error {
	text, err := read(file)
	if err != nil {
		return err
	}
	parts, err := split(file, text, leading)
	if err != nil {
		return err
	}
	if err := clear(folder); err != nil {
		return err
	}
	for _, p := range parts {
		path := filepath.Join(folder, p.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, p.text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

// clear removes what is in the place of the folder, unless it is a folder with files, which may be overwritten.
func clear(folder string) error {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: output cannot be a special file", folder)
	}
	return os.Remove(folder)
}

type part struct {
	name string
	text []byte
}

// split finds the parts. All wrong separators are in the error.
func split(file string, text []byte, leading bool) ([]part, error) {
	var parts []part
	var errs []error
	seen := map[string]bool{}
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		separator, name, ok := cutSeparator(strings.TrimSuffix(string(line), "\n"))
		if !ok {
			if len(parts) > 0 {
				last := &parts[len(parts)-1]
				last.text = append(last.text, line...)
			}
			continue
		}
		if problem := checkName(separator, name, seen); problem != "" {
			errs = append(errs, fmt.Errorf("%s:%d: error: %s", file, i+1, problem))
			continue
		}
		seen[name] = true
		p := part{name: name}
		if leading {
			p.text = bytes.Repeat([]byte("\n"), i+1)
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("%s: no part separator was found", file)
	}
	return parts, errors.Join(errs...)
}

// cutSeparator takes a line apart: "//--- NAME", or any other character in place of the slashes.
func cutSeparator(line string) (separator, name string, ok bool) {
	n := 1
	if strings.HasPrefix(line, "//") {
		n = 2
	}
	const dashes = "--- "
	if len(line) < n || !strings.HasPrefix(line[n:], dashes) {
		return "", "", false
	}
	n += len(dashes)
	return line[:n], line[n:], true
}

func checkName(separator, name string, seen map[string]bool) string {
	switch {
	case name == "":
		return "empty part name"
	case strings.TrimSpace(name) != name:
		return "part name cannot have leading or trailing space"
	case seen[name]:
		return fmt.Sprintf("'%s%s' occurs more than once", separator, name)
	case !filepath.IsLocal(name):
		return fmt.Sprintf("part name '%s' leads out of the folder", name)
	}
	return ""
}
