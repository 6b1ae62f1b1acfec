package pcg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestCancel checks that a canceled solve returns the iterate at that time with the status Canceled, and that nothing
// claims convergence afterwards.
func TestCancel(t *testing.T) {
	const n = 60
	a := spd(20, geometric(n, 1e5))
	b := gaussianMatrix(21, n, 3)
	for _, run := range solvers {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		opts := &pcg.Options{Tol: 1e-10, Monitor: func(it *pcg.Iteration) error {
			if it.Index == 7 {
				cancel()
			}
			return nil
		}}
		res, err := run(ctx, dense{a}, nil, b, opts)
		if !errors.Is(err, context.Canceled) || res == nil {
			t.Fatalf("%v, %v, want a result and context.Canceled", res, err)
		}
		if res.Status != pcg.Canceled || res.Iterations != 7 || len(res.History.RelRes) != 8 ||
			!math.IsNaN(res.TrueRelRes[0]) || res.Columns[2].Status != pcg.Canceled {
			t.Errorf("canceled in iteration 7: %v", res)
		}
		if shorter, err := run(t.Context(), dense{a}, nil, b, &pcg.Options{Tol: 1e-10, MaxIter: 7}); err != nil ||
			!mat.Equal(shorter.X, res.X) {
			t.Error("the partial answer is not that after 7 iterations")
		}
		res, err = run(ctx, dense{a}, nil, b, nil)
		if res == nil || !errors.Is(err, context.Canceled) || res.Status != pcg.Canceled ||
			res.Columns[1].Status != pcg.Canceled {
			t.Errorf("canceled before: %v, %v", res, err)
		}
		// A column of zeros is solved, no matter when the others end. The monitor of opts calls the new cancel.
		ctx, cancel = context.WithCancel(context.Background())
		mixed := mat.DenseCopyOf(b)
		mixed.SetCol(0, make([]float64, n))
		res, err = run(ctx, dense{a}, nil, mixed, opts)
		if c := res.Columns; !errors.Is(err, context.Canceled) || c[0].Status != pcg.Converged ||
			c[1].Status != pcg.Canceled {
			t.Errorf("canceled with a column of zeros: %v, %v", err, c)
		}
		// The last product, for the true residual, is canceled: nothing may claim success.
		ctx, cancel = context.WithCancel(context.Background())
		exact := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error { cancel(); return ctx.Err() }}
		res, err = run(ctx, dense{a}, nil, b, &pcg.Options{Exact: exact})
		if !errors.Is(err, context.Canceled) || res.Status != pcg.Canceled || res.Columns[0].Status != pcg.Canceled {
			t.Errorf("canceled at the end: %v, %v", res, err)
		}
	}
}

// TestErrStop checks that ErrStop of the monitor, wrapped or not, ends a solve without an error, and that the result
// has the true residual of the current iterate.
func TestErrStop(t *testing.T) {
	const n = 60
	a, b := spd(20, geometric(n, 1e5)), gaussianMatrix(21, n, 3)
	for _, run := range solvers {
		for _, stop := range []error{pcg.ErrStop, fmt.Errorf("enough: %w", pcg.ErrStop)} {
			res, err := run(t.Context(), dense{a}, nil, b, &pcg.Options{Tol: 1e-10,
				Monitor: func(it *pcg.Iteration) error {
					if it.Index == 7 {
						return stop
					}
					return nil
				}})
			if err != nil || res.Status != pcg.Stopped || res.Iterations != 7 || res.Columns[2].Status != pcg.Stopped {
				t.Fatalf("%v, %v", res, err)
			}
			shorter, err := run(t.Context(), dense{a}, nil, b, &pcg.Options{Tol: 1e-10, MaxIter: 7})
			if err != nil || !mat.Equal(shorter.X, res.X) || !slices.Equal(shorter.TrueRelRes, res.TrueRelRes) {
				t.Errorf("not the answer after 7 iterations: %v, %v; %v", shorter, err, res)
			}
		}
	}
}

