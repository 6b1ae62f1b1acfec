package leaveout

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestThresholds checks that a row has a wrong leave-one-out label if and only if its leverage is below its
// threshold, for one and several columns.
func TestThresholds(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	for _, cols := range []int{1, 2, 4} {
		const n = 100
		y, r := mat.NewDense(n, cols, nil), mat.NewDense(n, cols, nil)
		for i := range n {
			for j := range cols {
				y.Set(i, j, -1)
				r.Set(i, j, random.NormFloat64())
			}
			y.Set(i, random.IntN(cols), 1-2*float64(random.IntN(2)*(1/cols)))
		}
		for i, tau := range thresholds(y, r) {
			for _, p := range []float64{0.05, 0.3, 0.7, 1} { // leverages; the leave-one-out residual is r/p
				f := make([]float64, cols)
				for j := range f {
					f[j] = y.At(i, j) - r.At(i, j)/p
				}
				isWrong := datasets.PredictedClass(f) != datasets.PredictedClass(y.RawRowView(i))
				testkit.Equal(t, isWrong, p < tau, "a wrong label with", cols, "columns, leverage", p, "and threshold",
					tau)
			}
		}
	}
}

// TestToleranceOfSolve checks that each column is solved to the tolerance, relative to the energy bᵀx of the solution,
// for every λ, also for a λ far from those whose residuals were computed.
func TestToleranceOfSolve(t *testing.T) {
	p, k, _ := newPathSolver(t, 150)
	p.lambdas = []float64{100, 10, 1, 0.1, 0.01, 0.001}
	testkit.OK(t, p.solve(t.Context()))
	_, q := p.b.Dims()
	for j, lambda := range p.lambdas {
		x, _, err := p.solutions(t.Context(), j)
		testkit.OK(t, err)
		a, want := testkit.AddRidge(testkit.Symmetric(k), lambda), new(mat.Dense)
		testkit.OK(t, want.Solve(a, p.b))
		for c := range q {
			if bx := mat.Dot(p.b.ColView(c), x.ColView(c)); math.Abs(p.subspace.energy[j*q+c]/bx-1) > 1e-9 {
				t.Errorf("λ = %g, column %d: bᵀx = %g, want %g", lambda, c, p.subspace.energy[j*q+c], bx)
			}
		}
		x.Sub(want, x)
		for c := range q {
			tol := solveTol
			if c >= p.t {
				tol *= probeTolFactor
			}
			squaredError, energy := mat.Inner(x.ColView(c), a, x.ColView(c)), mat.Dot(p.b.ColView(c), want.ColView(c))
			if relError := math.Sqrt(squaredError / energy); !(relError <= tol) {
				t.Errorf("λ = %g, column %d: off by %.2g of the solution, want %.2g at most", lambda, c, relError, tol)
			}
		}
	}
}
