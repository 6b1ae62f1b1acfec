package krrlab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// goldenRows is the number of points of the golden problem.
const goldenRows = 40

// goldenLab returns the lab whose checkpoint is in internal/checkpoint/testdata. Its data are numbers that have the
// same bits on every machine.
func goldenLab(t *testing.T, dir string, note func(string)) *Lab {
	t.Helper()
	const n = goldenRows
	train := &datasets.Dataset{Name: "golden", Task: datasets.Regression, X: points.NewDense(n, 2, nil),
		Target: make([]float64, n)}
	for i := range n {
		row := train.X.(*points.Dense).Row(i)
		row[0], row[1], train.Target[i] = float64(i*i%37)/16, float64(i*11%29)/16, float64(i%5)-1.75
	}
	lab := newLab(t, train, Config{
		Kernel: gauss, Lambda: 1.0 / 64, Precond: Features{S: 8}, Solver: PCG, Tol: 1e-4,
		Storage: gram.Fixed16, Seed: 3,
		Checkpoint: &Checkpoint{Dir: dir, EveryIter: 1, Resume: true, Note: note},
	})
	lab.policy.ExactWork = -1 // forces a refinement of the answer
	return lab
}

// TestResumeOldCheckpoint resumes from a checkpoint that version 0.3.0 wrote while it refined an answer, with the
// number of the present format and the fingerprint of the present configuration. All parts of the file must be read and
// the answer must agree with that of an uninterrupted solve. A lab with another tolerance must refuse the file. The
// file changes only if the format or the fingerprint is changed on purpose.
func TestResumeOldCheckpoint(t *testing.T) {
	state := testkit.Must(os.ReadFile("internal/checkpoint/testdata/checkpoint-00000017.krrc"))
	dir := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "checkpoint-00000017.krrc"), state, 0o644))
	var notes []string
	lab := goldenLab(t, dir, func(note string) { notes = append(notes, note) })
	sol := solveLab(t, lab)
	if joined := strings.Join(notes, "; "); !strings.Contains(joined, "resuming") ||
		strings.Contains(joined, "refused") {
		t.Errorf("want a note that the run resumes, and none of a refused checkpoint: %s", joined)
	}
	want := solveLab(t, goldenLab(t, t.TempDir(), nil))
	var difference mat.Dense
	if difference.Sub(sol.Model.C, want.Model.C); !sol.Converged() ||
		!(mat.Norm(&difference, 2) <= 1e-2*mat.Norm(want.Model.C, 2)) || sol.Iterations <= 19 {
		t.Errorf("%v after %d iterations, want more than 19; the coefficients of norm %g differ by %g", sol.Status,
			sol.Iterations, mat.Norm(want.Model.C, 2), mat.Norm(&difference, 2))
	}
	if history := sol.History; len(history) <= sol.Iterations || history[0].Residual != 1 ||
		history[16].Iteration != 16 ||
		history[16].Residual != history[16].Columns[0] || !(history[16].Residual <= 1e-4 && history[16].Bound > 0 &&
		history[16].Bound < 1) {
		t.Errorf("the history is %+v", history)
	}
	otherLab := testkit.Must(lab.With(func(c *Config) { c.Tol = 1e-5 }))
	testkit.Fails(t, testkit.ErrOf(otherLab.Solve(t.Context())), "of other data or another configuration")
}
