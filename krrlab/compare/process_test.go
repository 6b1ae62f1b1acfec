package compare_test

import (
	"context"
	"math"
	"os/exec"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/precond"
)

// TestProcess: M of NumPy has the iterations and the κ that the same M has in Go. The landmarks that NumPy draws are the
// columns in which M−λI and K agree.
func TestProcess(t *testing.T) {
	const rank = 40
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("no NumPy of " + python)
	}
	script, err := filepath.Abs("../../experiments/peers/nystrom_process.py")
	testkit.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lab := problem(t, krrlab.Config{})
	theirs, err := krrlab.Process{Command: python + " '" + script + "' 40"}.Make(ctx, lab)
	testkit.OK(t, err)
	unit, inverse := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
	for i := range n {
		unit.Set(i, i, 1)
	}
	testkit.OK(t, theirs.SolveTo(ctx, inverse, unit))
	var m mat.Dense
	testkit.OK(t, m.Inverse(inverse))
	a := dense(t, lab)
	var landmarks []int
	for j := range n {
		var off float64
		for i := range n {
			off = max(off, math.Abs(m.At(i, j)-a.At(i, j)))
		}
		if off < 1e-6 {
			landmarks = append(landmarks, j)
		}
	}
	if len(landmarks) != rank {
		t.Fatalf("%d landmarks, want %d", len(landmarks), rank)
	}
	k, err := lab.K(ctx)
	testkit.OK(t, err)
	f, err := lowrank.NystromAt(ctx, k, landmarks, nil)
	testkit.OK(t, err)
	ours, err := precond.New(ctx, f.F, lambda, nil)
	testkit.OK(t, err)
	r, err := lab.Compare(ctx, krrlab.CompareOptions{Steps: n, Width: 1e-6}, krrlab.Given{M: theirs, Name: "NumPy"},
		krrlab.Given{M: ours, Name: "Go"})
	testkit.OK(t, err)
	x, y := r.Rows[1], r.Rows[2]
	if x.Iterations != y.Iterations || len(x.Why)+len(y.Why) > 0 || math.Abs(x.Kappa.Lo/y.Kappa.Lo-1) > 1e-5 ||
		math.Abs(x.Kappa.Hi/y.Kappa.Hi-1) > 1e-5 || math.IsInf(x.Kappa.Hi, 1) {
		t.Errorf("NumPy %d iterations, κ %v %s; Go %d, κ %v %s", x.Iterations, x.Kappa, x.Why, y.Iterations, y.Kappa, y.Why)
	}
}
