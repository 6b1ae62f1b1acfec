package lint

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// usesStage lists the packages, other than krrlab/stages.go, that may use the package of a stage, with the reason.
var usesStage = map[[2]string]string{
	{"krrlab", "krrlab/stage/compare"}:              "the race of preconditioners is a comparison",
	{"krrlab", "krrlab/stage/plan"}:                 "Solve follows a plan",
	{"krrlab/stage/solve", "krrlab/stage/plan"}:     "a solution contains its plan",
	{"krrlab/cli", "krrlab/stage/plan"}:             "doctor and reproduce predict memory and seconds",
	{"experiments", "krrlab/stage/plan"}:            "seconds of cases are predicted",
	{"experiments/testbed", "krrlab/stage/compare"}: "its runs are those of comparisons",
	{"theory", "krrlab/stage/statdim"}:              "a claim of Proposition 3",
	{"theory", "krrlab/stage/sketchsize"}:           "Theorem 7",
	{"theory", "krrlab/stage/lambdap"}:              "the bound of κ by η",
}

// stageFolders returns the paths of the packages that define a stage (by a variable Stage), and the units of all other
// packages.
func stageFolders(t *testing.T) (stages []string, others []*unit) {
	for _, u := range checkedUnits(t) {
		if object := u.pkg.Scope().Lookup("Stage"); object != nil && !u.test &&
			qualifiedName(object) == u.path+".Stage" {
			if _, ok := object.(*types.Var); ok {
				stages = append(stages, u.path)
				continue
			}
		}
		others = append(others, u)
	}
	return stages, others
}

// TestStageFolders checks that the options, computation, result and texts of a stage are used only in its own package:
// other packages know a stage only by its definition, which krrlab/stages.go registers.
func TestStageFolders(t *testing.T) {
	stages, others := stageFolders(t)
	if len(stages) < 6 {
		t.Fatalf("stages %q", stages)
	}
	for _, u := range others {
		if u.test || u.path == bindings {
			continue
		}
		for ident, object := range u.info.Uses {
			if object.Pkg() == nil {
				continue
			}
			path, position := strings.TrimPrefix(object.Pkg().Path(), module+"/"), fset.Position(ident.Pos())
			switch {
			case !slices.Contains(stages, path) || usesStage[[2]string{u.path, path}] != "":
			case u.path != "krrlab" || filepath.Base(position.Filename) != "stages.go":
				t.Errorf("%s: %s of the stage %s: move what uses it into the stage; krrlab/stages.go registers stages",
					position, ident.Name, path)
			}
		}
	}
}

// TestFewImports checks that package krrlab, which connects the packages below it, imports at most 20 of them, not
// counting the stages and the packages that solve and verify.
func TestFewImports(t *testing.T) {
	stages, others := stageFolders(t)
	for _, u := range others {
		if u.path != "krrlab" || u.test {
			continue
		}
		var below []string
		for _, p := range u.pkg.Imports() {
			path, ours := strings.CutPrefix(p.Path(), module+"/")
			if ours && !slices.Contains(append(stages, "krrlab/stage/solve", "krrlab/stage/verify"), path) {
				below = append(below, path)
			}
		}
		if len(below) == 0 || len(below) > 20 {
			t.Errorf("krrlab imports %d packages below the stages, want 20 at most: %q", len(below), below)
		}
	}
}

// TestForeignPackages checks that a Go program that imports krrlab compiles at most 60 packages outside this module and
// the standard library. Features with more dependencies are in packages that a program imports separately, such as
// datasets/parquet and plots/draw.
func TestForeignPackages(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		module+"/krrlab").Output()
	testkit.OK(t, err)
	foreign := slices.DeleteFunc(strings.Fields(string(out)),
		func(path string) bool { return strings.HasPrefix(path, module) })
	if len(foreign) == 0 || len(foreign) > 60 {
		t.Errorf("krrlab needs %d packages of others, want 60 at most: %q", len(foreign), foreign)
	}
}

// TestStageRemoved checks that the module builds without the folder of a stage and its declarations in
// krrlab/stages.go, except the packages that usesStage lists. The stages plan and compare are not removed, because the
// laboratory itself needs them.
func TestStageRemoved(t *testing.T) {
	stages, _ := stageFolders(t)
	for _, stage := range stages {
		if stage == "krrlab/stage/plan" || stage == "krrlab/stage/compare" ||
			suite.Scale(0, 1, 1) == 0 && stage != "krrlab/stage/multilevel" {
			continue
		}
		t.Run(stage, func(t *testing.T) {
			buildWithout(t, withoutStage(t, stage), stage, func(path string) bool {
				return path == bindings || usesStage[[2]string{path, stage}] != ""
			})
		})
	}
}

