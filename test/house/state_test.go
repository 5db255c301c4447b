package house

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"blutrain/internal/upstream"
)

// exceptions are package variables that may hold state, with the reason.
var exceptions = map[string]string{}

// TestNoState: no package keeps state. Its variables are tables and errors, which nothing changes after their declaration.
func TestNoState(t *testing.T) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax,
		Dir: upstream.Root(t),
	}
	loaded, err := packages.Load(config, "./...")
	require.NoError(t, err)
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			message, _, _ := strings.Cut(strings.TrimPrefix(p.Errors[0].Msg, "# "+p.PkgPath+"\n"), "\n")
			t.Errorf("%s does not compile: %s", p.PkgPath, message)
			continue
		}
		for _, problem := range findState(p.Fset, p.Syntax, p.TypesInfo) {
			t.Error(problem)
		}
	}
}

// findState says where a package declares variables made for change, changes any package's variables, or has an init.
func findState(fset *token.FileSet, files []*ast.File, info *types.Info) []string {
	var problems []string
	report := func(n ast.Node, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	changed := func(e ast.Expr) {
		if v := packageVariable(e, info); v != nil && exceptions[v.Pkg().Path()+"."+v.Name()] == "" {
			report(e, "changes the package variable %s", v.Name())
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					report(n, "has an init function")
				}
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						changed(e)
					}
				}
			case *ast.IncDecStmt:
				changed(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					changed(n.Key)
					changed(n.Value)
				}
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && isMutatingBuiltin(info.Uses[name]) {
					changed(n.Args[0])
				}
			case *ast.Ident:
				v, ok := info.Defs[n].(*types.Var)
				if ok && isPackageLevel(v) && isSync(v.Type()) && exceptions[v.Pkg().Path()+"."+v.Name()] == "" {
					report(n, "declares the package variable %s, made for change", v.Name())
				}
			}
			return true
		})
	}
	return problems
}

func isMutatingBuiltin(o types.Object) bool {
	b, ok := o.(*types.Builtin)
	return ok && (b.Name() == "delete" || b.Name() == "clear" || b.Name() == "copy")
}

func isPackageLevel(v *types.Var) bool {
	return v != nil && !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

// isSync reports whether a type comes from sync or sync/atomic.
func isSync(t types.Type) bool {
	for {
		switch u := t.(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		case *types.Named:
			pkg := u.Obj().Pkg()
			return pkg != nil && (pkg.Path() == "sync" || pkg.Path() == "sync/atomic")
		default:
			return false
		}
	}
}

// packageVariable finds the package variable at the root of x, x.f, x[i], *x and the like; nil if there is none.
func packageVariable(e ast.Expr, info *types.Info) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v, ok := info.Uses[x.Sel].(*types.Var); ok && isPackageLevel(v) {
				return v
			}
			e = x.X
		case *ast.Ident:
			if v, ok := info.Uses[x].(*types.Var); ok && isPackageLevel(v) {
				return v
			}
			return nil
		default:
			return nil
		}
	}
}

func TestFindState(t *testing.T) {
	tests := []struct{ body, want string }{
		{"var table = map[string]int{\"a\": 1}\nfunc f() int { return table[\"a\"] }", ""},
		{"var x int\nfunc f() { x := 1; x = 2; _ = x }", ""},
		{"var x int\nfunc f() { x = 2 }", "p.go:4:12: changes the package variable x"},
		{"var x int\nfunc f() { x += 2 }", "changes the package variable x"},
		{"var x int\nfunc f() { (x)++ }", "changes the package variable x"},
		{"var x = new(int)\nfunc f() { *x = 1 }", "changes the package variable x"},
		{"var x struct{ y []int }\nfunc f() { x.y[1] = 2 }", "changes the package variable x"},
		{"var x map[int]int\nfunc f() { delete(x, 1) }", "changes the package variable x"},
		{"var x []int\nfunc f() { copy(x[1:], x) }", "changes the package variable x"},
		{"var x int\nfunc f() { for x = range 3 {} }", "changes the package variable x"},
		{"func f() { io.EOF = nil }", "changes the package variable EOF"},
		{"var mu sync.Mutex", "declares the package variable mu, made for change"},
		{"var n [2]*sync.Once", "declares the package variable n, made for change"},
		{"var f = sync.OnceValue(func() int { return 1 })", ""},
		{"func init() {}", "has an init function"},
		{"type s struct{ mu sync.Mutex; n int }\nfunc (s *s) init() { s.n = 1 }", ""},
	}
	for _, tt := range tests {
		got := findStateIn(t, "package p\nimport (\"io\"; \"sync\"); var _ = io.EOF; var _ sync.Locker\n"+tt.body)
		if tt.want == "" {
			require.Empty(t, got, tt.body)
		} else {
			require.Contains(t, got, tt.want, tt.body)
		}
	}
}

func findStateIn(t *testing.T, text string) string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", text, 0)
	require.NoError(t, err)
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	_, err = config.Check("p", fset, []*ast.File{file}, info)
	require.NoError(t, err, text)
	return strings.Join(findState(fset, []*ast.File{file}, info), "\n")
}
