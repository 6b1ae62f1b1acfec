package lint

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestDeclaredOnAllSystems looks for names that a package declares on this system but not on another one of a release
// (TARGETS of the Makefile), such as a function whose counterpart for the other systems kept its old name. It resolves
// no imports, so that it needs no build for these systems.
func TestDeclaredOnAllSystems(t *testing.T) {
	makefile := testkit.Must(os.ReadFile(filepath.Join(root, "Makefile")))
	_, targets, found := strings.Cut(string(makefile), "TARGETS ?= ")
	testkit.Equal(t, found, true)
	targets, _, _ = strings.Cut(targets, "\n")
	filesHere := goFiles()
	for target := range strings.FieldsSeq(targets) {
		system, processor, _ := strings.Cut(target, "/")
		for dir, names := range goFiles("GOOS="+system, "GOARCH="+processor) {
			if slices.Equal(names, filesHere[dir]) {
				continue
			}
			undeclaredHere := undeclared(dir, filesHere[dir])
			for _, problem := range undeclared(dir, names) {
				if !slices.Contains(undeclaredHere, problem) {
					t.Errorf("%s: %s", target, problem)
				}
			}
		}
	}
}

// goFiles returns the names of the files of each package of the module, without tests, by the package's folder. The
// variables of the environment choose the system.
func goFiles(variables ...string) map[string][]string {
	list := exec.Command("go", "list", "-json=Dir,GoFiles", "./...")
	list.Dir = root
	list.Env = append(os.Environ(), append(variables, "CGO_ENABLED=0")...)
	files := map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(testkit.Must(list.Output()))); decoder.More(); {
		var pkg struct {
			Dir     string
			GoFiles []string
		}
		if err := decoder.Decode(&pkg); err != nil {
			panic(err)
		}
		files[pkg.Dir] = pkg.GoFiles
	}
	return files
}

// undeclared returns a message for each use of a name that the files of one package do not declare. The name of an
// imported package is reported too if it differs from the end of its path.
func undeclared(dir string, names []string) (problems []string) {
	positions := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		path := filepath.Join(dir, name)
		files = append(files, testkit.Must(parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)))
	}
	conf := types.Config{Error: func(err error) {
		if strings.Contains(err.Error(), "undefined: ") {
			problems = append(problems, err.Error())
		}
	}}
	conf.Check(dir, positions, files, nil)
	return problems
}
