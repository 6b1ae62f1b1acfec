package pcg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// iterateErrors runs a solve and returns ‖x_j−x_jk‖_A/‖y_j‖₂ for every iteration k and column j. The iterates are the
// results of solves that end after k iterations.
func iterateErrors(t *testing.T, solve solver, a *mat.SymDense, op pcg.Operator, m pcg.Preconditioner, b *mat.Dense,
	opts pcg.Options) (*pcg.Result, [][]float64) {
	t.Helper()
	x := solveDense(t, a, b)
	last := testkit.Must(solve(t.Context(), op, m, b, &opts))
	n, cols := b.Dims()
	errorNorms := make([][]float64, last.Iterations+1)
	for k := range errorNorms {
		iterate := mat.NewDense(n, cols, nil)
		if k > 0 {
			shorter := opts
			shorter.MaxIter = k
			iterate = testkit.Must(solve(t.Context(), op, m, b, &shorter)).X
		}
		iterate.Sub(x, iterate)
		for j := range cols {
			deviation := iterate.ColView(j)
			errorNorms[k] = append(errorNorms[k], aNorm(a, deviation)/mat.Norm(b.ColView(j), 2))
		}
	}
	return last, errorNorms
}

// TestErrorBounds checks that the bounds are at least the error of every iterate for lower bounds μ at and below the
// smallest eigenvalue, and that they are close to the error if μ is close to the smallest eigenvalue.
func TestErrorBounds(t *testing.T) {
	const n, cols = 60, 3
	for name, solve := range solvers {
		for i, kappa := range []float64{3, 100, 1e4} {
			a := spd(uint64(40+i), geometric(n, kappa))
			for j, m := range []*mat.SymDense{nil, spd(uint64(50+i), geometric(n, 5))} {
				var preconditioner pcg.Preconditioner
				if m != nil {
					preconditioner = invert(t, m)
				}
				smallest := eigenvalues(t, a, m)[0]
				b := gaussianMatrix(uint64(60+i), n, cols)
				for _, muFraction := range []float64{1 - 1e-10, 0.9, 0.1, 1e-3} {
					opts := pcg.Options{Tol: 1e-6, MaxIter: 25, LambdaMin: muFraction * smallest}
					res, want := iterateErrors(t, solve, a, dense{a}, preconditioner, b, opts)
					label := fmt.Sprintf("%s, κ %g, M %d, share %g", name, kappa, j, muFraction)
					ratio := checkErrorBounds(t, label, res, want, 0)
					if muFraction >= 0.9 && ratio > 20 || muFraction < 1e-2 && ratio < 1.01 {
						t.Errorf("%s: upper bounds up to %.3g times the error", label, ratio)
					}
				}
			}
		}
	}
}

// checkErrorBounds checks the bounds of a result, which may be too small by gap, and returns the largest ratio of an
// upper bound to the error.
func checkErrorBounds(t *testing.T, name string, res *pcg.Result, want [][]float64, gap float64) (ratio float64) {
	t.Helper()
	for j := range want[0] {
		for k, row := range want {
			errorNorm, upper := row[j], res.History.ErrorBounds[k][j]
			slack := 1e-7*want[0][j] + gap // rounding, and columns that have converged stay where they are
			if errorNorm > upper+slack {
				t.Errorf("%s, column %d, iterate %d: error %.4g, bound %.4g", name, j, k, errorNorm, upper)
			}
			if errorNorm > 1e-5*want[0][j] {
				ratio = max(ratio, upper/errorNorm)
			}
		}
	}
	return ratio
}

// TestErrorBoundsRounding checks the bounds for products with relative errors of 10⁻⁷ that are not symmetric. They may
// be too small by at most the gap between the true and the recursive residual.
func TestErrorBoundsRounding(t *testing.T) {
	const n = 40
	a := spd(70, geometric(n, 300))
	b := gaussianMatrix(71, n, 2)
	noisy := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error {
		err := dense{a}.MulTo(ctx, dst, src)
		dst.Apply(func(i, j int, v float64) float64 { return v * (1 + 1e-7*math.Sin(1e9*v+float64(7*i+j))) }, dst)
		return err
	}}
	for name, solve := range solvers {
		opts := pcg.Options{Tol: 1e-12, MaxIter: 250, LambdaMin: 0.5}
		res, want := iterateErrors(t, solve, a, noisy, nil, b, opts)
		last := want[len(want)-1]
		for j, errorNorm := range last {
			upper := res.History.ErrorBounds[res.Iterations][j]
			// Gap is the norm of the difference of the two residuals. The true residual has in addition the error
			// of the product Ax ≈ y, which is 10⁻⁷.
			gap := res.Gap[j] + 1e-7
			if math.Abs(res.TrueRelRes[j]-res.RelRes[j]) > res.Gap[j] || res.Gap[j] > res.TrueRelRes[j]+res.RelRes[j] {
				t.Errorf("%s: residuals %.3g and %.3g, gap %.3g", name, res.TrueRelRes[j], res.RelRes[j], res.Gap[j])
			}
			if errorNorm > upper+gap {
				t.Errorf("%s: error %.3g, bound %.3g and gap %.3g", name, errorNorm, upper, gap)
			}
			if errorNorm < 2*upper {
				t.Errorf("%s: error %.3g, bound %.3g: rounding does not show", name, errorNorm, upper)
			}
		}
		checkErrorBounds(t, name, res, want, 1e-5)
	}
}

