package pcg_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestIndefiniteAtOnce checks that the relative residual is 1 and X = 0 if A is found indefinite in the first step.
func TestIndefiniteAtOnce(t *testing.T) {
	minus := dense{mat.NewSymDense(3, []float64{-1, 0, 0, 0, -1, 0, 0, 0, -1})}
	for _, size := range []float64{1, 3, 1e-99, 1e99} {
		b := mat.NewDense(3, 1, []float64{size, 2 * size, 3 * size})
		for name, solve := range solvers {
			res, err := solve(t.Context(), minus, nil, b, nil)
			if err != nil || res.Status != pcg.Indefinite || res.TrueRelRes[0] != 1 || mat.Norm(res.X, 2) != 0 {
				t.Errorf("%s, %g: %v, %v", name, size, err, res)
			}
		}
	}
}

// TestBlockIndefinite checks that an A or M that is not positive definite is found, that the status names the right
// one, and that NaN is a breakdown.
func TestBlockIndefinite(t *testing.T) {
	const n = 80
	good := spd(24, geometric(n, 1e3))
	swap := mat.NewSymDense(n, nil) // zeros on the diagonal: [0 1; 1 0] in blocks
	for i := 0; i < n; i += 2 {
		swap.SetSym(i, i+1, 1)
	}
	for _, k := range []int{1, 2, 5, 12} {
		b := gaussianMatrix(25, n, k)
		for _, negative := range []float64{-1e-2, -1, -100} {
			spectrum := geometric(n, 1e3)
			spectrum[n/2] = negative
			bad := spd(26, spectrum)
			res := solveBlock(t, dense{bad}, nil, b, &pcg.Options{Tol: 1e-10})
			if column := res.Columns[k-1]; res.Status != pcg.Indefinite || !(column.Value < 0) ||
				!strings.Contains(res.String(), "A is not positive definite") {
				t.Errorf("A, t = %d: %v %+v", k, res, column)
			}
			res = solveBlock(t, dense{good}, funcOperator{n, dense{bad}.MulTo}, b, &pcg.Options{Tol: 1e-10})
			if column := res.Columns[k-1]; res.Status != pcg.IndefinitePreconditioner || !(column.Value < 0) {
				t.Errorf("M, t = %d: %v %+v", k, res, column)
			}
		}
		units := mat.NewDense(n, k, nil) // columns e of the identity: eᵀSe = 0 for the swap, but not in a block of two
		for j := range k {
			units.Set(j, j, 1)
		}
		res := solveBlock(t, dense{swap}, nil, units, nil)
		testkit.Equal(t, res.Status, pcg.Indefinite, k, res)
		res = solveBlock(t, dense{good}, funcOperator{n, dense{swap}.MulTo}, units, nil)
		if res.Status != pcg.IndefinitePreconditioner || res.Iterations != 0 || mat.Norm(res.X, 2) != 0 {
			t.Errorf("swap as M, t = %d: %v", k, res)
		}
		// Semidefinite is not positive definite either.
		zero := make(diagonal, n)
		for i := 1; i < n; i++ {
			zero[i] = 1
		}
		if res = solveBlock(t, zero, nil, units, nil); k == 1 && res.Status != pcg.Indefinite ||
			res.Status == pcg.Converged {
			t.Errorf("semidefinite A, t = %d: %v", k, res)
		}
		nan := funcOperator{n, func(_ context.Context, dst, src *mat.Dense) error {
			dst.Copy(src)
			dst.Set(0, k-1, math.NaN())
			return nil
		}}
		if res = solveBlock(t, nan, nil, b, nil); res.Status != pcg.Breakdown {
			t.Errorf("A gives NaN, t = %d: %v", k, res)
		}
		if res = solveBlock(t, dense{good}, nan, b, nil); res.Status != pcg.Breakdown {
			t.Errorf("M gives NaN, t = %d: %v", k, res)
		}
	}
}

