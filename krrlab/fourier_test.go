package krrlab

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// TestFourierSolver checks that the Fourier solver has the coefficients of the direct solver, for one and several
// targets, with and without weights. The residual must be certain or checked by rows of K, as the configuration asks,
// and the bound of the error of K must be reported. Configurations that the solver does not support must be refused.
func TestFourierSolver(t *testing.T) {
	n := suite.Scale(300, 1500, 1500)
	for name, train := range map[string]*datasets.Dataset{"two dimensions": datasets.SyntheticRegression(n, 2, 0.1, 1),
		"one dimension": datasets.SyntheticRegression(n, 1, 0.1, 2), "classes": classesInPlane(n)} {
		for _, withWeights := range []bool{false, true} {
			data := *train
			if withWeights {
				data.Weights = make([]float64, n)
				for i := range data.Weights {
					data.Weights[i] = 1 + float64(i%3)
				}
			}
			cfg := Config{Kernel: kernel.Gaussian{Sigma: 0.4}, Lambda: 0.05, Solver: Direct, Storage: gram.Float64,
				Tol: 1e-8}
			want := mustSolve(t, &data, cfg)
			cfg.Solver, cfg.Storage = Fourier, gram.Auto
			for exact, residualText := range map[ResidualPolicy]string{AutoResidual: "certain: ",
				StoredResidual: "rows in float64"} {
				cfg.Exact = exact
				sol := mustSolve(t, &data, cfg)
				if difference := relativeDifference(sol.Model.C, want.Model.C); difference > 1e-6 || !sol.Converged() ||
					!(sol.KernelErrorBound > 0 && float64(sol.KernelErrorBound) < 1e-9) {
					t.Errorf("%s, weights %v: the coefficients differ by %.3g from the direct solver's; %v", name,
						withWeights, difference, sol)
				}
				testkit.Contains(t, sol.String(), "Fourier series", residualText)
			}
		}
	}
	plane := datasets.SyntheticRegression(60, 2, 0.1, 1)
	for want, cfg := range map[string]Config{
		"take the Gaussian kernel":       {Kernel: kernel.Laplacian{Sigma: 1}, Solver: Fourier},
		"sparse tiles suit":              {Kernel: kernel.Gaussian{Sigma: 1e-5}, Solver: Fourier},
		"stores no kernel matrix":        {Kernel: gauss, Solver: Fourier, Storage: gram.Float32},
		"has no preconditioner":          {Kernel: gauss, Solver: Fourier, Precond: Nystrom{S: 9}},
		"modes and 60 points would take": {Kernel: kernel.Gaussian{Sigma: 0.1}, Solver: Fourier, Memory: 1 << 20},
	} {
		cfg.Lambda = 0.1
		lab, err := New(plane, cfg)
		if err == nil {
			_, err = lab.Solve(t.Context())
		}
		testkit.Fails(t, err, want)
	}
}

