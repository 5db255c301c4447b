package litrun

import (
	"fmt"
	"regexp"
	"strings"
)

// token matches the next token of a boolean expression: an operator, or a name that may contain {{regex}}.
var token = regexp.MustCompile(`^\s*([()]|&&|\|\||!|(?:[-+=._a-zA-Z0-9]+|\{\{.+?\}\})+)\s*`)

// evaluate evaluates an expression of names with && || ! and parentheses. A name is true if it is a feature, or true.
func evaluate(text string, features []string) (bool, error) {
	e := &expression{features: append([]string{"true"}, features...)}
	for rest := text; rest != ""; {
		m := token.FindStringSubmatch(rest)
		if m == nil {
			return false, fmt.Errorf("expression %q: can't read %q", text, rest)
		}
		e.tokens = append(e.tokens, m[1])
		rest = rest[len(m[0]):]
	}
	value, err := e.or()
	if err == nil && len(e.tokens) > 0 {
		err = fmt.Errorf("unexpected %q", e.tokens[0])
	}
	if err != nil {
		return false, fmt.Errorf("expression %q: %w", text, err)
	}
	return value, nil
}

// expression is a parser that evaluates as it goes.
type expression struct {
	tokens   []string
	features []string
}

func (e *expression) eat(t string) bool {
	if len(e.tokens) == 0 || e.tokens[0] != t {
		return false
	}
	e.tokens = e.tokens[1:]
	return true
}

func (e *expression) or() (bool, error) {
	value, err := e.and()
	for err == nil && e.eat("||") {
		var right bool
		right, err = e.and()
		value = value || right
	}
	return value, err
}

func (e *expression) and() (bool, error) {
	value, err := e.not()
	for err == nil && e.eat("&&") {
		var right bool
		right, err = e.not()
		value = value && right
	}
	return value, err
}

func (e *expression) not() (bool, error) {
	switch {
	case e.eat("!"):
		value, err := e.not()
		return !value, err
	case e.eat("("):
		value, err := e.or()
		if err == nil && !e.eat(")") {
			err = fmt.Errorf("a parenthesis is not closed")
		}
		return value, err
	case len(e.tokens) == 0:
		return false, fmt.Errorf("a name is missing at the end")
	}
	name := e.tokens[0]
	if name == "&&" || name == "||" || name == ")" {
		return false, fmt.Errorf("a name is missing before %q", name)
	}
	e.tokens = e.tokens[1:]
	return e.isFeature(name)
}

// isFeature compares a name with the features. The parts in {{ }} are regular expressions.
func (e *expression) isFeature(name string) (bool, error) {
	var pattern strings.Builder
	for name != "" {
		before, after, found := strings.Cut(name, "{{")
		pattern.WriteString(regexp.QuoteMeta(before))
		if !found {
			break
		}
		expr, rest, _ := strings.Cut(after, "}}")
		pattern.WriteString("(?:" + expr + ")")
		name = rest
	}
	re, err := regexp.Compile("^(?:" + pattern.String() + ")$")
	if err != nil {
		return false, err
	}
	for _, f := range e.features {
		if re.MatchString(f) {
			return true, nil
		}
	}
	return false, nil
}