// TestInaccurateProducts checks that products that are too inaccurate end with the status Inaccurate although the
// recursive residual converges, and that exact products for true residuals correct the answer.
func TestInaccurateProducts(t *testing.T) {
	const n = 100
	a := spd(27, geometric(n, 1e4))
	for i, solve := range append(slices.Repeat([]func(testing.TB, pcg.Operator, pcg.Preconditioner, *mat.Dense,
		*pcg.Options) *pcg.Result{solveBlock}, 3), solve) {
		k := []int{1, 3, 10, 3}[i]
		b := gaussianMatrix(28, n, k)
		res := solve(t, float32Products(a), nil, b, &pcg.Options{Tol: 1e-12, MaxIter: 10000})
		if res.Status != pcg.Inaccurate || !(res.MaxTrueRelRes() > 1e-12) {
			t.Errorf("t = %d: %v", k, res)
		}
		for j, c := range res.Columns {
			if (c.Status == pcg.Converged) != (res.TrueRelRes[j] <= 1e-12) {
				t.Errorf("column %d: %v with residual %v", j, c.Status, res.TrueRelRes[j])
			}
		}
		for _, tol := range []float64{1e-4, 1e-7, 1e-11} {
			res = solve(t, float32Products(a), nil, b, &pcg.Options{Tol: tol, MaxIter: 10000, Exact: dense{a}})
			checkConverged(t, fmt.Sprintf("refined, t = %d, τ = %g", k, tol), a, b, res)
			if tol < 1e-5 && (len(res.History.Restarts) == 0 || res.Stats.Exact.Calls != len(res.History.Restarts)+1) {
				t.Errorf("restarts %v, %+v", res.History.Restarts, res.Stats)
			}
		}
		different := dense{spd(29, geometric(n, 10))} // not an approximation of A, so nothing can converge
		res = solve(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-6, MaxIter: 10000, Exact: different})
		if res.Status != pcg.Inaccurate || slices.Max(residuals(different, res.X, b)) < 1e-3 {
			t.Errorf("another matrix, t = %d: %v", k, res)
		}
	}
}

// TestBlockGuess checks solves from the solution itself, from a guess near it, and from a guess that is so far away
// that the step to the solution leaves only rounding errors.
func TestBlockGuess(t *testing.T) {
	const n, k = 70, 4
	a := spd(30, geometric(n, 100))
	b := gaussianMatrix(31, n, k)
	x := solveDense(t, a, b)
	guess := mat.DenseCopyOf(x)
	guess.Set(5, 2, 1)
	before := mat.DenseCopyOf(guess)
	res := solveBlock(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-8, InitX: guess})
	checkConverged(t, "guess", a, b, res)
	if !mat.Equal(guess, before) || res.Columns[0].Iterations != 0 || res.Columns[2].Iterations == 0 {
		t.Errorf("%v %+v", res, res.Columns)
	}
	distant := gaussianMatrix(32, n, k)
	distant.Scale(1e16, distant)
	res = solveBlock(t, dense{a}, invert(t, a), b, &pcg.Options{Tol: 1e-8, InitX: distant})
	checkConverged(t, "far", a, b, res)
	if len(res.History.Restarts) == 0 || res.Iterations > 6 {
		t.Errorf("far: %v, restarts %v", res, res.History.Restarts)
	}
}

