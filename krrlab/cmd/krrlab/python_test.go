package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestPython runs the tests of the Python package in packaging/python, with this test binary as the program krrlab.
func TestPython(t *testing.T) {
	python := testkit.Python(t, "numpy, sklearn, pandas", "python3-sklearn python3-pandas")
	program := testkit.Must(os.Executable())
	folder := testkit.Must(filepath.Abs(filepath.Join("..", "..", "..", "packaging", "python")))
	cmd := exec.CommandContext(t.Context(), python, "-B", "-W", "ignore::UserWarning", "-m", "unittest", "discover",
		"-s", filepath.Join(folder, "tests"))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "KRRLAB="+program, actAsKrrlab+"=1", "OPENBLAS_NUM_THREADS=1",
		"GOMAXPROCS=1")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
