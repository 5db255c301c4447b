package litrun

import (
	"fmt"
	"path/filepath"
	"strings"
)

// substitute puts in what stands for the test's files:
//
//	%s, %{s:basename}, %{s:stem}  the test's path, its last element, that without its suffix
//	%S, %p                        the folder that the test is in
//	%t, %basename_t, %{t:stem}    a path for a file or folder that the test may create, and how its last element begins
//	%{pathsep}, %{fs-sep}         what separates folders in PATH, and elements in a path
//	%%                            a percent sign
func (r *Runner) substitute(name string, c command) (string, error) {
	source := filepath.Join(r.Root, name)
	dir, base := filepath.Dir(source), filepath.Base(source)
	temp := filepath.Join(r.Output, filepath.Dir(name), "Output", base+".tmp")

	unescaped := strings.ReplaceAll(c.text, "%%", "")
	for _, refused := range []struct{ what, instead string }{{"%T", "use %t"}, {"%if ", "write two tests"}} {
		if strings.Contains(unescaped, refused.what) {
			return "", fmt.Errorf("%d: %s is not supported; %s", c.line, strings.TrimSpace(refused.what), refused.instead)
		}
	}
	text := strings.NewReplacer(
		"%%", "%",
		"%{pathsep}", string(filepath.ListSeparator),
		"%{fs-sep}", string(filepath.Separator),
		"%basename_t", base,
		"%{s:basename}", base,
		"%{s:stem}", strings.TrimSuffix(base, filepath.Ext(base)),
		"%{t:stem}", base,
		"%s", source, "%/s", source,
		"%S", dir, "%/S", dir,
		"%p", dir, "%/p", dir,
		"%t", temp, "%/t", temp,
	).Replace(c.text)
	return strings.TrimSpace(text), nil
}
