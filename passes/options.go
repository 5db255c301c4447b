package passes

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"blutrain/internal/near"
)

// An option is a field of a pass's options struct: a bool, int, int64, float64, string, or a type that reads itself from
// text. Its name is the field's in lower case with dashes, MaxOps is max-ops. The tag help describes it; enum:"a,b" lists
// the values a string may have.
type option struct {
	name, help string
	enum       []string
	field      int
}

func optionsOf(t reflect.Type) []option {
	var os []option
	for i := range t.NumField() {
		f := t.Field(i)
		o := option{name: dashed(f.Name), help: f.Tag.Get("help"), field: i}
		if e := f.Tag.Get("enum"); e != "" {
			o.enum = strings.Split(e, ",")
		}
		os = append(os, o)
	}
	return os
}

// dashed is max-ops for MaxOps, and dp for DP.
func dashed(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('-')
		}
		lower = !unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func checkOptions(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("options are a %s, not a struct", t)
	}
	for _, o := range optionsOf(t) {
		f := t.Field(o.field)
		if !f.IsExported() || f.Tag.Get("help") == "" {
			return fmt.Errorf("option %s is not exported or has no help", o.name)
		}
		switch f.Type.Kind() {
		case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64, reflect.String:
		default:
			if !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
				return fmt.Errorf("option %s has type %s, which can't be read from text", o.name, f.Type)
			}
		}
	}
	return nil
}

// setOption returns options with one of them set from text.
func setOption(options any, name, value string, given bool) (any, error) {
	v := reflect.New(reflect.TypeOf(options)).Elem()
	v.Set(reflect.ValueOf(options))
	os := optionsOf(v.Type())
	i := slices.IndexFunc(os, func(o option) bool { return o.name == name })
	if i < 0 {
		var names []string
		for _, o := range os {
			names = append(names, o.name)
		}
		return nil, fmt.Errorf("no option %s%s; there are %s", name, near.Suggest(name, names), strings.Join(names, ", "))
	}
	f := v.Field(os[i].field)
	if !given {
		if f.Kind() != reflect.Bool {
			return nil, fmt.Errorf("option %s needs a value: %s=...", name, name)
		}
		value = "true"
	}
	if e := os[i].enum; e != nil && !slices.Contains(e, value) {
		return nil, fmt.Errorf("option %s is %s, not %q", name, strings.Join(e, ", "), value)
	}
	if err := setField(f, value); err != nil {
		return nil, fmt.Errorf("option %s: %w", name, err)
	}
	return v.Interface(), nil
}

func setField(f reflect.Value, value string) error {
	if u, ok := f.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(value))
	}
	switch f.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("expected true or false, not %q", value)
		}
		f.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("expected an integer, not %q", value)
		}
		f.SetInt(n)
	case reflect.Float64:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("expected a number, not %q", value)
		}
		f.SetFloat(x)
	default:
		f.SetString(value)
	}
	return nil
}

// Help lists a pass's options, one a line: "mode=auto  what it does (none, auto, full)".
func (p *Pass) Help() []string {
	if p.Options == nil {
		return nil
	}
	v := reflect.ValueOf(p.Options)
	var lines []string
	for _, o := range optionsOf(v.Type()) {
		line := fmt.Sprintf("%s=%s  %s", o.name, optionText(v.Field(o.field)), o.help)
		if o.enum != nil {
			line += " (" + strings.Join(o.enum, ", ") + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

func optionText(f reflect.Value) string {
	if m, ok := f.Interface().(encoding.TextMarshaler); ok {
		if b, err := m.MarshalText(); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(f.Interface())
}

// changedOptions lists the options that differ from the defaults, as name=value.
func changedOptions(defaults, options any) []string {
	if options == nil {
		return nil
	}
	d, v := reflect.ValueOf(defaults), reflect.ValueOf(options)
	var out []string
	for _, o := range optionsOf(v.Type()) {
		if was, is := optionText(d.Field(o.field)), optionText(v.Field(o.field)); was != is {
			out = append(out, o.name+"="+is)
		}
	}
	return out
}