// TestAutoFourier checks that the plan chooses the Fourier solver for many points in the plane, gives the reason if
// it does not for a narrow kernel, an outlier or a stop by bounds, and switches to the runner-up if the series cannot
// be solved.
func TestAutoFourier(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const n = 12_000
	train := datasets.SyntheticRegression(n, 2, 0.1, 1)
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.1, Exact: StoredResidual}
	lab := newLab(t, train, cfg)
	planned := testkit.Must(lab.Plan(t.Context(), PlanOptions{}))
	sol := testkit.Must(lab.Solve(t.Context()))
	if planned.Choice.Solver != cost.Fourier || sol.Solver != Fourier || !sol.Converged() ||
		planned.Choice.Modes < 100 ||
		planned.Fallback != planned.RunnerUp || planned.Flags != "--solver fourier" || planned.NoSeries != "" {
		t.Errorf("want the Fourier solver as the choice and in the solve:\n%v\n%v", planned, sol)
	}
	narrowCfg := cfg
	narrowCfg.Kernel = kernel.Gaussian{Sigma: 1e-4}
	x := points.NewDense(n, 2, slices.Clone(train.X.(*points.Dense).Data))
	x.Row(7)[0] = 1e5
	outlier := *train
	outlier.X = x
	anormCfg := cfg
	anormCfg.Stop.Rule = bound.ByANorm
	for want, lab := range map[string]*Lab{"is narrow for the box": newLab(t, train, narrowCfg),
		"without outliers it would": newLab(t, &outlier, cfg), "no stop by bounds": newLab(t, train, anormCfg)} {
		planned := testkit.Must(lab.Plan(t.Context(), PlanOptions{}))
		testkit.Contains(t, planned.String(), "no series", want)
		if planned.Choice.Solver == cost.Fourier {
			t.Errorf("the Fourier solver is chosen although it %s: %v", want, planned)
		}
	}
	fewPoints := newLab(t, train.Head(500), Config{Kernel: gauss, Lambda: 0.1})
	if planned := testkit.Must(fewPoints.Plan(t.Context(), PlanOptions{})); planned.Choice.Solver != cost.Direct ||
		planned.NoSeries != "" {
		t.Errorf("few points: want the direct solver, without a word on series: %v", planned)
	}
	fewPoints = newLab(t, train.Head(500), Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 1e-30, Solver: Fourier})
	fewPoints.plan = &plan.Report{Choice: cost.Candidate{Solver: cost.Fourier},
		Fallback: &cost.Candidate{Solver: cost.CG, Precond: cost.None}}
	_, err := fewPoints.solve(t.Context())
	if fallback := fewPoints.fallbackPlan(t.Context(), nil, err); err == nil || fallback == nil ||
		!strings.Contains(fallback.Switched, "not positive definite") {
		t.Errorf("a series that is not positive definite: error %v, the fallback plan is %v", err, fallback)
	}
}

// TestFourierFallbackWithCheckpoints checks that a planned solve whose Fourier series fails, or misses the tolerance,
// continues with the fallback in the same folder of checkpoints, which must not have those of the series.
func TestFourierFallbackWithCheckpoints(t *testing.T) {
	train := datasets.SyntheticRegression(200, 2, 0.1, 1)
	for name, change := range map[string]func(*Config){
		"fails":              func(c *Config) { c.Lambda = 1e-30 },
		"misses a tolerance": func(c *Config) { c.Tol = 1e-17 },
	} {
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.1, MaxIter: 3, Exact: StoredResidual,
			Checkpoint: &Checkpoint{Dir: t.TempDir(), EveryIter: 1}}
		change(&cfg)
		lab := newLab(t, train, cfg)
		lab.planChoices = new(planChoices)
		lab.savedPlan = &plan.Plan{Report: plan.Report{Choice: cost.Candidate{Solver: cost.Fourier, Precond: cost.None},
			Fallback: &cost.Candidate{Solver: cost.CG, Precond: cost.None}}}
		sol, err := lab.Solve(t.Context())
		if err != nil || sol.Solver != CG || sol.Iterations != 3 {
			t.Errorf("a series that %s: error %v; want 3 iterations of CG: %v", name, err, sol)
		}
	}
}

// TestFourierStages checks that the intervals of leave-one-out and of the statistical dimension that come from a
// Fourier series cover the values of dense factors, with and without weights.
func TestFourierStages(t *testing.T) {
	for _, withWeights := range []bool{false, true} {
		data := *datasets.SyntheticRegression(suite.Scale(200, 800, 800), 2, 0.1, 1)
		for i := range data.Len() {
			if withWeights {
				data.Weights = append(data.Weights, 1+float64(i%3))
			}
		}
		lab := newLab(t, &data, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.05})
		dense := testkit.Must(lab.LeaveOneOut(t.Context(), LeaveOneOutOptions{}))
		series := testkit.Must(lab.LeaveOneOut(t.Context(), LeaveOneOutOptions{MaxExactN: -1}))
		testkit.Contains(t, series.String(), "a Fourier series of", "−2 ln p(y) = ")
		for i, bySeries := range series.Scores {
			if want := dense.Scores[i]; !bySeries.Error.Contains(want.Error.Value) ||
				bySeries.Error.RelativeWidth() > 1e-3 || series.Best != dense.Best {
				t.Errorf("leave-one-out score by a series %+v, by dense factors %+v", bySeries, want)
			}
		}
		exact := testkit.Must(lab.StatDim(t.Context(), StatDimOptions{Method: ExactStatDim}))
		bySeries := testkit.Must(lab.StatDim(t.Context(), StatDimOptions{Method: FourierStatDim}))
		for i, point := range bySeries.Curve {
			if estimate := point.Estimate; !estimate.Contains(exact.Curve[i].Estimate.Value) ||
				estimate.RelativeWidth() > 1e-5 {
				t.Errorf("statistical dimension by a series %+v, by dense factors %+v", point, exact.Curve[i])
			}
		}
		narrow := newLab(t, &data, Config{Kernel: kernel.Gaussian{Sigma: 1e-4}, Lambda: 0.05})
		testkit.Fails(t, testkit.ErrOf(narrow.StatDim(t.Context(), StatDimOptions{Method: FourierStatDim})),
			"statdim by a Fourier series: the kernel is narrow for the box of the points")
	}
}

