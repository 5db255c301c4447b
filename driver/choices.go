package driver

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"blutrain/internal/near"
	"blutrain/ir"
)

// A choice is an option that becomes part of the module in the phases whose passes name it: what such a phase leaves
// remembers the choice in an attribute, and can't be compiled on with another one.
type choice struct {
	flag, placeholder, attr string
	of                      func(*Options) *string
}

var choices = []choice{
	{"target", "$TARGET", "blu.target", func(o *Options) *string { return &o.Target }},
	{"precision", "$PRECISION", "blu.precision", func(o *Options) *string { return &o.Precision }},
	{"arch", "$ARCH", "blu.arch", func(o *Options) *string { return &o.Arch }},
}

// remember notes in the module what choices phase p made.
func (c *compilation) remember(p Phase) {
	for _, ch := range choices {
		if strings.Contains(p.Passes, ch.placeholder) {
			c.result.Module.SetAttr(ch.attr, c.result.Ctx.String(*ch.of(&c.Options)))
		}
	}
	if c.Budget != 0 && p.recomputes() {
		c.result.Module.SetAttr(budgetAttr, c.result.Ctx.Int64(c.Budget))
	}
}

// budgetAttr is the bytes that a program was to stay within when it was chosen what is recomputed. What kernels work in is chosen for it later.
const budgetAttr = "blu.budget"

// inherit takes over the choices that were made for a module, and refuses others.
func (c *compilation) inherit(m *ir.Op) error {
	for _, ch := range choices {
		made, asked := m.Attrs().Str(ch.attr), ch.of(&c.Options)
		if made == "" {
			continue
		}
		if *asked != "" && *asked != made {
			return optionErrorf("%s was compiled with --%s %s: that can't become %s any more", c.file, ch.flag, made, *asked)
		}
		*asked = made
	}
	return nil
}

// checkLate refuses options that what is left to do has no use for: next is the index of the next phase of a module.
func (c *compilation) checkLate(next int) error {
	if len(c.Set)+len(c.Truths) > 0 {
		return optionErrorf("%s is a module: only the arguments of a model (.blu) can be set", c.file)
	}
	chooses := slices.IndexFunc(c.phases, Phase.recomputes)
	if (c.Recompute != "" || c.Budget != 0) && next > chooses {
		return optionErrorf("%s is past the phase %s, in which it is chosen what is recomputed", c.file, c.phases[chooses].Name)
	}
	shards := slices.IndexFunc(c.phases, func(p Phase) bool { return p.Sharded != "" })
	if c.Sharding.given() && next > shards {
		return optionErrorf("%s is past the phase %s, in which programs are sharded", c.file, c.phases[shards].Name)
	}
	lowers := slices.IndexFunc(c.phases, func(p Phase) bool { return strings.Contains(p.Passes, "$TUNING") })
	if c.lowersToPTX() && next > lowers {
		return optionErrorf("%s is past the phase %s, in which kernels are chosen and made", c.file, c.phases[lowers].Name)
	}
	return nil
}

// suggestTarget is what someone may have meant who named another target: also by what it runs on.
func suggestTarget(name string) string {
	meant := map[string]string{"gpu": "cuda", "nvidia": "cuda", "nvptx": "cuda", "ptx": "cuda", "host": "cpu", "x86": "cpu", "x86-64": "cpu", "x86_64": "cpu", "reference": "ref"}
	if target, ok := meant[strings.ToLower(name)]; ok {
		return "; did you mean " + target + "?"
	}
	return near.Suggest(name, TargetNames())
}

// checkNames refuses options that name nothing there is, and puts defaults in the place of empty ones.
func (c *compilation) checkNames() error {
	if c.Target == "" {
		c.Target = Targets[0].Name
	}
	i := slices.IndexFunc(Targets, func(t Target) bool { return t.Name == c.Target })
	if i < 0 {
		return optionErrorf("no target %q%s; there are %s", c.Target, suggestTarget(c.Target), strings.Join(TargetNames(), ", "))
	}
	available := Targets[i].Precisions
	if c.Precision == "" {
		c.Precision = available[0]
	}
	if !slices.Contains(available, c.Precision) {
		return optionErrorf("target %s has no precision %q; it has %s", c.Target, c.Precision, strings.Join(available, ", "))
	}
	if err := c.checkArch(Targets[i]); err != nil {
		return err
	}
	if modes := []string{"none", "auto", "full"}; c.Recompute != "" && !slices.Contains(modes, c.Recompute) {
		return optionErrorf("no mode of recomputation %q%s; there are %s", c.Recompute, near.Suggest(c.Recompute, modes), strings.Join(modes, ", "))
	}
	if c.Budget != 0 && c.Recompute != "" {
		return optionErrorf("a memory budget chooses what is recomputed: it can't be combined with the mode %s", c.Recompute)
	}
	if c.Sharding.given() {
		if _, err := c.Sharding.parse(); err != nil {
			return err
		}
	}
	c.phases = phasesOf(c.Target)
	if c.CompileTo != "" && c.index(c.CompileTo) < 0 {
		return c.noPhase(c.CompileTo)
	}
	if err := c.checkLowering(); err != nil {
		return err
	}
	if err := c.Passes.CheckNames(Passes()); err != nil {
		return optionErrorf("%v", err)
	}
	return nil
}

// checkArch refuses a machine that the target isn't compiled for.
func (c *compilation) checkArch(t Target) error {
	if c.Arch == "" && len(t.Archs) > 0 {
		c.Arch = t.Archs[0]
	}
	if c.Arch != "" && !slices.Contains(t.Archs, c.Arch) {
		if len(t.Archs) == 0 {
			return optionErrorf("target %s is compiled for no arch in particular: --arch is for --target cuda", t.Name)
		}
		var has []string
		for i, a := range t.Archs {
			has = append(has, fmt.Sprintf("%s (%s)", a, t.RunsOn[i]))
		}
		return optionErrorf("target %s has no arch %q; it has %s", t.Name, c.Arch, strings.Join(has, ", "))
	}
	return nil
}

func (c *compilation) noPhase(phase string) error {
	var names []string
	for _, p := range c.phases {
		names = append(names, p.Name)
	}
	return optionErrorf("no phase %q for target %s%s; there are %s", phase, c.Target, near.Suggest(phase, names), strings.Join(names, ", "))
}

// isModule says whether a file is a module rather than a model; it can't be anything else.
func isModule(file string) (bool, error) {
	switch filepath.Ext(file) {
	case ".blu":
		return false, nil
	case ".mlir":
		return true, nil
	}
	return false, optionErrorf("%s: expected a model (.blu) or a module (.mlir)", file)
}