// TestKindRemoved checks that the packages that do not name the type of a kernel or preconditioner build without the
// file that defines it: the laboratory itself must not know single kinds.
func TestKindRemoved(t *testing.T) {
	if suite.Scale(0, 1, 1) == 0 {
		t.Skip("it builds the laboratory anew: KRRLAB_LONG=suite")
	}
	// The values are the packages that name the type: published problems, theorems, the notebook.
	for kind, naming := range map[string][]string{
		"krrlab/kernel/laplacian.go":       {bindings, "experiments/testbed", "theory"},
		"krrlab/precond/recipe/vecchia.go": {bindings},
	} {
		files := map[string][]byte{filepath.Join(root, kind): nil}
		if kind == "krrlab/precond/recipe/vecchia.go" { // the alias in the root package is removed too
			aliases := filepath.Join(root, "krrlab", "precond.go")
			text := testkit.Must(os.ReadFile(aliases))
			files[aliases] = bytes.Replace(text, []byte("\tVecchia        = recipe.Vecchia\n"), nil, 1)
			testkit.Equal(t, len(files[aliases]) < len(text), true)
		}
		buildWithout(t, files, "", func(path string) bool { return slices.Contains(naming, path) })
	}
}

// buildWithout builds all packages with other contents of some files; nil stands for a deleted file. It leaves out
// programs, the removed package, and packages that depend on a package for which skip returns true.
func buildWithout(t *testing.T, files map[string][]byte, removed string, skip func(path string) bool) {
	replace, dir := map[string]string{}, t.TempDir()
	for file, content := range files {
		replacement := ""
		if content != nil {
			replacement = filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(file, root), "/", "_"))
			testkit.OK(t, os.WriteFile(replacement, content, 0o600))
		}
		replace[testkit.Must(filepath.Abs(file))] = replacement
	}
	overlay := filepath.Join(dir, "overlay.json")
	testkit.OK(t, os.WriteFile(overlay, testkit.Must(json.Marshal(map[string]any{"Replace": replace})), 0o600))
	out := testkit.Must(exec.Command("go", "list", "-f", `{{.ImportPath}} {{.Name}} {{join .Deps " "}}`,
		module+"/...").Output())
	args := []string{"build", "-overlay", overlay}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		skipped := func(path string) bool { return skip(strings.TrimPrefix(path, module+"/")) }
		if words[1] != "main" && words[0] != module+"/"+removed &&
			!slices.ContainsFunc(append(words[2:], words[0]), skipped) {
			args = append(args, words[0])
		}
	}
	if len(args) < 40 || !slices.Contains(args, module+"/krrlab") ||
		!slices.Contains(args, module+"/krrlab/stage/solve") {
		t.Fatalf("too little is built: %q", args)
	}
	build := exec.Command("go", args...)
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// withoutStage returns the contents of the files that change if a stage is removed; nil stands for a deleted file.
func withoutStage(t *testing.T, stage string) map[string][]byte {
	files := map[string][]byte{}
	for _, file := range testkit.Must(filepath.Glob(filepath.Join(root, stage, "*.go"))) {
		files[file] = nil
	}
	file := filepath.Join(root, "krrlab", "stages.go")
	positions := token.NewFileSet()
	f := testkit.Must(parser.ParseFile(positions, file, nil, 0))
	// Names that refer to the stage, directly or through a removed type.
	removed := map[string]bool{filepath.Base(stage): true}
	refersToStage := func(n ast.Node) (found bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && removed[id.Name] {
				found = true
			}
			return !found
		})
		return found
	}
	f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
		group, ok := d.(*ast.GenDecl)
		if !ok {
			return refersToStage(d)
		}
		group.Specs = slices.DeleteFunc(group.Specs, func(s ast.Spec) bool {
			switch s := s.(type) {
			case *ast.ImportSpec:
				return s.Path.Value == `"`+module+"/"+stage+`"`
			case *ast.TypeSpec:
				removed[s.Name.Name] = removed[s.Name.Name] || refersToStage(s.Type)
				return removed[s.Name.Name]
			case *ast.ValueSpec:
				if list, ok := s.Values[0].(*ast.CompositeLit); ok {
					list.Elts = slices.DeleteFunc(list.Elts, func(e ast.Expr) bool { return refersToStage(e) })
					return false
				}
				return refersToStage(s.Values[0])
			}
			return false
		})
		return len(group.Specs) == 0
	})
	if !bytes.Contains(testkit.Must(os.ReadFile(file)), []byte(filepath.Base(stage)+".Stage")) {
		t.Errorf("%s is not registered in %s", stage, file)
	}
	var text bytes.Buffer
	testkit.OK(t, format.Node(&text, positions, f))
	files[file] = text.Bytes()
	return files
}
