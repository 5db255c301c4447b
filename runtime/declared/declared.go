// Package declared holds an artifact's manifest to the program that it is about: the states that the program's text declares are those that the
// manifest lists, for the same purposes, and functions take and give what it says. Devices ask it before they load a program, for what the runtime
// does with states (saves them, makes copies of parameters anew, compares) and makes to call functions with goes by the manifest. It knows
// declarations, and nothing of what functions do.
package declared

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/formats"
	"blutrain/ir"
)

// Check says where a program, or the reference of one, declares other states than the manifest lists.
func Check(m *artifact.Manifest, program *ir.Op) error {
	found := map[string]bool{}
	for op := range program.Body().Ops() {
		if list, ok := op.Attr("mem.interface").(*ir.ArrayAttr); ok && op.Is(exec.Func) {
			if err := checkInterface(m, op, list); err != nil {
				return err
			}
		}
		if !op.Is(exec.State) && !op.Is(blu.Param) && !op.Is(blu.State) {
			continue
		}
		name := ir.SymName(op)
		found[name] = true
		s, ok := m.State(name)
		if !ok {
			return op.Errorf("the program declares @%s, and the manifest has no such state", name)
		}
		if is, says := declaration(op), listing(s); is != says {
			return op.Errorf("the program declares @%s as %s, the manifest lists it as %s", name, is, says)
		}
	}
	for _, s := range m.States {
		if !found[s.Name] {
			return fmt.Errorf("the manifest lists the state %q, which the program doesn't declare", s.Name)
		}
	}
	return nil
}

// checkInterface says where a function takes or gives something else than the manifest says.
func checkInterface(m *artifact.Manifest, op *ir.Op, list *ir.ArrayAttr) error {
	name := ir.SymName(op)
	f, ok := m.Function(name)
	if !ok {
		return op.Errorf("the program has a function @%s, and the manifest none", name)
	}
	var is, says []string
	for _, e := range list.Elems {
		d, ok := e.(*ir.DictAttr)
		if !ok {
			return op.Errorf("mem.interface: %s is no dictionary", e)
		}
		if a := ir.Attrs(d.Entries); a.Str("space") != "state" {
			elem, shape := stored(a)
			is = append(is, taken(a.Str("space"), a.Str("name"), elem, shape))
		}
	}
	for space, values := range map[string][]artifact.Value{"input": f.Inputs, "output": f.Outputs, "scalar": f.Scalars} {
		for _, v := range values {
			says = append(says, taken(space, v.Name, v.DType.String(), v.Shape))
		}
	}
	slices.Sort(is)
	slices.Sort(says)
	if !slices.Equal(is, says) {
		return op.Errorf("the function @%s has %s, the manifest says %s", name, strings.Join(is, ", "), strings.Join(says, ", "))
	}
	return nil
}

// taken is what a function takes or gives, in words.
func taken(space, name, elem string, shape []int64) string {
	return fmt.Sprintf("%s %s %s%v", space, name, elem, append([]int64{}, shape...))
}

// stored is the element type, in a manifest's words, and the shape of what has a type attribute.
func stored(a ir.Attrs) (elem string, shape []int64) {
	t, ok := a.Get("type").(*ir.TypeAttr)
	if !ok {
		return "?", nil
	}
	shape, _ = ir.Shape(t.Type)
	if elem = ir.Elem(t.Type).String(); elem == "i1" {
		elem = formats.Bool.String()
	}
	return elem, shape
}

// declaration is what a program says of a state, in the words of listing.
func declaration(op *ir.Op) string {
	a := op.Attrs()
	role, persist := a.Str("role"), a.Bool("persist")
	if op.Is(blu.Param) {
		role, persist = string(artifact.Param), true
	}
	elem, shape := stored(a)
	text := words(role, a.Sym("of"), elem, shape, persist)
	if d, ok := op.Attr("shard").(*ir.DictAttr); ok {
		s := ir.Attrs(d.Entries)
		text += piece(s.Str("group"), s.IntOr("ranks", 0), s.Ints("shape"))
	}
	return text
}

// listing is what a manifest says of a state.
func listing(s *artifact.State) string {
	text := words(string(s.Role), s.Of, s.DType.String(), s.Shape, s.Persist)
	if s.Shard != nil {
		text += piece(s.Shard.Group, int64(s.Shard.Ranks), s.Shard.Shape)
	}
	return text
}

func words(role, of, elem string, shape []int64, persist bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s%v", role, elem, append([]int64{}, shape...))
	if of != "" {
		fmt.Fprintf(&b, ", of %s", of)
	}
	if persist {
		b.WriteString(", kept in checkpoints")
	}
	return b.String()
}

func piece(group string, ranks int64, whole []int64) string {
	return fmt.Sprintf(", a shard of %v among %d ranks of %s", append([]int64{}, whole...), ranks, group)
}