// TestErrorBoundsRestart checks that the bounds remain valid after restarts.
func TestErrorBoundsRestart(t *testing.T) {
	exact, rough := exactAndRounded(60)
	b := gaussianMatrix(72, 60, 2)
	smallest := eigenvalues(t, rough, nil)[0]
	res, err := pcg.Solve(t.Context(), dense{rough}, nil, b, &pcg.Options{Tol: 1e-5, Exact: dense{exact},
		LambdaMin: 0.9 * smallest})
	if err != nil || len(res.History.Restarts) == 0 {
		t.Fatalf("%v, %v: want a restart", res, err)
	}
	deviation := solveDense(t, exact, b)
	deviation.Sub(deviation, res.X)
	for j := range 2 {
		upper := res.History.ErrorBounds[res.Iterations][j]
		if got := aNorm(exact, deviation.ColView(j)) / mat.Norm(b.ColView(j), 2); !(got <= 1.1*upper) {
			t.Errorf("column %d: %.4g, at most %.4g", j, got, upper)
		}
	}
}

// TestErrorBoundsOptions checks that bounds change no bit of an answer, that they are nil without LambdaMin and NaN if
// LambdaMin is refuted, and that a monitor can end a solve by them.
func TestErrorBoundsOptions(t *testing.T) {
	const n = 50
	a := spd(73, geometric(n, 1e3))
	b := gaussianMatrix(74, n, 3)
	for name, solve := range solvers {
		run := func(opts pcg.Options) *pcg.Result {
			t.Helper()
			res, err := solve(t.Context(), dense{a}, nil, b, &opts)
			if err != nil && !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
			return res
		}
		bare, bounded := run(pcg.Options{}), run(pcg.Options{LambdaMin: 0.5})
		if !mat.Equal(bare.X, bounded.X) || bare.Iterations != bounded.Iterations || bare.History.ErrorBounds != nil {
			t.Errorf("%s: another answer with bounds", name)
		}
		wrong := run(pcg.Options{LambdaMin: 30, Tol: 1e-8})
		if upper := wrong.History.ErrorBounds[wrong.Iterations][0]; !math.IsNaN(upper) {
			t.Errorf("%s: λ_min above the spectrum is not refuted: %v", name, upper)
		}
		var bounds, decreases []float64
		x := mat.NewDense(n, 3, nil)
		stopped := run(pcg.Options{LambdaMin: 0.5, Tol: 1e-10, Monitor: func(it *pcg.Iteration) error {
			if bounds = append(bounds[:0], it.ErrorBounds...); max(bounds[0], bounds[1], bounds[2]) < 1e-2 {
				decreases = append(decreases, it.TotalDecrease...)
				it.AnswerTo(x)
				return errEnough
			}
			return nil
		}})
		if len(bounds) != 3 || stopped.Status != pcg.Stopped ||
			stopped.Iterations >= run(pcg.Options{Tol: 1e-10}).Iterations {
			t.Errorf("%s: %v after %v", name, stopped, bounds)
		}
		if !mat.EqualApprox(x, stopped.X, 1e-15) {
			t.Errorf("%s: the answer that the monitor sees is another one", name)
		}
		exact := solveDense(t, a, b)
		for j, v := range decreases {
			var deviation mat.VecDense
			deviation.SubVec(exact.ColView(j), x.ColView(j))
			want := (mat.Dot(exact.ColView(j), b.ColView(j)) - mat.Inner(&deviation, a,
				&deviation)) / mat.Dot(b.ColView(j), b.ColView(j))
			if len(decreases) != 3 || math.Abs(v-want) > 1e-9*want {
				t.Errorf("%s, column %d: the error has fallen by %.12g, want ‖x‖_A²−‖e‖_A² = %.12g", name, j, v, want)
			}
		}
	}
}

var errEnough = errors.New("enough")
