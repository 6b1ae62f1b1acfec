package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestPython runs the tests of the Python package, each file in a process of its own.
func TestPython(t *testing.T) {
	program := testkit.Must(os.Executable())
	folder := testkit.Must(filepath.Abs(filepath.Join("..", "..", "..", "packaging", "python")))
	for _, c := range []struct{ name, modules, packages string }{
		{"estimators", "numpy, sklearn, pandas", "python3-sklearn python3-pandas"},
		{"frames", "numpy, sklearn, pandas", "python3-sklearn python3-pandas"},
		{"operators", "numpy, scipy, pandas", "python3-scipy python3-pandas"},
		{"wheel", "numpy", "python3-numpy"},
		{"notebook", "numpy, sklearn, pandas", "python3-sklearn python3-pandas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			python := testkit.Python(t, c.modules, c.packages)
			cmd := exec.CommandContext(t.Context(), python, "-B", filepath.Join(folder, "tests", "test_"+c.name+".py"))
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "KRRLAB="+program, playVariable+"=1",
				"OPENBLAS_NUM_THREADS=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
