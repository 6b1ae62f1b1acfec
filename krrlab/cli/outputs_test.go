package cli

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestOutputsThatFail: a model that cannot be saved does not keep the report, and its file, from the user, who is told
// which files there are.
func TestOutputsThatFail(t *testing.T) {
	dir := t.TempDir()
	lab, err := krrlab.New(datasets.SyntheticRegression(40, 2, 0.1, 1),
		krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1})
	testkit.OK(t, err)
	sol := testkit.Must(lab.Solve(t.Context()))
	sol.Model.Origin.TrueResidual = new(math.NaN())
	var out, errs bytes.Buffer
	a := &app{env: Env{Stdout: &out, Stderr: &errs}}
	f := newFitFlags()
	f.Out, f.JSON = filepath.Join(dir, "m.krr"), filepath.Join(dir, "r.json")
	err = a.writeResults(t.Context(), f, &fitted{sol: sol})
	testkit.Fails(t, err, "model: not saved")
	testkit.Contains(t, out.String(), "converged", "wrote        "+f.JSON)
	if strings.Contains(out.String(), f.Out) {
		t.Errorf("said to be written: %s in\n%s", f.Out, &out)
	}
	if _, err := os.Stat(f.JSON); err != nil {
		t.Error(err)
	}
}
