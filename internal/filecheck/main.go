package filecheck

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage: FileCheck [options] CHECK-FILE

Compares the input with the CHECK lines of CHECK-FILE. Options, with one or two hyphens:
  --input-file FILE            the input; standard input by default, which is also called -
  --check-prefix PREFIX        in place of CHECK; may be repeated
  --check-prefixes A,B
  --comment-prefixes A,B       in place of COM and RUN
  --implicit-check-not PATTERN
  -DNAME=TEXT, -D#FORMAT,NAME=EXPRESSION
  --allow-empty --allow-unused-prefixes --match-full-lines --strict-whitespace
  --ignore-case --enable-var-scope --allow-deprecated-dag-overlap
  --dump-input, --dump-input-context, --dump-input-filter, --color, -v, -vv are accepted and change nothing
FILECHECK_OPTS in the environment is read before the command line.
`

// Main runs the command: arguments without the program's name. It returns the exit status: 0 if the input matches, 1 if
// it doesn't or the command line is wrong, 2 if the check file is wrong or a file can't be read, as upstream does.
func Main(args []string, stdin io.Reader, stderr io.Writer, getenv func(string) string) int {
	c := commandLineArgs{input: "-"}
	if err := c.parse(append(strings.Fields(getenv("FILECHECK_OPTS")), args...)); err != nil {
		fmt.Fprintf(stderr, "FileCheck: %v\n%s", err, usage)
		return 1
	}
	if c.help {
		fmt.Fprint(stderr, usage)
		return 0
	}
	checkText, err := os.ReadFile(c.checkFile)
	if err != nil {
		fmt.Fprintf(stderr, "FileCheck: check file: %v\n", err)
		return 2
	}
	input := File{Name: c.input}
	if c.input == "-" {
		input.Name = "<stdin>"
		input.Text, err = io.ReadAll(stdin)
	} else {
		input.Text, err = os.ReadFile(c.input)
	}
	if err != nil {
		fmt.Fprintf(stderr, "FileCheck: input: %v\n", err)
		return 2
	}
	err = Check(c.opts, File{c.checkFile, checkText}, input)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	var failure *Failure
	if errors.As(err, &failure) && failure.Setup {
		return 2
	}
	return 1
}

type commandLineArgs struct {
	opts      Options
	checkFile string
	input     string
	help      bool
}

// flag finds where a switch is kept; nil if there is no such switch.
func (c *commandLineArgs) flag(name string) *bool {
	switch name {
	case "allow-empty":
		return &c.opts.AllowEmpty
	case "allow-unused-prefixes":
		return &c.opts.AllowUnusedPrefixes
	case "match-full-lines":
		return &c.opts.MatchFullLines
	case "strict-whitespace":
		return &c.opts.StrictWhitespace
	case "ignore-case":
		return &c.opts.IgnoreCase
	case "enable-var-scope":
		return &c.opts.EnableVarScope
	case "allow-deprecated-dag-overlap":
		return &c.opts.AllowDAGOverlap
	case "help", "h":
		return &c.help
	case "color", "v", "vv":
		return new(bool)
	}
	return nil
}

// set gives an option with a value its value; false if there is no such option.
func (c *commandLineArgs) set(name, value string) bool {
	switch name {
	case "input-file":
		c.input = value
	case "check-prefix", "check-prefixes":
		c.opts.CheckPrefixes = append(c.opts.CheckPrefixes, strings.Split(value, ",")...)
	case "comment-prefixes":
		c.opts.CommentPrefixes = append(c.opts.CommentPrefixes, strings.Split(value, ",")...)
	case "implicit-check-not":
		c.opts.ImplicitCheckNot = append(c.opts.ImplicitCheckNot, value)
	case "D":
		c.opts.Defines = append(c.opts.Defines, value)
	case "dump-input", "dump-input-context", "dump-input-filter":
	default:
		return false
	}
	return true
}

func (c *commandLineArgs) parse(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			if c.checkFile != "" {
				return fmt.Errorf("two check files: %s and %s", c.checkFile, arg)
			}
			c.checkFile = arg
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		if flag := c.flag(name); flag != nil {
			switch {
			case !hasValue, value == "true", value == "1":
				*flag = true
			case value == "false", value == "0":
				*flag = false
			default:
				return fmt.Errorf("%s: expected true or false", arg)
			}
			continue
		}
		if def, ok := strings.CutPrefix(arg, "-D"); ok {
			if def == "" {
				return errors.New("-D: the definition must follow without a blank")
			}
			name, value, hasValue = "D", def, true
		}
		if !hasValue {
			if len(args) == 0 {
				return fmt.Errorf("%s is unknown or has no value", arg)
			}
			value, args = args[0], args[1:]
		}
		if !c.set(name, value) {
			return fmt.Errorf("unknown option %s", arg)
		}
	}
	if c.checkFile == "" && !c.help {
		return errors.New("no check file")
	}
	return nil
}
