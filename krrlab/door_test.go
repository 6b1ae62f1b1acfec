package krrlab

import (
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestDoor: a target, a λ, a λ_p or a weight of a size that no problem has is refused in one line, before anything is
// formed.
func TestDoor(t *testing.T) {
	for _, c := range []struct {
		target, weight, lambda, lambdaP float64
		want                            string
	}{
		{1, 1, 1e-99, 1e-99, ""}, {1, 1, 1e99, 1e99, ""}, {1e99, 1, 1, 1, ""}, {1e-99, 1, 1, 1, ""}, {0, 1, 1, 1, ""},
		{1, 1, 1e-101, 1, "λ = 1e-101: want"}, {1, 1, 1e101, 1, "λ = 1e+101: want"}, {1, 1, 0, 1, "λ = 0: want"},
		{1, 1, 1, 1e-320, "λ_p = 1e-320: want"},
		{1e-101, 1, 1, 1, "targets of size 1e-101"}, {1e101, 1, 1, 1, "the target of row 0"},
		{1e60, 1e100, 1, 1, "targets of size 1e+110"},
		{1e60, 1, 1e-60, 1, "want both and y/λ from 1e-100 to 1e100"}, {1e-60, 1, 1e60, 1, "in another unit"},
	} {
		train := regression(kinds(20, 3, 1)["float64"])
		for i := range train.Target {
			train.Target[i] = c.target
		}
		if c.weight != 1 {
			train.Weights = slices.Repeat([]float64{c.weight}, 20)
		}
		_, err := New(train, Config{Kernel: gauss, Lambda: c.lambda, Precond: Nystrom{S: 5, LambdaP: c.lambdaP}})
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestUnitOfTargets: targets times a power of two have the coefficients times it, to the bit, and the same residuals.
func TestUnitOfTargets(t *testing.T) {
	for _, solver := range []Solver{PCG, BlockPCG, CG, Direct} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: solver, Precond: precondFor(solver, Features{S: 30}),
			Tol: 1e-6}
		train := regression(kinds(90, 4, 3)["float64"])
		want := mustSolve(t, train, cfg)
		for _, unit := range []float64{0x1p-300, 0x1p300} {
			scaled := *train
			scaled.Target = slices.Clone(train.Target)
			for i := range scaled.Target {
				scaled.Target[i] *= unit
			}
			got := mustSolve(t, &scaled, cfg)
			var c mat.Dense
			if c.Scale(unit, want.Model.C); !mat.Equal(&c, got.Model.C) ||
				!slices.Equal(got.TrueResiduals, want.TrueResiduals) || !slices.Equal(got.Roundings, want.Roundings) {
				t.Errorf("%v, targets times %g: other coefficients, or residuals %v, want %v", solver, unit,
					got.TrueResiduals, want.TrueResiduals)
			}
		}
	}
}