// TestUnreachableTolerance checks that a solve with an unreachable tolerance ends, and that slow convergence is not
// reported as stagnation.
func TestUnreachableTolerance(t *testing.T) {
	for _, k := range []int{1, 2, 20} {
		res := solveBlock(t, dense{spd(33, geometric(50, 100))}, nil, gaussianMatrix(34, 50, k),
			&pcg.Options{Tol: 1e-30, MaxIter: 100_000})
		if res.Status != pcg.Stagnated && res.Status != pcg.Inaccurate || res.Iterations > 1000 ||
			!(res.MaxTrueRelRes() < 1e-12) {
			t.Errorf("τ = 1e-30, t = %d: %v", k, res)
		}
	}
	if res := solve(t, dense{spd(61, geometric(50, 100))}, nil, gaussianMatrix(62, 50, 2),
		&pcg.Options{Tol: 1e-30, MaxIter: 100_000}); res.Status != pcg.Stagnated || res.Iterations > 2000 {
		t.Errorf("τ = 1e-30: %v", res)
	}
	slow := diagonal(geometric(300, 1e10))
	for maxIter, method := range map[int]solver{100_000: pcg.Solve, 3000: pcg.SolveBlock} {
		res, err := method(t.Context(), slow, nil, gaussianMatrix(35, 300, 3), &pcg.Options{MaxIter: 200})
		if err != nil || res.Status != pcg.MaxIterations || res.Iterations != 200 {
			t.Errorf("slow: %v, %v", res, err)
		}
		res, err = method(t.Context(), slow, nil, gaussianMatrix(35, 300, 12), &pcg.Options{MaxIter: maxIter})
		if err != nil || res.Status != pcg.Converged {
			t.Errorf("slow, to the end: %v, %v", res, err)
		}
	}
	if res := solveBlock(t, slow, nil, mat.NewDense(300, 2, nil), nil); res.Status != pcg.Converged ||
		res.Iterations != 0 || mat.Norm(res.X, 2) != 0 {
		t.Errorf("B = 0: %v", res)
	}
}

// TestBlockMemory checks that SolveBlock allocates 4nt numbers, and nothing per iteration.
func TestBlockMemory(t *testing.T) {
	const n, k = memoryRows, 24
	small := 26*k*8 + 12*k*k*8 + 8*512*k
	checkMemory(t, pcg.SolveBlock, k, 5, 25, 4*8*n*k+small+50_000)
}

// TestBlockFlops checks the flops of an iteration for n = 1000 and t = 10, with and without a preconditioner.
func TestBlockFlops(t *testing.T) {
	testkit.Equal(t, pcg.BlockFlops(1000, 10, true), 16*1000*100)
	testkit.Equal(t, pcg.BlockFlops(1000, 10, false), 14*1000*100)
}

// BenchmarkSolveBlock reports the time of an iteration relative to its products and solves, which are diagonal here,
// and the rate of its own work.
func BenchmarkSolveBlock(b *testing.B) {
	const n = 60000
	a, m := diagonal(geometric(n, 1e6)), diagonal(geometric(n, 2))
	for _, k := range []int{1, 10, 40} {
		rhs := gaussianMatrix(1, n, k)
		for name, solve := range solvers {
			b.Run(fmt.Sprintf("%s/%d", name, k), func(b *testing.B) {
				for range b.N {
					res := testkit.Must(solve(context.Background(), a, m, rhs, &pcg.Options{Tol: 1e-14, MaxIter: 10}))
					seconds := (res.Stats.Seconds - res.Stats.MulTo.Seconds - res.Stats.SolveTo.Seconds) / 10
					b.ReportMetric(res.Stats.Seconds/(res.Stats.MulTo.Seconds+res.Stats.SolveTo.Seconds), "x-floor")
					b.ReportMetric(seconds*1e3, "ms/iteration")
					b.ReportMetric(pcg.BlockFlops(n, k, true)/(1e9*seconds), "Gflop/s")
				}
			})
		}
	}
}

func ExampleSolveBlock() {
	// The third right-hand side is the difference of the others. The block has two directions, so two iterations
	// search all four dimensions.
	a := dense{mat.NewSymDense(4, []float64{4, 1, 0, 0, 1, 3, 1, 0, 0, 1, 2, 1, 0, 0, 1, 5})}
	b := mat.NewDense(4, 3, []float64{6, 9, -3, 10, 7, 3, 12, 6, 6, 23, 7, 16})
	for _, solve := range []solver{
		pcg.Solve, pcg.SolveBlock,
	} {
		res, err := solve(context.Background(), a, nil, b, &pcg.Options{Tol: 1e-12})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v in %d iterations\n", res.Status, res.Iterations)
	}
	// Output:
	// converged in 4 iterations
	// converged in 2 iterations
}
