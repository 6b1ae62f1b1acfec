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
	listed, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "gonum.org/v1/gonum", "gonum.org/v1/plot",
		"github.com/go-gota/gota").Output()
	dirs := strings.Fields(string(listed))
	if err != nil || len(dirs) < 3 {
		t.Skip("no module cache to read examples from: ", err)
	}
	names := exampleFiles[:suite.Scale(2, len(exampleFiles), len(exampleFiles))]
	t.Chdir(t.TempDir())
	_ = os.Mkdir("testdata", 0o755)
	s, fileCount, exampleCount := openSession(t, nil), 0, 0
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
			if !strings.HasSuffix(name, "_test.go") || !strings.Contains(filepath.Base(name), "example") ||
				!slices.ContainsFunc(names, func(prefix string) bool { return strings.Contains(name, "/"+prefix) }) {
				return err
			}
			src, err := os.ReadFile(name)
			file, parseErr := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments)
			if err != nil || parseErr != nil {
				t.Errorf("%s: %v, %v", name, err, parseErr)
				return nil
			}
			fileCount++
			run(s, "%reset")
			if got := run(s, string(src)); strings.Contains(got, "✗") {
				t.Errorf("%s: %s", name, got)
				return nil
			}
			for _, example := range doc.Examples(file) {
				output := &outputRecorder{}
				result := s.Run("Cell 2", "Example"+example.Name+"()", output)
				exampleCount++
				var printed string
				for _, event := range output.events {
					text, _ := strings.CutPrefix(event, "stdout: ")
					printed += text
				}
				if got := strings.TrimSpace(printed); result.Err != nil ||
					!example.Unordered && (example.Output != "" || example.EmptyOutput) &&
						got != strings.TrimSpace(example.Output) {
					t.Errorf("%s: Example%s: %v\n%s\nwant\n%s", name, example.Name, result.Err, got, example.Output)
				}
			}
			return nil
		})
	}
	t.Logf("%d examples of %d files", exampleCount, fileCount)
	if fileCount < len(names) {
		t.Errorf("%d files of %d", fileCount, len(names))
	}
}
