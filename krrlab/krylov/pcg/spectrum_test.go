package pcg_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestRitz compares the Ritz values with the generalized eigenvalues of (A, M).
func TestRitz(t *testing.T) {
	const n = 60
	a := spd(30, geometric(n, 1e3))
	m := spd(31, geometric(n, 30))
	for _, mMatrix := range []*mat.SymDense{nil, m} {
		exact := eigenvalues(t, a, mMatrix)
		var preconditioner pcg.Preconditioner
		if mMatrix != nil {
			preconditioner = invert(t, mMatrix)
		}
		res := solve(t, dense{a}, preconditioner, gaussianMatrix(32, n, 3), &pcg.Options{Tol: 1e-13, MaxIter: 400})
		kappa := exact[n-1] / exact[0]
		if cond := res.Cond(); cond > kappa*(1+1e-9) || cond < 0.999*kappa {
			t.Errorf("κ = %v, estimated %v", kappa, cond)
		}
		for _, k := range []int{1, 2, 5, 20} {
			shorter := solve(t, dense{a}, preconditioner, gaussianMatrix(32, n, 3), &pcg.Options{Tol: 1e-13,
				MaxIter: k})
			for j := range 3 {
				ritz := shorter.Ritz(j)
				if len(ritz) != k || ritz[0] < exact[0]*(1-1e-9) || ritz[k-1] > exact[n-1]*(1+1e-9) ||
					!slices.IsSorted(ritz) {
					t.Errorf("%d iterations, column %d: Ritz values %v outside [%v, %v]", k, j, ritz, exact[0],
						exact[n-1])
				}
			}
			if cond := shorter.Cond(); cond > kappa*(1+1e-9) {
				t.Errorf("%d iterations: estimate %v above κ = %v", k, cond, kappa)
			}
		}
	}
	// As many distinct eigenvalues as iterations: all of them are found.
	spectrum := make([]float64, n)
	want := []float64{1, 2, 5, 11}
	for i := range spectrum {
		spectrum[i] = want[i%4]
	}
	res := solve(t, dense{spd(33, spectrum)}, nil, gaussianMatrix(34, n, 1), &pcg.Options{Tol: 1e-10})
	if got := res.Ritz(0); !slices.EqualFunc(got, want, func(x, y float64) bool { return math.Abs(x-y) <= 1e-8 }) {
		t.Errorf("Ritz values %v, want %v", got, want)
	}
}

// TestIterationBound checks that after IterationBound(κ, ε) iterations the A-norm of the error is at most ε times the
// initial one. The bound is for this norm and not for the residual.
func TestIterationBound(t *testing.T) {
	const n = 100
	for seed := range uint64(5) {
		for _, kappa := range []float64{1, 3, 30, 1000} {
			for _, eps := range []float64{0.5, 1e-2, 1e-5} {
				a := spd(40+seed, geometric(n, kappa))
				b := gaussianMatrix(50+seed, n, 2)
				x := solveDense(t, a, b)
				res := solve(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-15, MaxIter: pcg.IterationBound(kappa, eps)})
				for j := range 2 {
					var deviation mat.VecDense
					deviation.SubVec(x.ColView(j), res.X.ColView(j))
					errorNorm, initialNorm := aNorm(a, &deviation), aNorm(a, x.ColView(j))
					if errorNorm > eps*initialNorm*(1+1e-9) {
						t.Errorf("κ = %v, ε = %v: error %.3g of %.3g", kappa, eps, errorNorm, initialNorm)
					}
				}
			}
		}
	}
	for _, test := range []struct {
		kappa, eps float64
		want       int
	}{{3, 1e-3, 7}, {3, 0.5, 2}, {100, 1e-3, 39}, {1, 1, 1}} {
		testkit.Equal(t, pcg.IterationBound(test.kappa, test.eps), test.want, test.kappa, test.eps)
	}
}

// float32Products returns an operator that multiplies by A and rounds the products to float32.
func float32Products(a *mat.SymDense) funcOperator {
	return funcOperator{a.SymmetricDim(), func(ctx context.Context, dst, src *mat.Dense) error {
		err := dense{a}.MulTo(ctx, dst, src)
		dst.Apply(func(_, _ int, v float64) float64 { return float64(float32(v)) }, dst)
		return err
	}}
}

