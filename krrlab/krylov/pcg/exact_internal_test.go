package pcg

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestExactNotFinite: a column that has converged by its recurrence, and whose true residual is not finite, has broken
// down; and one whose guess is the answer takes no step and no solve.
func TestExactNotFinite(t *testing.T) {
	a := small{mat.NewSymDense(2, []float64{2, 0, 0, 4})}
	nan := small{mat.NewSymDense(2, []float64{2, 0, 0, math.NaN()})}
	b := mat.NewDense(2, 1, []float64{2, 4})
	counted := 0
	for name, solve := range map[string]func(context.Context, Operator, Preconditioner, *mat.Dense, *Options) (*Result,
		error){"Solve": Solve, "SolveBlock": SolveBlock} {
		res, err := solve(t.Context(), a, nil, b, &Options{Exact: nan, Tol: 1e-9})
		if err != nil || res.Columns[0].Status != Breakdown || res.Status != Breakdown ||
			!math.IsNaN(res.Columns[0].Curvature) {
			t.Errorf("%s: %v, %+v, %v", name, res, res.Columns, err)
		}
		m := counting{&counted}
		res, err = solve(t.Context(), a, m, b, &Options{InitX: mat.NewDense(2, 1, []float64{1, 1}), Tol: 1e-9})
		if err != nil || res.Status != Converged || res.Iterations != 0 || counted != 0 {
			t.Errorf("%s of the answer: %v, %d solves, %v", name, res, counted, err)
		}
	}
}

// counting is M = I that counts its uses.
type counting struct{ uses *int }

func (m counting) Dim() int { return 2 }

func (m counting) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	*m.uses++
	dst.Copy(r)
	return nil
}

// small is a positive definite matrix as an operator.
type small struct{ *mat.SymDense }

func (a small) Dim() int { return a.SymmetricDim() }

func (a small) MulTo(_ context.Context, dst, x *mat.Dense) error {
	dst.Mul(a.SymDense, x)
	return nil
}