// TestSolveErrors checks that an error of a product, of a solve with M or of the monitor, in any iteration, ends the
// solve with that error and the status Failed or Stopped.
func TestSolveErrors(t *testing.T) {
	const n = 60
	a := spd(22, geometric(n, 1e5))
	b := gaussianMatrix(23, n, 2)
	errProduct := errors.New("boom")
	for _, run := range solvers {
		for before := range 4 { // number of calls before the one that fails; the last one is for the true residual
			count := 0
			fail := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error {
				if count++; count > before {
					return errProduct
				}
				return dense{a}.MulTo(ctx, dst, src)
			}}
			opts := &pcg.Options{MaxIter: 3}
			res, err := run(context.Background(), fail, nil, b, opts)
			if !errors.Is(err, errProduct) || res == nil || res.Status != pcg.Failed ||
				res.Columns[0].Status != pcg.Failed ||
				res.Iterations != before {
				t.Errorf("A fails: %v, %v", res, err)
			}
			if before == 3 {
				continue // the third solve with M is the last
			}
			count = 0
			res, err = run(context.Background(), dense{a}, fail, b, opts)
			if !errors.Is(err, errProduct) || res == nil || res.Status != pcg.Failed || res.Iterations != before {
				t.Errorf("M fails: %v, %v", res, err)
			}
		}
		res, err := run(context.Background(), dense{a}, nil, b,
			&pcg.Options{Tol: 1e-10, Monitor: func(it *pcg.Iteration) error {
				if it.Index == 5 {
					return errProduct
				}
				return nil
			}})
		if err != errProduct || res.Status != pcg.Stopped || res.Iterations != 5 ||
			res.Columns[0].Status != pcg.Stopped ||
			!(res.MaxTrueRelRes() > 0) {
			t.Errorf("monitor: %v, %v", res, err)
		}
		if v := residuals(a, res.X, b); math.Abs(v[1]-res.TrueRelRes[1]) > 1e-12 {
			t.Errorf("stopped: residual %v, reported %v", v, res.TrueRelRes)
		}
	}
}

// TestMonitor checks the numbers that the monitor sees, and the lengths of the history.
func TestMonitor(t *testing.T) {
	const n = 90
	a := spd(24, geometric(n, 1e3))
	b := gaussianMatrix(25, n, 4)
	var next, active = 1, 4
	res := solve(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-6, Monitor: func(it *pcg.Iteration) error {
		if it.Index != next || it.ActiveColumns > active || it.MaxRelRes != slices.Max(it.RelRes) ||
			len(it.RelRes) != 4 {
			t.Errorf("iteration %+v after %d", it, next-1)
		}
		next, active = it.Index+1, it.ActiveColumns
		return nil
	}})
	if next != res.Iterations+1 || active != 0 || res.Stats.MulTo.Calls != res.Iterations+1 ||
		res.Stats.SolveTo.Calls != 0 {
		t.Errorf("%d calls, %d active at the end, %+v", next-1, active, res.Stats)
	}
	if len(res.History.RelRes) != res.Iterations+1 || len(res.History.Alpha) != res.Iterations ||
		len(res.History.Beta) != res.Iterations {
		t.Errorf("history of %d, %d, %d rows", len(res.History.RelRes), len(res.History.Alpha), len(res.History.Beta))
	}
}

// TestDeterministic checks that results have the same bits in repeated solves, on any number of threads and when a
// column is multiplied by a power of two. A column of Solve also has the bits of a solve of that column alone.
func TestDeterministic(t *testing.T) {
	const n, k = 1100, 5 // more than two blocks of rows
	a, m := diagonal(geometric(n, 1e4)), diagonal(geometric(n, 10))
	opts := &pcg.Options{Tol: 1e-9}
	for name, solve := range map[string]func(testing.TB, pcg.Operator, pcg.Preconditioner, *mat.Dense,
		*pcg.Options) *pcg.Result{"single": solve, "block": solveBlock} {
		b := gaussianMatrix(36, n, k)
		first := solve(t, a, m, b, opts)
		checkConverged(t, name, mat.NewDiagDense(n, a), b, first)
		for _, threads := range []int{1, 2, 7} {
			before := runtime.GOMAXPROCS(threads)
			again := solve(t, a, m, b, opts)
			runtime.GOMAXPROCS(before)
			if !mat.Equal(first.X, again.X) || again.Iterations != first.Iterations {
				t.Fatalf("%s: another answer with %d threads", name, threads)
			}
		}
		for j := range k {
			if alone := solve(t, a, m, mat.DenseCopyOf(b.Slice(0, n, j, j+1)), opts); name == "single" &&
				!mat.Equal(alone.X, first.X.Slice(0, n, j, j+1)) {
				t.Errorf("column %d differs when solved alone", j)
			}
		}
		for i := range n {
			b.Set(i, 2, math.Ldexp(b.At(i, 2), 300))
		}
		scaled := solve(t, a, m, b, opts)
		for i := range n {
			for j := range k {
				if v := first.X.At(i, j); j == 2 && scaled.X.At(i, j) != math.Ldexp(v, 300) || j != 2 &&
					scaled.X.At(i, j) != v {
					t.Fatalf("%s: the scale of a column changes entry (%d, %d)", name, i, j)
				}
			}
		}
	}
}

