package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestPaper solves three problems of the paper with its settings through the command line. It compares the test error
// and the number of iterations with Table 1 of the paper or, for MNIST with λ_p = 0.1, with a reference implementation
// in NumPy, which took 57 iterations. The test takes about 20 minutes, up to 11 GB of memory, and the data sets in
// $KRRLAB_DATA; it runs only with KRRLAB_LONG=1.
func TestPaper(t *testing.T) {
	dir := suite.RealData(t)
	openBLAS, err := accel.OpenBLAS()
	if err != nil {
		t.Logf("%v", err)
	}
	const tol = 1e-3 // of the residual
	for _, c := range []struct {
		name                            string  // data set
		gigabytes                       int64   // memory that the fit needs
		options                         string  // of the preconditioner
		testError, errorTolerance       float64 // share of wrong labels of the test rows
		iterations, iterationsTolerance float64
	}{
		{"adult", 4, "features=5000", 0.1499, 0.001, 13, 3},
		{"mnist", 11, "features=6000 lambda-p=0.1", 0.0133, 0.0005, 57, 10},
		{"ijcnn1", 9, "features=10000", 0.0139, 0.001, 120, 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			if available := accel.MemoryAvailable(); available < c.gigabytes*1e9 {
				t.Skipf("%d GB are wanted, %.1f GB are free", c.gigabytes, float64(available)/1e9)
			}
			reportFile := filepath.Join(t.TempDir(), "report.json")
			args := []string{"fit", "--data", c.name, "--solver", "pcg", "--precond", "features " + c.options, "--tol",
				fmt.Sprint(tol), "--json", reportFile, "--data-dir", dir}
			code := Main(context.Background(), args, Env{
				Stdout: os.Stdout, Stderr: os.Stderr, Version: "test",
				UseBLAS: func(context.Context, string) (string, error) { accel.UseLibrary(openBLAS); return "", nil },
			})
			defer accel.UseLibrary(nil)
			if code != 0 {
				t.Fatalf("exit code %d", code)
			}
			report := readReport(t, reportFile)
			testkit.Near(t, report["test_error"].(float64), c.testError, c.errorTolerance, "test error")
			testkit.Near(t, report["iterations"].(float64), c.iterations, c.iterationsTolerance, "iterations")
			if residual := report["true_residual"].(float64); !(residual <= tol) {
				t.Errorf("true residual %.3g, want at most %g", residual, tol)
			}
		})
	}
}