// TestRestartReduction checks restarts with an exact matrix that is s times A, so that each restart multiplies the true
// residual by s−1. The column is restarted until it converges if s−1 is at most a half, and otherwise it is not
// restarted again.
func TestRestartReduction(t *testing.T) {
	const n, tol = 60, 1e-8
	a := spd(66, geometric(n, 100))
	b := gaussianMatrix(67, n, 2)
	for _, test := range []struct {
		s           float64
		minRestarts int
		status      pcg.Status
	}{{1.01, 3, pcg.Converged}, {1.4, 19, pcg.Converged}, {1.6, 1, pcg.Inaccurate}} { // 0.01⁴ and 0.4²⁰ ≈ τ
		exact := mat.NewSymDense(n, nil)
		exact.ScaleSym(test.s, a)
		res := solve(t, dense{a}, nil, b, &pcg.Options{Tol: tol, MaxIter: 10000, Exact: dense{exact}})
		restarts := len(res.History.Restarts)
		if restarts < test.minRestarts || res.Status != test.status {
			t.Errorf("s = %g: %v after %d restarts", test.s, res, restarts)
		}
		if test.status == pcg.Converged {
			checkConverged(t, "restarted", exact, b, res)
		} else if want := math.Pow(test.s-1, 2); restarts > 1 || math.Abs(res.TrueRelRes[0]/want-1) > 1e-3 {
			t.Errorf("s = %g: residual %g after %d restarts, want %g after one", test.s, res.TrueRelRes[0], restarts,
				want)
		}
	}
}

// TestMedianByNorm compares MedianByNorm with the definition.
func TestMedianByNorm(t *testing.T) {
	const n, k = 25, 6
	a := spd(70, geometric(n, 1e3))
	for candidates := 1; candidates <= 7; candidates++ {
		xs := make([]*mat.Dense, candidates)
		for i := range xs {
			xs[i] = gaussianMatrix(uint64(80+candidates*10+i), n, k)
			xs[i].Scale(math.Pow(3, float64(i%3)), xs[i])
		}
		x := testkit.Must(pcg.MedianByNorm(context.Background(), dense{a}, xs))
		for c := range k {
			best, smallest := -1, math.Inf(1)
			for i := range xs {
				var distances []float64
				for j := range xs {
					var difference mat.VecDense
					difference.SubVec(xs[i].ColView(c), xs[j].ColView(c))
					distances = append(distances, aNorm(a, &difference))
				}
				slices.Sort(distances)
				if median := distances[candidates/2]; median < smallest*(1-1e-12) {
					best, smallest = i, median
				}
			}
			if !mat.Equal(x.ColView(c), xs[best].ColView(c)) {
				t.Errorf("R = %d, column %d: not candidate %d", candidates, c, best)
			}
		}
	}
}

// TestMedianMajority checks that the choice is within 3ε if a majority of the candidates is within ε, whatever the
// others are, including NaN.
func TestMedianMajority(t *testing.T) {
	const n = 20
	a := spd(71, geometric(n, 1e4))
	for seed := range uint64(50) {
		truth := gaussianMatrix(seed, n, 1)
		var xs []*mat.Dense
		eps := 0.0
		for i := range uint64(7) {
			x := gaussianMatrix(1000+7*seed+i, n, 1)
			if i%2 == seed%2 && i != 0 { // three of the seven
				x.Scale(100, x)
				if i == 5 {
					x.Set(0, 0, math.NaN())
				}
			} else {
				eps = max(eps, aNorm(a, x.ColView(0)))
				x.Add(x, truth)
			}
			xs = append(xs, x)
		}
		x := testkit.Must(pcg.MedianByNorm(context.Background(), dense{a}, xs))
		x.Sub(x, truth)
		if errorNorm := aNorm(a, x.ColView(0)); !(errorNorm <= 3*eps) {
			t.Errorf("seed %d: error %v, ε = %v", seed, errorNorm, eps)
		}
	}
}

func ExampleSolve() {
	a := dense{mat.NewSymDense(3, []float64{4, 1, 0, 1, 3, 1, 0, 1, 2})}
	b := mat.NewDense(3, 2, []float64{6, 9, 10, 7, 8, 5})
	res, err := pcg.Solve(context.Background(), a, nil, b, &pcg.Options{Tol: 1e-12})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v in %d iterations\n%.6f\n", res.Status, res.Iterations, mat.Formatted(res.X))
	fmt.Printf("eigenvalues of A: %.4f\n", res.Ritz(0))
	// Output:
	// converged in 3 iterations
	// ⎡1.000000  2.000000⎤
	// ⎢2.000000  1.000000⎥
	// ⎣3.000000  2.000000⎦
	// eigenvalues of A: [1.2679 3.0000 4.7321]
}
