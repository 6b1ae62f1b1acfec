package krrlab

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
)

// TestCenter: a centered fit has the coefficients of a fit to y less its mean and predicts that plus the mean, so
// that a constant added to the answers is added to what is predicted, and its residual is that of the centered
// problem; its bounds hold the exact solution of that.
func TestCenter(t *testing.T) {
	all := datasets.SyntheticRegression(360, 3, 0.1, 5)
	const by = 1000
	for i := range all.Target {
		all.Target[i] += by
	}
	train, test := all.Slice(0, 300), all.Slice(300, 360)
	centered := train.Center()
	mean := centered.Mean[0]
	less := *train
	less.Target = slices.Clone(train.Target)
	for i := range less.Target {
		less.Target[i] -= mean
	}
	if train.Mean != nil || math.Abs(mean-by) > 10 || centered.Fingerprint() == train.Fingerprint() {
		t.Fatalf("means %v, %v", train.Mean, centered.Mean)
	}
	k := kernel.Gaussian{Sigma: 1.5}
	exact := mustSolve(t, centered, Config{Kernel: k, Lambda: 0.1, Solver: Direct, Tol: 1e-12})
	for _, cfg := range []Config{{Solver: Direct}, {Solver: CG, Tol: 1e-6},
		{Solver: PCG, Precond: Nystrom{S: 40}, Tol: 1e-6, Stop: bound.Stop{Rule: bound.ANorm}}} {
		cfg.Kernel, cfg.Lambda = k, 0.1
		got, want := mustSolve(t, centered, cfg), mustSolve(t, &less, cfg)
		if !mat.Equal(got.Model.C, want.Model.C) || got.TrueResidual != want.TrueResidual {
			t.Errorf("%v: not the coefficients of y less its mean", got.Solver)
		}
		o := &model.Options{Float64: true}
		f := testkit.Must(got.Model.Predict(t.Context(), test, o))
		e := testkit.Must(exact.Model.Predict(t.Context(), test, o))
		bounds := testkit.Must(got.Model.Bounds(test))
		for i, v := range f.Value {
			if off := math.Abs(v - e.Value[i]); off > bounds.At(i, 0)+1e-8 || math.Abs(v-by) > 10 {
				t.Errorf("%v: row %d is predicted %g, by the exact solution %g, bound %g", got.Solver, i, v, e.Value[i],
					bounds.At(i, 0))
			}
		}
		v, err := Verify(t.Context(), got.Model, VerifyOptions{Train: train, Test: test})
		if err != nil || v.Mean[0] != mean ||
			math.Abs(float64(v.Residual)-float64(got.TrueResidual)) > float64(v.Rounding+got.Rounding) ||
			math.Abs(float64(v.TestError)-f.Score(test).RMSE) > 1e-9 {
			t.Errorf("%v: verify: %v, %v", got.Solver, v, err)
		}
	}
	constant := *train
	constant.Target = slices.Repeat([]float64{0.1}, train.Len())
	testkit.Equal(t, constant.Center().Mean[0], 0.1)
	sol := mustSolve(t, constant.Center(), Config{Kernel: k, Lambda: 0.1})
	if f, err := sol.Model.Predict(t.Context(), test, nil); err != nil || f.Value[7] != 0.1 {
		t.Errorf("a constant is predicted %v, %v", f, err)
	}
	if c := datasets.SyntheticClasses(20, 3, 2, 0, 1); c.Center() != c {
		t.Error("classes are centered")
	}
}
