package pcg_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestResidualSmoothing checks residual smoothing in Solve and in SolveBlock. The residuals must be those of the
// returned iterates, never increase, and be at most those of conjugate gradients. The error bounds must be at least the
// errors of the smoothed iterates, and may be much larger only where the bounds of conjugate gradients are as well. The
// answer must not depend on the number of threads. The columns end at different times, and the guess is wrong in a few
// rows.
func TestResidualSmoothing(t *testing.T) {
	const n, cols = 40, 3
	for i, cond := range []float64{3, 1e3} {
		a, b := spd(uint64(40+i), geometric(n, cond)), gaussianMatrix(uint64(60+i), n, cols)
		x := solveDense(t, a, b)
		guess := mat.DenseCopyOf(x)
		for r := range 5 {
			guess.SetRow(r, make([]float64, cols))
		}
		guess.SetCol(1, mat.Col(nil, 1, x)) // this column ends at once
		preconditioner := spd(uint64(50+i), geometric(n, 5))
		m, mu := invert(t, preconditioner), eigenvalues(t, a, preconditioner)[0]
		unsmoothed := pcg.Options{Tol: 1e-9, InitX: guess, LambdaMin: mu / 2}
		smoothed := unsmoothed
		smoothed.Smooth = true
		for name, method := range solvers {
			solve := func(o *pcg.Options) *pcg.Result { return testkit.Must(method(t.Context(), dense{a}, m, b, o)) }
			want, got := solve(&unsmoothed), solve(&smoothed)
			if got.Status != pcg.Converged || got.Iterations > want.Iterations {
				t.Errorf("%s, condition %g: %v; without smoothing %v", name, cond, got, want)
			}
			for k := 0; k <= got.Iterations; k += 3 {
				shorter := smoothed
				shorter.MaxIter = max(1, k)
				res := solve(&shorter)
				for j, rel := range got.History.RelRes[k] {
					if rel > unsmoothed.Tol && rel > want.History.RelRes[k][j]*(1+1e-9) ||
						k > 0 && rel > got.History.RelRes[k-1][j] {
						t.Errorf("%s, condition %g, iteration %d, column %d: residual %g, without smoothing %g", name,
							cond, k, j, rel, want.History.RelRes[k][j])
					}
					if k == 0 || rel < 1e-8 {
						continue
					}
					if trueResidual := residuals(a, res.X, b)[j]; math.Abs(trueResidual-rel) > 1e-10 ||
						math.Abs(res.TrueRelRes[j]-trueResidual) > 1e-12 {
						t.Errorf("%s, condition %g, iteration %d, column %d: residual %g, reported %g", name, cond, k,
							j, trueResidual, rel)
					}
					var deviation mat.VecDense
					deviation.SubVec(x.ColView(j), res.X.ColView(j))
					errorNorm := aNorm(a, &deviation) / mat.Norm(b.ColView(j), 2)
					if bound := got.History.ErrorBounds[k][j]; !(bound >= errorNorm*(1-1e-9)) ||
						bound > max(1e3*errorNorm, 1.1*want.History.ErrorBounds[k][j]) {
						t.Errorf("%s, condition %g, iteration %d, column %d: error %g, bound %g", name, cond, k, j,
							errorNorm, bound)
					}
				}
			}
			func() {
				defer accel.SetThreads(accel.Threads())
				accel.SetThreads(3 - min(2, accel.Threads())) // 1 thread instead of several, or 2 instead of 1
				if again := solve(&smoothed); !mat.Equal(again.X, got.X) {
					t.Errorf("%s, condition %g: other bits with another number of threads", name, cond)
				}
			}()
		}
	}
}

// TestSmoothRestarts checks that products with an inaccurate matrix are refined to the tolerance of the exact one,
// and that a monitor sees the smoothed iterate.
func TestSmoothRestarts(t *testing.T) {
	const n = 60
	a, b := spd(1, geometric(n, 1e3)), gaussianMatrix(2, n, 2)
	inaccurate := funcOperator{n, nil}
	inaccurate.call = dense{spd(1, geometric(n, 1e3*(1+1e-4)))}.MulTo
	seen := mat.NewDense(n, 2, nil)
	opts := &pcg.Options{Tol: 1e-8, InitX: gaussianMatrix(3, n, 2), Smooth: true, Exact: dense{a},
		ReachableReduction: 1e-3,
		Monitor: func(it *pcg.Iteration) error {
			it.AnswerTo(seen)
			if it.Restarts > 0 {
				return nil
			}
			for j, v := range residuals(spd(1, geometric(n, 1e3*(1+1e-4))), seen, b) {
				if math.Abs(v-it.RelRes[j]) > 1e-6 {
					t.Errorf("iteration %d, column %d: residual %g, reported %g", it.Index, j, v, it.RelRes[j])
				}
			}
			return nil
		}}
	for name, method := range solvers {
		res := testkit.Must(method(t.Context(), inaccurate, nil, b, opts))
		if v := residuals(a, res.X, b); res.Status != pcg.Converged || max(v[0], v[1]) > 1e-8 ||
			res.History.Restarts == nil {
			t.Errorf("%s: %v: %v", name, res, v)
		}
	}
	saving := *opts
	saving.Checkpoint = func(*pcg.State) error { return nil }
	testkit.Panics(t, map[string]func(){
		"checkpoints": func() { _, _ = pcg.Solve(t.Context(), inaccurate, nil, b, &saving) },
	})
}
