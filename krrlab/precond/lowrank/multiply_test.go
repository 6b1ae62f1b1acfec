package lowrank_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestMulRight compares F·T with the float64 product rounded once. The traces must be those of K−K̂, K−K̂ must stay
// positive semidefinite up to Rounding, and ranks must have the bits of one process.
func TestMulRight(t *testing.T) {
	const n, rank = 600, 30
	k := gaussianMatrix(7, n, 3, 2)
	draws := testkit.RandomMatrix(4, rank, rank)
	var qr mat.QR
	qr.Factorize(draws)
	var transform mat.Dense
	qr.QTo(&transform)
	for j := range rank { // the factor keeps ‖T‖₂ ≤ 1 in spite of rounding
		for i := range rank {
			transform.Set(i, j, transform.At(i, j)*math.Sqrt(1-float64(j)/rank)*(1-1e-12))
		}
	}
	newFactor := func(c comm.Comm) *lowrank.Factor {
		f, err := lowrank.RPCholesky(ctx, &denseSource{SymDense: k.SymDense}, rank, rng.New(5),
			&lowrank.Options{Comm: c})
		if err == nil {
			return f
		}
		t.Error(err)
		return nil
	}
	oneProcess := newFactor(nil)
	var want mat.Dense
	want.Mul(inFloat64(oneProcess.F), &transform)
	testkit.OK(t, oneProcess.MulRight(ctx, comm.Alone(), transform.RawMatrix().Data))
	for i := range n {
		for j, v := range oneProcess.F.Row(i) {
			if exact := want.At(i, j); math.Abs(float64(v)-exact) > 0x1p-24*math.Abs(exact)+1e-14 {
				t.Fatalf("F·T is %v at (%d, %d), want %v", v, i, j, exact)
			}
		}
	}
	residual := residualOf(k, oneProcess)
	if deviation := math.Abs(oneProcess.Residual - mat.Trace(residual)); deviation > 1e-12*n {
		t.Errorf("tr(K−K̂) = %v, want %v", oneProcess.Residual, mat.Trace(residual))
	}
	if smallest := floats.Min(testkit.Eigenvalues(t, residual)); smallest < -oneProcess.Rounding ||
		oneProcess.Rounding > 1e-5*oneProcess.Trace {
		t.Errorf("least eigenvalue of K−K̂ is %g, rounding %g", smallest, oneProcess.Rounding)
	}
	comm.RunLocal(3, func(c comm.Comm) {
		f := newFactor(c)
		lo, hi := comm.RowRange(n, precond.RankRows, c.Rank(), 3)
		if err := f.MulRight(ctx, c, transform.RawMatrix().Data); err != nil || f.Residual != oneProcess.Residual ||
			f.Rounding != oneProcess.Rounding || !slices.Equal(f.F.Data, oneProcess.F.Data[lo*rank:hi*rank]) {
			t.Errorf("rank %d: %v, %v, want %v", c.Rank(), err, f, oneProcess)
		}
	})
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		return newFactor(nil).MulRight(ctx, comm.Alone(), transform.RawMatrix().Data)
	})
}
