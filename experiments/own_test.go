package experiments

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestMeasure checks that equal user-defined cases are run once, that a case that fails does not stop the others, and
// that no file is written.
func TestMeasure(t *testing.T) {
	direct := Case{Data: "synthetic-classes", N: 200, TestN: 100, Kernel: kernel.Spec{Name: "gaussian", Sigma: 0.5},
		Config: krrlab.Config{Lambda: 0.5, Solver: krrlab.Direct, Seed: 1}}
	pcg := direct
	pcg.Solver, pcg.S = krrlab.PCG, 50
	tooManyFeatures := pcg
	tooManyFeatures.S = 300
	dir := t.TempDir()
	got, err := Measure(context.Background(), []Case{pcg, direct, tooManyFeatures, pcg}, &Options{Out: dir})
	if err != nil || len(got) != 4 {
		t.Fatalf("%v, %v, want 4 results", got, err)
	}
	if got[0] != got[3] || !got[0].Converged || got[0].Iterations == 0 || got[1].Iterations != 0 {
		t.Errorf("equal cases must share a result, and one has no iterations: %+v, %+v", got[0], got[1])
	}
	if math.Abs(got[0].Error()-got[1].Error()) > 0.011 {
		t.Errorf("errors %g and %g of one problem", got[0].Error(), got[1].Error())
	}
	if got[2].Status != Failed || !strings.Contains(got[2].Reason, "s = 300") {
		t.Errorf("s > n: %+v", got[2])
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("%d files were written", len(files))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := Measure(ctx, []Case{direct}, nil); !errors.Is(err, context.Canceled) ||
		len(got) != 1 || got[0] != nil {
		t.Errorf("canceled: %v, %v", got, err)
	}
}

// TestFindReport checks that a report is found from a folder below the root, and the errors for missing and malformed
// files.
func TestFindReport(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "a", "b")
	results := filepath.Join(root, resultsDir)
	for _, dir := range []string{below, results} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(below)
	expectError(t, errorOf(FindReport("table9", Laptop)), "table9")
	expectError(t, errorOf(FindReport("table1", Paper)), "krrlab reproduce table1 --scale paper")
	r := madeUpReport(t, "table1", func(*Entry) *Result { return convergedResult(50, 0.02) })
	r.Scale = Paper
	if err := r.Save(filepath.Join(results, r.FileName())); err != nil {
		t.Fatal(err)
	}
	if got, err := FindReport("table1", Paper); err != nil || len(got.Entries) != len(r.Entries) {
		t.Errorf("%v, %v, want the saved report of table1", got, err)
	}
	if err := os.WriteFile(filepath.Join(results, r.FileName()), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	expectError(t, errorOf(FindReport("table1", Paper)), "table1.paper.json")
}
