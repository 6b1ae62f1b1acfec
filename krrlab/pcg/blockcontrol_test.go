package pcg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
)

func TestBlockCancel(t *testing.T) {
	const n = 60
	a := spd(20, geometric(n, 1e5))
	b := random(21, n, 3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res, err := pcg.SolveBlock(ctx, dense{a}, nil, b, &pcg.Options{Tol: 1e-10, Monitor: func(it *pcg.Iteration) error {
		if it.Index == 7 {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || res == nil {
		t.Fatalf("%v, %v", res, err)
	}
	if res.Status != pcg.Canceled || res.Iterations != 7 || len(res.History.RelRes) != 8 || !math.IsNaN(res.TrueRelRes[0]) || res.Columns[2].Status != pcg.Canceled {
		t.Errorf("%v", res)
	}
	part := solveBlock(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-10, MaxIter: 7})
	if !mat.Equal(part.X, res.X) {
		t.Error("the partial answer is not that after 7 iterations")
	}
	res, err = pcg.SolveBlock(ctx, dense{a}, nil, b, nil)
	if res == nil || !errors.Is(err, context.Canceled) || res.Status != pcg.Canceled {
		t.Errorf("canceled before: %v, %v", res, err)
	}
}

func TestBlockErrors(t *testing.T) {
	const n = 60
	a := spd(22, geometric(n, 1e5))
	b := random(23, n, 2)
	boom := errors.New("boom")
	for calls := range 4 { // the call that fails; the last one is for the true residual
		count := 0
		fail := fn{n, func(ctx context.Context, dst, src *mat.Dense) error {
			if count++; count > calls {
				return boom
			}
			return dense{a}.MulTo(ctx, dst, src)
		}}
		o := &pcg.Options{MaxIter: 3}
		res, err := pcg.SolveBlock(context.Background(), fail, nil, b, o)
		if !errors.Is(err, boom) || res == nil || res.Status != pcg.Failed || res.Iterations != calls {
			t.Errorf("A fails: %v, %v", res, err)
		}
		if calls == 3 {
			continue // the third solve with M is the last
		}
		count = 0
		res, err = pcg.SolveBlock(context.Background(), dense{a}, fail, b, o)
		if !errors.Is(err, boom) || res == nil || res.Status != pcg.Failed || res.Iterations != calls {
			t.Errorf("M fails: %v, %v", res, err)
		}
	}
	res, err := pcg.SolveBlock(context.Background(), dense{a}, nil, b, &pcg.Options{Tol: 1e-10, Monitor: func(it *pcg.Iteration) error {
		if it.Index == 5 {
			return boom
		}
		return nil
	}})
	if err != boom || res.Status != pcg.Stopped || res.Iterations != 5 || res.Columns[0].Status != pcg.Stopped || !(res.MaxTrueRelRes() > 0) {
		t.Errorf("monitor: %v, %v", res, err)
	}
	if v := residuals(a, res.X, b); math.Abs(v[1]-res.TrueRelRes[1]) > 1e-12 {
		t.Errorf("stopped: residual %v, reported %v", v, res.TrueRelRes)
	}
	b.Set(3, 1, math.NaN())
	if res, err := pcg.SolveBlock(context.Background(), dense{a}, nil, b, nil); err == nil || res != nil {
		t.Errorf("NaN: %v, %v", res, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for shapes that do not fit")
		}
	}()
	pcg.SolveBlock(context.Background(), dense{a}, nil, random(1, n+1, 2), nil)
}

// TestIndefiniteAtOnce: an answer of 0, as of A that is not positive definite in the first step, has the residual 1.
func TestIndefiniteAtOnce(t *testing.T) {
	minus := dense{mat.NewSymDense(3, []float64{-1, 0, 0, 0, -1, 0, 0, 0, -1})}
	for _, size := range []float64{1, 3, 1e-200, 1e200} {
		b := mat.NewDense(3, 1, []float64{size, 2 * size, 3 * size})
		for name, solve := range map[string]solver{"single": pcg.Solve, "block": pcg.SolveBlock} {
			res, err := solve(t.Context(), minus, nil, b, nil)
			if err != nil || res.Status != pcg.Indefinite || res.TrueRelRes[0] != 1 || mat.Norm(res.X, 2) != 0 {
				t.Errorf("%s, %g: %v, %v", name, size, err, res)
			}
		}
	}
}

// TestBlockIndefinite: A and M that are not positive definite are named, and nothing
// else is.
func TestBlockIndefinite(t *testing.T) {
	const n = 80
	good := spd(24, geometric(n, 1e3))
	swap := mat.NewSymDense(n, nil) // zeros on the diagonal: [0 1; 1 0] in blocks
	for i := 0; i < n; i += 2 {
		swap.SetSym(i, i+1, 1)
	}
	for _, k := range []int{1, 2, 5, 12} {
		b := random(25, n, k)
		for _, low := range []float64{-1e-2, -1, -100} {
			spectrum := geometric(n, 1e3)
			spectrum[n/2] = low
			bad := spd(26, spectrum)
			res := solveBlock(t, dense{bad}, nil, b, &pcg.Options{Tol: 1e-10})
			if c := res.Columns[k-1]; res.Status != pcg.Indefinite || !(c.Curvature < 0) || !strings.Contains(res.String(), "A is not positive definite") {
				t.Errorf("A, t = %d: %v %+v", k, res, c)
			}
			res = solveBlock(t, dense{good}, dense2{bad}, b, &pcg.Options{Tol: 1e-10})
			if c := res.Columns[k-1]; res.Status != pcg.IndefinitePreconditioner || !(c.Curvature < 0) {
				t.Errorf("M, t = %d: %v %+v", k, res, c)
			}
		}
		e := mat.NewDense(n, k, nil) // eᵀSe = 0 for the swap, but not in a block of two
		for j := range k {
			e.Set(j, j, 1)
		}
		res := solveBlock(t, dense{swap}, nil, e, nil)
		if res.Status != pcg.Indefinite {
			t.Errorf("swap as A, t = %d: %v", k, res)
		}
		res = solveBlock(t, dense{good}, dense2{swap}, e, nil)
		if res.Status != pcg.IndefinitePreconditioner || res.Iterations != 0 || mat.Norm(res.X, 2) != 0 {
			t.Errorf("swap as M, t = %d: %v", k, res)
		}
		// Semidefinite is not positive definite either.
		zero := make(diagonal, n)
		for i := 1; i < n; i++ {
			zero[i] = 1
		}
		if res = solveBlock(t, zero, nil, e, nil); k == 1 && res.Status != pcg.Indefinite || res.Status == pcg.Converged {
			t.Errorf("semidefinite A, t = %d: %v", k, res)
		}
		nan := fn{n, func(_ context.Context, dst, src *mat.Dense) error {
			dst.Copy(src)
			dst.Set(0, k-1, math.NaN())
			return nil
		}}
		if res = solveBlock(t, nan, nil, b, nil); res.Status != pcg.Breakdown {
			t.Errorf("A gives NaN, t = %d: %v", k, res)
		}
		tiny := make(diagonal, n) // the solution overflows
		for i := range tiny {
			tiny[i] = 1e-310
		}
		if res = solveBlock(t, tiny, nil, b, nil); res.Status != pcg.Breakdown || !(math.IsNaN(res.Columns[0].Curvature) || math.IsInf(res.Columns[0].Curvature, 0)) {
			t.Errorf("overflow, t = %d: %v", k, res)
		}
		if res = solveBlock(t, dense{good}, nan, b, nil); res.Status != pcg.Breakdown {
			t.Errorf("M gives NaN, t = %d: %v", k, res)
		}
	}
}

// dense2 is a preconditioner whose inverse is given.
type dense2 struct{ *mat.SymDense }

func (m dense2) Dim() int { return m.SymmetricDim() }

func (m dense2) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return dense{m.SymDense}.MulTo(ctx, dst, r)
}

// TestBlockInaccurate: the recurrence claims what the products cannot give, and exact
// products beside them refine it.
func TestBlockInaccurate(t *testing.T) {
	const n = 100
	a := spd(27, geometric(n, 1e4))
	for _, k := range []int{1, 3, 10} {
		b := random(28, n, k)
		res := solveBlock(t, rounded(a), nil, b, &pcg.Options{Tol: 1e-12, MaxIter: 10000})
		if res.Status != pcg.Inaccurate || !(res.MaxTrueRelRes() > 1e-12) {
			t.Errorf("t = %d: %v", k, res)
		}
		for _, tol := range []float64{1e-4, 1e-7, 1e-11} {
			res = solveBlock(t, rounded(a), nil, b, &pcg.Options{Tol: tol, MaxIter: 10000, Exact: dense{a}})
			accurate(t, fmt.Sprintf("refined, t = %d, τ = %g", k, tol), a, b, res)
			if tol < 1e-5 && (len(res.History.Restarts) == 0 || res.Stats.Exact.Calls != len(res.History.Restarts)+1) {
				t.Errorf("restarts %v, %+v", res.History.Restarts, res.Stats)
			}
			if c := res.Cond(); c > 1.001e4 || c < 0.9e4 && k > 1 {
				t.Errorf("t = %d: κ = 1e4, estimated %v", k, c)
			}
		}
		other := dense{spd(29, geometric(n, 10))} // another matrix altogether: no claim
		res = solveBlock(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-6, MaxIter: 10000, Exact: other})
		if res.Status != pcg.Inaccurate || slices.Max(residuals(other, res.X, b)) < 1e-3 {
			t.Errorf("another matrix, t = %d: %v", k, res)
		}
	}
}

// TestBlockGuess: an initial guess, a good one, the solution, and one so bad that a
// step to the solution leaves nothing but rounding errors.
func TestBlockGuess(t *testing.T) {
	const n, k = 70, 4
	a := spd(30, geometric(n, 100))
	b := random(31, n, k)
	x := solveDense(t, a, b)
	guess := mat.DenseCopyOf(x)
	guess.Set(5, 2, 1)
	before := mat.DenseCopyOf(guess)
	res := solveBlock(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-8, InitX: guess})
	accurate(t, "guess", a, b, res)
	if !mat.Equal(guess, before) || res.Columns[0].Iterations != 0 || res.Columns[2].Iterations == 0 {
		t.Errorf("%v %+v", res, res.Columns)
	}
	far := random(32, n, k)
	far.Scale(1e16, far)
	res = solveBlock(t, dense{a}, invert(t, a), b, &pcg.Options{Tol: 1e-8, InitX: far})
	accurate(t, "far", a, b, res)
	if len(res.History.Restarts) == 0 || res.Iterations > 6 {
		t.Errorf("far: %v, restarts %v", res, res.History.Restarts)
	}
}

// TestBlockEnds: a hopeless tolerance ends, and a slow solve is not stagnation.
func TestBlockEnds(t *testing.T) {
	for _, k := range []int{1, 2, 20} {
		res := solveBlock(t, dense{spd(33, geometric(50, 100))}, nil, random(34, 50, k), &pcg.Options{Tol: 1e-30, MaxIter: 100_000})
		if res.Status != pcg.Stagnated && res.Status != pcg.Inaccurate || res.Iterations > 1000 || !(res.MaxTrueRelRes() < 1e-12) {
			t.Errorf("τ = 1e-30, t = %d: %v", k, res)
		}
	}
	slow := diagonal(geometric(300, 1e10))
	res := solveBlock(t, slow, nil, random(35, 300, 3), &pcg.Options{MaxIter: 200})
	if res.Status != pcg.MaxIterations || res.Iterations != 200 {
		t.Errorf("slow: %v", res)
	}
	res = solveBlock(t, slow, nil, random(35, 300, 12), &pcg.Options{MaxIter: 3000})
	if res.Status != pcg.Converged {
		t.Errorf("slow, to the end: %v", res)
	}
	if res = solveBlock(t, slow, nil, mat.NewDense(300, 2, nil), nil); res.Status != pcg.Converged || res.Iterations != 0 || mat.Norm(res.X, 2) != 0 {
		t.Errorf("B = 0: %v", res)
	}
}

// TestBlockDeterministic: the same bits each time, on any number of threads, and in any
// scale of the columns.
func TestBlockDeterministic(t *testing.T) {
	const n, k = 1100, 5 // more than two blocks of rows
	a, m := diagonal(geometric(n, 1e4)), diagonal(geometric(n, 10))
	b := random(36, n, k)
	o := &pcg.Options{Tol: 1e-9}
	first := solveBlock(t, a, m, b, o)
	for i := range n {
		for j := range k {
			if e := math.Abs(a[i]*first.X.At(i, j) - b.At(i, j)); e > 1e-9*mat.Norm(b.ColView(j), 2) {
				t.Fatalf("row %d of column %d is off by %v", i, j, e)
			}
		}
	}
	for _, threads := range []int{1, 2, 7} {
		before := runtime.GOMAXPROCS(threads)
		again := solveBlock(t, a, m, b, o)
		runtime.GOMAXPROCS(before)
		if !mat.Equal(first.X, again.X) || again.Iterations != first.Iterations {
			t.Fatalf("another answer with %d threads", threads)
		}
	}
	for i := range n {
		b.Set(i, 2, math.Ldexp(b.At(i, 2), 300))
	}
	scaled := solveBlock(t, a, m, b, o)
	for i := range n {
		for j := range k {
			if v := first.X.At(i, j); j == 2 && scaled.X.At(i, j) != math.Ldexp(v, 300) || j != 2 && scaled.X.At(i, j) != v {
				t.Fatalf("the scale of a column changes entry (%d, %d)", i, j)
			}
		}
	}
}

// TestBlockMemory: 4nt numbers and Cond's, and nothing for an iteration.
func TestBlockMemory(t *testing.T) {
	const n, k = 4000, 24
	small := 26*k*8 + 12*k*k*8 + 8*512*k
	testMemory(t, pcg.SolveBlock, k, 5, 25, 4*8*n*k+8*max(n*k, 1<<18)+small+50_000)
}

func TestBlockFlops(t *testing.T) {
	if v := pcg.BlockFlops(1000, 10, true); v != 16*1000*100 {
		t.Errorf("%v", v)
	}
	if v := pcg.BlockFlops(1000, 10, false); v != 14*1000*100 {
		t.Errorf("%v", v)
	}
}

// BenchmarkSolveBlock measures an iteration over its products and solves, here with diagonal matrices, and its own work.
func BenchmarkSolveBlock(b *testing.B) {
	const n = 60000
	d, m := diagonal(geometric(n, 1e6)), diagonal(geometric(n, 2))
	for _, k := range []int{1, 10, 40} {
		y := random(1, n, k)
		for name, f := range map[string]solver{"Solve": pcg.Solve, "SolveBlock": pcg.SolveBlock} {
			b.Run(fmt.Sprintf("%s/%d", name, k), func(b *testing.B) {
				for range b.N {
					res, err := f(context.Background(), d, m, y, &pcg.Options{Tol: 1e-14, MaxIter: 10})
					if err != nil {
						b.Fatal(err)
					}
					work := (res.Stats.Seconds - res.Stats.MulTo.Seconds - res.Stats.SolveTo.Seconds) / 10
					b.ReportMetric(res.Stats.Seconds/(res.Stats.MulTo.Seconds+res.Stats.SolveTo.Seconds), "x-floor")
					b.ReportMetric(work*1e3, "ms/iteration")
					b.ReportMetric(pcg.BlockFlops(n, k, true)/(1e9*work), "Gflop/s")
				}
			})
		}
	}
}

func ExampleSolveBlock() {
	// Two right-hand sides and their difference: the block has two directions an
	// iteration, and four dimensions are searched in two iterations.
	a := dense{mat.NewSymDense(4, []float64{4, 1, 0, 0, 1, 3, 1, 0, 0, 1, 2, 1, 0, 0, 1, 5})}
	b := mat.NewDense(4, 3, []float64{6, 9, -3, 10, 7, 3, 12, 6, 6, 23, 7, 16})
	for _, f := range []solver{
		pcg.Solve, pcg.SolveBlock,
	} {
		res, err := f(context.Background(), a, nil, b, &pcg.Options{Tol: 1e-12})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v in %d iterations, κ %.4f\n", res.Status, res.Iterations, res.Cond())
	}
	// Output:
	// converged in 4 iterations, κ 4.8743
	// converged in 2 iterations, κ 4.8743
}