// TestSolveMemory checks that Solve allocates 4nk numbers for k columns and the history, and nothing in an iteration.
func TestSolveMemory(t *testing.T) {
	const n, k, others = memoryRows, 40, 50_000 // others: bytes of small allocations
	history := 4 * 61 * k * 8                   // four arrays with a row for the start and for each of 60 iterations
	sums := 4 * 8 * (n/512 + 1) * k             // partial sums of the blocks of rows
	checkMemory(t, pcg.Solve, k, 10, 60, 4*8*n*k+history+sums+others)
}

// memoryRows is the number of rows in checkMemory.
const memoryRows = 4000

// checkMemory solves for k columns of memoryRows rows in few and in many iterations. The many must allocate at most
// limit bytes, and as often as the few. It counts on one thread and without the collector, because each thread takes
// its scratch memory from a pool that the collector empties.
func checkMemory(t *testing.T, solve solver, k, fewIterations, manyIterations, limit int) {
	t.Helper()
	if race.Enabled {
		t.Skip("sync.Pool drops values under the race detector")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(1)
	const n = memoryRows
	a, m, b := diagonal(geometric(n, 1e6)), diagonal(geometric(n, 2)), gaussianMatrix(27, n, k)
	measure := func(iters int) (mallocs, bytes uint64) {
		opts := &pcg.Options{Tol: 1e-14, MaxIter: iters, Monitor: func(*pcg.Iteration) error { return nil }}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		testkit.Must(solve(context.Background(), a, m, b, opts))
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
	}
	measure(1)
	fewMallocs, _ := measure(fewIterations)
	manyMallocs, bytes := measure(manyIterations)
	if manyMallocs > fewMallocs+2 { // the runtime may allocate now and then
		t.Errorf("%d allocations for %d iterations, %d for %d", fewMallocs, fewIterations, manyMallocs, manyIterations)
	}
	if bytes > uint64(limit) {
		t.Errorf("%d bytes allocated, want at most %d", bytes, limit)
	}
}

// TestPanics checks that arguments of the wrong shape and invalid options panic.
func TestPanics(t *testing.T) {
	a := dense{spd(28, geometric(5, 2))}
	b := gaussianMatrix(1, 5, 2)
	testkit.Panics(t, map[string]func(){
		"SolveBlock": func() { pcg.SolveBlock(context.Background(), a, nil, gaussianMatrix(1, 6, 2), nil) },
		"B":          func() { pcg.Solve(context.Background(), a, nil, gaussianMatrix(1, 6, 2), nil) },
		"M":          func() { pcg.Solve(context.Background(), a, make(diagonal, 4), b, nil) },
		"Exact":      func() { pcg.Solve(context.Background(), a, nil, b, &pcg.Options{Exact: make(diagonal, 4)}) },
		"InitX": func() {
			pcg.Solve(context.Background(), a, nil, b, &pcg.Options{InitX: gaussianMatrix(1, 5, 1)})
		},
		"Tol":       func() { pcg.Solve(context.Background(), a, nil, b, &pcg.Options{Tol: -1}) },
		"NaN":       func() { pcg.Solve(context.Background(), a, nil, b, &pcg.Options{Tol: math.NaN()}) },
		"MaxIter":   func() { pcg.Solve(context.Background(), a, nil, b, &pcg.Options{MaxIter: -1}) },
		"LambdaMin": func() { pcg.Solve(context.Background(), a, nil, b, &pcg.Options{LambdaMin: math.Inf(1)}) },
		"ReachableReduction": func() {
			pcg.Solve(context.Background(), a, nil, b, &pcg.Options{ReachableReduction: 1})
		},
		"TolFraction":    func() { pcg.Solve(context.Background(), a, nil, b, &pcg.Options{TolFraction: 1.5}) },
		"IterationBound": func() { pcg.IterationBound(0.5, 0.1) },
		"Ritz":           func() { new(pcg.Result).Ritz(0) },
		"different sizes in MedianByNorm": func() {
			pcg.MedianByNorm(context.Background(), a, []*mat.Dense{b, gaussianMatrix(1, 5, 1)})
		},
		"no candidates in MedianByNorm": func() { pcg.MedianByNorm(context.Background(), a, nil) },
	})
}

// TestStatusText checks that every status can be read from its text, and that other texts are errors.
func TestStatusText(t *testing.T) {
	for want := pcg.Active; want <= pcg.Undecided; want++ {
		var got pcg.Status
		text, err := want.MarshalText()
		if err != nil || got.UnmarshalText(text) != nil || got != want {
			t.Errorf("%v is written %q and read as %v: %v", want, text, got, err)
		}
	}
	testkit.Fails(t, new(pcg.Status).UnmarshalText([]byte("done")), "done")
}

// TestTolFraction checks that the recursive residual is reduced to TolFraction·Tol, and that this avoids a restart when
// A is only an approximation of Options.Exact.
func TestTolFraction(t *testing.T) {
	const n, tol = 200, 1e-3
	a := spd(41, geometric(n, 1e4))
	b := gaussianMatrix(42, n, 1)
	full := solve(t, dense{a}, nil, b, &pcg.Options{Tol: tol})
	half := solve(t, dense{a}, nil, b, &pcg.Options{Tol: tol, TolFraction: 0.5})
	// MaxIter ends this solve before half of the tolerance, but within the tolerance.
	if res := solve(t, dense{a}, nil, b, &pcg.Options{Tol: tol, TolFraction: 0.5,
		MaxIter: full.Iterations}); res.Status != pcg.Converged || res.TrueRelRes[0] > tol {
		t.Errorf("TolFraction ½, as many iterations as for 1: %v", res)
	}
	if full.RelRes[0] <= tol/2 || half.RelRes[0] > tol/2 || half.Iterations <= full.Iterations {
		t.Errorf("TolFraction 1: %v\nTolFraction ½: %v", full, half)
	}
	// Exact products differ by a constant along the residual of full, so that it just misses a tolerance that its
	// recursive residual just meets. The difference of 2 % is much larger than the rounding errors of that residual.
	last := full.RelRes[0]
	tightTol := min(1.02*last, tol)
	shift := mat.NewDense(n, 1, nil)
	shift.Mul(a, full.X)
	shift.Sub(b, shift)
	shift.Scale(1.05*(tightTol-last)/last, shift)
	exactProduct := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error {
		err := dense{a}.MulTo(ctx, dst, src)
		dst.Sub(dst, shift)
		return err
	}}
	if res := solve(t, dense{a}, nil, b, &pcg.Options{Tol: tightTol,
		Exact: exactProduct}); len(res.History.Restarts) == 0 {
		t.Errorf("TolFraction 1, other exact products: %v without a restart", res)
	}
	if res := solve(t, dense{a}, nil, b, &pcg.Options{Tol: tightTol, Exact: exactProduct,
		TolFraction: 0.5}); len(res.History.Restarts) != 0 ||
		res.Status != pcg.Converged {
		t.Errorf("TolFraction ½, other exact products: %v, restarts %v", res, res.History.Restarts)
	}
}

