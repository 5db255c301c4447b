package filecheck

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// variables are what the directives read so far have defined, and what their matches have set.
type variables struct {
	text        map[string]string   // values of string variables
	textDefined map[string]bool     // names of string variables, from when their definition is read
	number      map[string]*numeric // numeric variables, from when a definition or use is read
}

// A numeric is a numeric variable. Its value is nil until a match or an option sets it.
type numeric struct {
	name   string
	format format
	line   int // the line in the check file that defines it first, 0 if an option does
	value  *big.Int
}

func newVariables() *variables {
	return &variables{text: map[string]string{}, textDefined: map[string]bool{}, number: map[string]*numeric{}}
}

// forgetLocal forgets the values of all variables whose names don't start with $.
func (v *variables) forgetLocal() {
	for name := range v.text {
		if name[0] != '$' {
			delete(v.text, name)
		}
	}
	for name, n := range v.number {
		if name[0] != '$' {
			n.value = nil
		}
	}
}

// cutName splits a variable's name off: an optional $ or @, then a letter or underscore, then letters, digits, underscores.
func cutName(s string) (name, rest string, err error) {
	i := 0
	if s != "" && (s[0] == '$' || s[0] == '@') {
		i++
	}
	if i == len(s) {
		return "", s, errors.New("empty variable name")
	}
	if s[i] != '_' && !isAlpha(s[i]) {
		return "", s, errors.New("invalid variable name")
	}
	for i < len(s) && (s[i] == '_' || isAlnum(s[i])) {
		i++
	}
	return s[:i], s[i:], nil
}

// defineFromOptions sets the variables that the options define.
func (c *checker) defineFromOptions() error {
	for _, def := range c.opts.Defines {
		name, value, ok := strings.Cut(def, "=")
		if !ok {
			return fmt.Errorf("-D%s: missing equal sign in global definition", def)
		}
		var err error
		if numberDef, isNumber := strings.CutPrefix(name, "#"); isNumber {
			err = c.defineNumber(numberDef + ":" + value)
		} else {
			err = c.defineText(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) defineText(name, value string) error {
	at := loc{&source{commandLine, name + "=" + value}, 0}
	parsed, rest, err := cutName(name)
	if err != nil || rest != "" || parsed[0] == '@' {
		return errorAt(at, "invalid name in string variable definition '%s'", name)
	}
	if c.vars.number[name] != nil {
		return errorAt(at, "numeric variable with name '%s' already exists", name)
	}
	if !c.vars.textDefined[name] {
		c.vars.text[name] = value
	}
	c.vars.textDefined[name] = true
	return nil
}

func (c *checker) defineNumber(def string) error {
	at := loc{&source{commandLine, def}, 0}
	block, err := c.parseNumericBlock(def, at, 0, false)
	if err != nil {
		return err
	}
	if block.expr == nil {
		return errorAt(at, "missing value in global definition")
	}
	block.defines.value, err = block.expr.eval()
	c.vars.number[block.defines.name] = block.defines
	return err
}