// classesInPlane returns uniformly distributed points in the plane whose three classes are the thirds of the first
// coordinate.
func classesInPlane(n int) *datasets.Dataset {
	x := points.NewDense(n, 2, nil)
	rng.New(5).Float64s(x.Data, 0)
	data := &datasets.Dataset{Name: "thirds", Task: datasets.Classification, X: x, Class: make([]int, n),
		Labels: []string{"a", "b", "c"}}
	for i := range n {
		data.Class[i] = min(2, int(3*x.Row(i)[0]))
	}
	return data
}

// TestFourierRanks checks that the Fourier solver has the same answer on three ranks as in one process, and that a
// solve with a checkpoint folder notes once that it writes no state there.
func TestFourierRanks(t *testing.T) {
	data := datasets.SyntheticRegression(300, 2, 0.1, 3)
	notes, folder := 0, t.TempDir()
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.05, Solver: Fourier}
	want := mustSolve(t, data, cfg)
	onRanks(3, func(ranks comm.Comm) {
		if got := solveOn(t, ranks, data, cfg); got == nil || sameAnswer(got, want) != "" || got.KBytes < want.KBytes {
			t.Errorf("rank %d of %d: %v\none process: %v", ranks.Rank(), ranks.Size(), got, want)
		}
	})
	cfg.Checkpoint = &Checkpoint{Dir: folder, Resume: true, Note: func(string) { notes++ }}
	if got := mustSolve(t, data, cfg); sameAnswer(got, want) != "" || notes != 1 || cfg.Checkpoint.HasState() {
		t.Errorf("%d notes, %v\nwithout checkpoints: %v", notes, got, want)
	}
}

// TestFourierThreads checks that coefficients, predictions, leave-one-out scores and ln p(y) of the Fourier solver
// have the same bits for any number of threads.
func TestFourierThreads(t *testing.T) {
	testkit.EachBLAS(t, func(t *testing.T) {
		setThreads(t, accel.Threads())
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
		data := *datasets.SyntheticRegression(300, 2, 0.1, 3)
		var first []float64
		for _, threads := range []int{1, 2, 3, 8} {
			runtime.GOMAXPROCS(threads)
			accel.SetThreads(threads)
			lab := newLab(t, &data, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.05, Solver: Fourier})
			sol := testkit.Must(lab.Solve(t.Context()))
			loo := testkit.Must(lab.LeaveOneOut(t.Context(), LeaveOneOutOptions{MaxExactN: -1,
				Lambdas: []float64{0.05, 1}}))
			testkit.Contains(t, loo.String(), "a Fourier series of", "−2 ln p(y) = ")
			got := slices.Concat(sol.Model.C.RawMatrix().Data, testkit.Must(sol.Model.Decision(t.Context(), data.X,
				nil)).RawMatrix().Data)
			for _, score := range loo.Scores {
				got = append(got, score.S, score.GCV, score.Minus2LogLikelihood, score.Error.Value,
					score.Error.RelativeWidth())
			}
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Errorf("results differ between 1 and %d threads", threads)
			}
		}
	})
}
