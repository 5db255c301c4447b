package litrun

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A test is a parsed test file.
type test struct {
	commands    []command
	requires    []string // expressions that must all be true
	unsupported []string // expressions of which none may be true
	xfail       []string // expressions of which one being true means that the test fails
}

// A command is a RUN line, with its continuation lines.
type command struct {
	line int
	text string
}

var (
	keyword  = regexp.MustCompile(`(RUN:|REQUIRES:|UNSUPPORTED:|XFAIL:|END\.|ALLOW_RETRIES:|DEFINE:|REDEFINE:)(.*)`)
	lineExpr = regexp.MustCompile(`%\(line *(?:([+-]) *(\d+))?\)`)
)

// parse reads a test's keyword lines, wherever in a line the keyword is. Errors start with the line's number.
func parse(text string) (*test, error) {
	t := &test{}
	continued := false
	for i, line := range strings.Split(text, "\n") {
		m := keyword.FindStringSubmatch(strings.TrimRight(line, "\r"))
		if m == nil {
			continue
		}
		number, word, rest := i+1, m[1], m[2]
		var err error
		switch word {
		case "RUN:":
			continued = t.addCommand(number, rest, continued)
		case "REQUIRES:":
			err = addExpressions(&t.requires, rest, false)
		case "UNSUPPORTED:":
			err = addExpressions(&t.unsupported, rest, false)
		case "XFAIL:":
			err = addExpressions(&t.xfail, rest, true)
		case "END.":
			if strings.TrimSpace(rest) == "" {
				return t, t.complete(continued)
			}
		default:
			err = fmt.Errorf("%s lines are not supported", word)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", number, err)
		}
	}
	return t, t.complete(continued)
}

func (t *test) complete(continued bool) error {
	if continued {
		return fmt.Errorf(`%d: the RUN line ends in '\', but no RUN line follows`, t.commands[len(t.commands)-1].line)
	}
	if len(t.commands) == 0 {
		return errors.New("1: the test has no RUN line")
	}
	return nil
}

// addCommand adds a RUN line and reports whether the next one continues it.
func (t *test) addCommand(number int, text string, continues bool) bool {
	text = strings.TrimRight(replaceLine(text, number), " \t")
	if continues {
		text = t.commands[len(t.commands)-1].text + text
		t.commands[len(t.commands)-1].text = text
	} else {
		t.commands = append(t.commands, command{number, text})
	}
	before, continued := strings.CutSuffix(text, `\`)
	t.commands[len(t.commands)-1].text = before
	return continued
}

// replaceLine puts in the line's number for %(line), %(line+N) and %(line-N).
func replaceLine(text string, number int) string {
	return lineExpr.ReplaceAllStringFunc(text, func(s string) string {
		m := lineExpr.FindStringSubmatch(s)
		offset, _ := strconv.Atoi(m[1] + m[2]) // nothing is 0
		return strconv.Itoa(number + offset)
	})
}

// addExpressions adds the expressions of a line, which are separated by commas, after checking that they can be read.
func addExpressions(list *[]string, text string, allowStar bool) error {
	for _, e := range strings.Split(text, ",") {
		if e = strings.TrimSpace(e); e == "" {
			continue
		}
		if _, err := evaluate(e, nil); err != nil && !(allowStar && e == "*") {
			return err
		}
		*list = append(*list, e)
	}
	return nil
}

// conditions says why the test can't run with these features, or else whether it is expected to fail.
func (t *test) conditions(features []string) (unsupported string, expectFailure bool, err error) {
	for _, e := range t.requires {
		if ok, err := evaluate(e, features); err != nil || !ok {
			return "requires " + e, false, err
		}
	}
	for _, e := range t.unsupported {
		if ok, err := evaluate(e, features); err != nil || ok {
			return "not supported: " + e, false, err
		}
	}
	if slices.Contains(t.xfail, "*") {
		return "", true, nil
	}
	for _, e := range t.xfail {
		if ok, err := evaluate(e, features); err != nil || ok {
			return "", true, err
		}
	}
	return "", false, nil
}
