package golang

import (
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/suite"
)

// exampleFiles are prefixes of the names of files with examples, of gonum and gonum/plot (BSD license) and of gota
// (Apache license). The short suite runs the first ones.
var exampleFiles = []string{
	"mat/cholesky", "plotter/functions", "stat/pca", "optimize/local", "interp/interp", "floats/examples", "stat/roc",
	"plotter/boxplot", "plotutil/errorpoints", "dataframe/examples", "layout/eades",
}

// TestExamples runs examples of gonum, gonum/plot and gota in cells, as they are in the module cache. Each file is a
// cell, the call of each example is another cell, and the output must be that of the example's comment.
func TestExamples(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "gonum.org/v1/gonum", "gonum.org/v1/plot",
		"github.com/go-gota/gota").Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) < 3 {
		t.Skip("no module cache to read examples from: ", err)
	}
	names := exampleFiles[:suite.Scale(2, len(exampleFiles), len(exampleFiles))]
	t.Chdir(t.TempDir())
	_ = os.Mkdir("testdata", 0o755)
	s, files, ran := openSession(t, nil), 0, 0
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			if !strings.HasSuffix(name, "_test.go") || !strings.Contains(filepath.Base(name), "example") ||
				!slices.ContainsFunc(names, func(n string) bool { return strings.Contains(name, "/"+n) }) {
				return err
			}
			src, err := os.ReadFile(name)
			file, parseErr := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments)
			if err != nil || parseErr != nil {
				t.Errorf("%s: %v, %v", name, err, parseErr)
				return nil
			}
			files++
			run(s, "%reset")
			if got := run(s, string(src)); strings.Contains(got, "✗") {
				t.Errorf("%s: %s", name, got)
				return nil
			}
			for _, x := range doc.Examples(file) {
				p := &outputRecorder{}
				r := s.Run("Cell 2", "Example"+x.Name+"()", p)
				ran++
				var printed string
				for _, e := range p.events {
					text, _ := strings.CutPrefix(e, "stdout: ")
					printed += text
				}
				if got := strings.TrimSpace(printed); r.Err != nil ||
					!x.Unordered && (x.Output != "" || x.EmptyOutput) && got != strings.TrimSpace(x.Output) {
					t.Errorf("%s: Example%s: %v\n%s\nwant\n%s", name, x.Name, r.Err, got, x.Output)
				}
			}
			return nil
		})
	}
	t.Logf("%d examples of %d files", ran, files)
	if files < len(names) {
		t.Errorf("%d files of %d", files, len(names))
	}
}