// TestUndoRestart checks a solve with an A that is a third of Options.Exact. A restart doubles the true residual, from
// 2 to 4, and must be undone.
func TestUndoRestart(t *testing.T) {
	b := mat.NewDense(4, 2, []float64{1, 0, 2, 1, -1, 3, 0.5, -2})
	opts := &pcg.Options{Exact: diagonal{3, 3, 3, 3}}
	for name, res := range map[string]*pcg.Result{"pcg": solve(t, diagonal{1, 1, 1, 1}, nil, b, opts),
		"block": solveBlock(t, diagonal{1, 1, 1, 1}, nil, b, opts)} {
		if !mat.EqualApprox(res.X, b, 1e-12) || res.Status != pcg.Inaccurate || len(res.History.Restarts) != 1 {
			t.Errorf("%s: %v after restarts at %v: x = %v", name, res.Status, res.History.Restarts,
				mat.Formatted(res.X))
		}
		for c, rel := range res.TrueRelRes {
			testkit.Near(t, rel, 2, 1e-12, name, c)
		}
	}
}

// TestRightHandSideRange checks that right-hand sides whose squares might underflow or overflow are errors, and that a
// column of zeros is not.
func TestRightHandSideRange(t *testing.T) {
	a := diagonal{1, 2}
	for size, want := range map[float64]string{0: "", 1e-99: "", 1e99: "", 1e-101: "column 1", 1e101: "column 1"} {
		b := mat.NewDense(2, 2, []float64{1, size, 1, size / 2})
		for _, run := range solvers {
			res, err := run(t.Context(), a, nil, b, nil)
			if want != "" {
				testkit.Fails(t, err, want)
			} else if err != nil || res.Status != pcg.Converged {
				t.Errorf("%g: %v, %v", size, res, err)
			}
		}
	}
}
