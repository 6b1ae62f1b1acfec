package compare_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/stage"
)

// randomDiagonal is a Python program for a diagonal M that each process draws anew.
const randomDiagonal = `
import sys, io, numpy as np
i, o = sys.stdin.buffer, sys.stdout.buffer
n = int(i.readline().split()[2])
w = np.random.default_rng().uniform(1, 9, (n, 1))
o.write(b"ready\n"); o.flush()
for line in i:
    np.lib.format.read_magic(i)
    shape, _, _ = np.lib.format.read_array_header_1_0(i)
    r = np.frombuffer(i.read(8 * shape[0] * shape[1])).reshape(shape)
    b = io.BytesIO(); np.lib.format.write_array(b, r * w)
    o.write(b"answer\n" + b.getvalue()); o.flush()`

// TestProcessOnRanks checks that all ranks use the M of the first rank, although their processes have different ones.
func TestProcessOnRanks(t *testing.T) {
	python := testkit.Python(t, "numpy", "python3-numpy")
	results := compareOnTwoRanks(t, krrlab.Config{}, krrlab.CompareOptions{Steps: -1,
		With: stage.Entries{{Text: "process:" + python + " -c '" + randomDiagonal + "'"}}})
	for i, row := range results[0].Rows {
		if row.Status != pcg.Converged || row.FailureReason != "" ||
			!reflect.DeepEqual(row.Residuals, results[1].Rows[i].Residuals) {
			t.Errorf("%.10s: %v after %d iterations of rank 0, %d of rank 1: %s", row.Name, row.Status, *row.Iterations,
				*results[1].Rows[i].Iterations, row.FailureReason)
		}
	}
}

// TestProcess checks that an M computed by NumPy has the same iterations and κ as the same M in Go. The landmarks that
// NumPy drew are the columns in which M−λI and K agree.
func TestProcess(t *testing.T) {
	const rank = 40
	script := testkit.Must(filepath.Abs("../../../experiments/peers/nystrom_process.py"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lab := newLab(krrlab.Config{Precond: krrlab.Process{
		Command: fmt.Sprintf("%s '%s' %d", testkit.Python(t, "numpy", "python3-numpy"), script, rank)}})
	numpyInverse := testkit.Must(lab.M(ctx))
	inverse := mat.NewDense(n, n, nil)
	testkit.OK(t, numpyInverse.SolveTo(ctx, inverse, mat.DenseCopyOf(testkit.AddRidge(mat.NewSymDense(n, nil), 1))))
	var m mat.Dense
	testkit.OK(t, m.Inverse(inverse))
	a := exactMatrix(t, lab)
	var landmarks []int
	for j := range n {
		var difference float64
		for i := range n {
			difference = max(difference, math.Abs(m.At(i, j)-a.At(i, j)))
		}
		if difference < 1e-6 {
			landmarks = append(landmarks, j)
		}
	}
	if len(landmarks) != rank {
		t.Fatalf("%d landmarks, want %d", len(landmarks), rank)
	}
	k := testkit.Must(lab.K(ctx))
	factor := testkit.Must(lowrank.NystromAt(ctx, k, landmarks, nil))
	goInverse := testkit.Must(precond.New(ctx, factor.F, lambda, nil))
	result := testkit.Must(lab.Compare(ctx, krrlab.CompareOptions{Steps: n, Width: 1e-6},
		krrlab.Given{M: numpyInverse, Name: "NumPy"}, krrlab.Given{M: goInverse, Name: "Go"}))
	got, want := result.Rows[1], result.Rows[2]
	if *got.Iterations != *want.Iterations || len(got.FailureReason)+len(want.FailureReason) > 0 ||
		math.Abs(got.Kappa.Lo/want.Kappa.Lo-1) > 1e-5 || math.Abs(got.Kappa.Hi/want.Kappa.Hi-1) > 1e-5 ||
		math.IsInf(got.Kappa.Hi, 1) {
		t.Errorf("NumPy %d iterations, κ %v %s; Go %d, κ %v %s", *got.Iterations, got.Kappa, got.FailureReason,
			*want.Iterations, want.Kappa, want.FailureReason)
	}
}
