package lint

import (
	"go/ast"
	"go/doc"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestImportsAndUses checks the imports and uses of all packages of this module, without their tests, by importRule and
// useRule.
func TestImportsAndUses(t *testing.T) {
	for _, u := range checkedUnits(t) {
		if u.test {
			continue
		}
		for _, f := range u.files {
			report := func(n ast.Node, problem string) {
				testkit.Equal(t, problem, "", fset.Position(n.Pos()))
			}
			for _, imp := range f.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				report(imp, importRule(u.path, path))
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && u.info.Uses[id] != nil {
					object := id.Name
					if p := u.info.Uses[id].Pkg(); p != nil {
						object = p.Path() + "." + object
					}
					report(id, useRule(u.path, object))
				}
				return true
			})
		}
	}
}

// TestAllowedImports checks the list of allowed imports: both packages are on one floor (layer), and no two packages
// may import each other.
func TestAllowedImports(t *testing.T) {
	for pair := range allowedImports {
		testkit.Equal(t, floors[pair[0]], floors[pair[1]], pair[0], pair[1])
		testkit.Equal(t, allowedImports[[2]string{pair[1], pair[0]}], "", pair[0], pair[1])
	}
}

// TestImportAndUseRules checks importRule and useRule on imports and uses that break each rule, and on some that are
// allowed.
func TestImportAndUseRules(t *testing.T) {
	for _, test := range []struct{ pkg, imp, want string }{
		{"krrlab/kernel/gram", module + "/krrlab/kernel", ""},
		{"krrlab/new", "fmt", "has no floor"},
		{"krrlab/kernel", module + "/krrlab/kernel/gram",
			"krrlab/kernel (floor 1) imports krrlab/kernel/gram (floor 2)"},
		{"krrlab/kernel/gram", module + "/krrlab/precond", "on its own floor 2"},
		{"krrlab/kernel/points", module + "/krrlab/accel", ""},
		{"krrlab/accel", module + "/krrlab/kernel/points", "on its own floor 0"},
		{"krrlab/krylov/pcg", module + "/krrlab/kernel/gram", "by its own interfaces"},
		{"krrlab/model", module + "/plots", "let the caller draw"},
		{"krrlab", module + "/plots", ""},
		{"krrlab", "gonum.org/v1/plot/vg", "krrlab imports gonum.org/v1/plot; only plots"},
		{"theory", "github.com/go-gota/gota/dataframe", "theory imports"},
		{"krrlab/notebook/display", "github.com/go-gota/gota/dataframe", ""},
	} {
		if got := importRule(test.pkg, test.imp); (got == "") != (test.want == "") || !strings.Contains(got,
			test.want) {
			t.Errorf("%s imports %s: %q, want %q", test.pkg, test.imp, got, test.want)
		}
	}
	for _, test := range []struct {
		pkg, object string
		allowed     bool
	}{
		{"krrlab/base/rng", "fmt.Println", false}, {"krrlab/cli", "fmt.Println", true},
		{"krrlab/base/rng", "fmt.Sprint", true},
		{"krrlab/base/rng", "os.Stderr", false}, {"krrlab/base/rng", "log.Print", false},
		{"krrlab/base/rng", "println", false},
		{"krrlab/cli", "os.Exit", false}, {"experiments", "os.Getenv", false}, {"datasets", "os.Getenv", true},
		{"datasets", "os.Args", false},
		{"krrlab/cli", "log.Fatalf", false}, {"krrlab/cli", module + "/krrlab/accel.UseLibrary", false},
		{"krrlab/cmd/krrlab", "os.Exit", true},
	} {
		if got := useRule(test.pkg, test.object); (got == "") != test.allowed {
			t.Errorf("%s uses %s: the broken rule is %q, want allowed: %v", test.pkg, test.object, got, test.allowed)
		}
	}
}

// TestDocComments checks that packages and their exported types, functions and methods have comments.
func TestDocComments(t *testing.T) {
	for _, u := range checkedUnits(t) {
		if u.test || u.pkg.Name() == "main" {
			continue
		}
		declarations := countDeclarations(u)
		// Without AllDecls, NewFromFiles removes unexported declarations from the files.
		docs := testkit.Must(doc.NewFromFiles(fset, u.files, u.pkg.Path(), doc.PreserveAST|doc.AllDecls))
		testkit.Equal(t, countDeclarations(u), declarations, u.path, "is changed for the other tests")
		check := func(text, name string) {
			if text == "" && ast.IsExported(name) {
				t.Errorf("%s.%s has no comment: write one", u.path, name)
			}
		}
		check(docs.Doc, "Package")
		funcs := docs.Funcs
		for _, typ := range docs.Types {
			check(typ.Doc, typ.Name)
			if funcs = append(funcs, typ.Funcs...); ast.IsExported(typ.Name) {
				funcs = append(funcs, typ.Methods...)
			}
		}
		for _, f := range funcs {
			if f.Level == 0 && (f.Recv == "" || !slices.Contains(customaryCalls, f.Name)) {
				check(f.Doc, f.Name)
			}
		}
	}
}

// countDeclarations returns the number of declarations in the files of a unit.
func countDeclarations(u *unit) (n int) {
	for _, f := range u.files {
		n += len(f.Decls)
	}
	return n
}

// TestDocSubjects checks that the comment of a function or type begins with its name, which a change of the name may
// have left out. An article may come first.
func TestDocSubjects(t *testing.T) {
	for _, u := range checkedUnits(t) {
		for _, f := range u.files {
			for _, decl := range f.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if name := d.Name.Name; name != "init" && !(u.test && strings.HasPrefix(name, "Example")) {
						checkSubject(t, d.Doc, d.Name)
					}
				case *ast.GenDecl:
					if typ, ok := d.Specs[0].(*ast.TypeSpec); ok && len(d.Specs) == 1 {
						checkSubject(t, d.Doc, typ.Name)
					}
				}
			}
		}
	}
}

// checkSubject reports a comment that does not begin with the name.
func checkSubject(t *testing.T, comment *ast.CommentGroup, name *ast.Ident) {
	text := comment.Text()
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	subject := text[:len(text)-len(strings.TrimLeftFunc(text, isWordRune))]
	if text != "" && subject != name.Name {
		t.Errorf("%v: the comment of %s begins with %q", fset.Position(name.Pos()), name.Name, subject)
	}
}

// isWordRune reports whether r may be part of a name.
func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// TestFormat checks that gofmt changes no file, and that no text contains one of the usual marks of unfinished work.
// The marks are split in this file so that it does not contain them.
func TestFormat(t *testing.T) {
	goroot := testkit.Must(exec.Command("go", "env", "GOROOT").Output())
	words := `\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`
	for problem, line := range map[string][]string{
		"run gofmt -w on": {filepath.Join(strings.TrimSpace(string(goroot)), "bin", "gofmt"), "-l", "."},
		"finish what is begun": {"git", "grep", "-nE", words, "--", "*.go", "*.md", "*.py", "*.sh", "*.s", "*.c", "*.h",
			"Makefile"},
	} {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Dir = root
		// The exit status does not matter: git grep exits with 1 if there is no match.
		if out, _ := cmd.Output(); len(out) > 0 {
			t.Errorf("%s: %s", problem, out)
		}
	}
}
