package krrlab

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
)

// gauss is the kernel of most tests of this package.
var gauss = kernel.Gaussian{Sigma: 1.5}

// TestDefaults checks which solver, number of features s and λ_p the zero values of a configuration become.
func TestDefaults(t *testing.T) {
	fourier := feature.Fourier{Kernel: gauss}
	for _, c := range []struct {
		n, t    int
		cfg     Config
		solver  Solver
		s       int
		lambdaP float64
	}{
		{3000, 1, Config{}, Direct, 500, 0.1},
		{4001, 1, Config{}, PCG, 500, 0.1},
		{4001, 10, Config{}, BlockPCG, 500, 0.1},
		{4001, 10, Config{Precond: Features{S: 20}}, PCG, 20, 0.1},
		{5000, 600, Config{}, PCG, 500, 0.1}, // blocks of 600 columns cost too much
		{300, 1, Config{Precond: Features{S: 20}}, PCG, 20, 0.1},
		{300, 1, Config{Precond: Features{LambdaP: 1}}, PCG, 300, 1},
		{300, 1, Config{Precond: Features{Map: fourier}}, PCG, 300, 0.1},
		{300, 1, Config{Storage: gram.Float32}, PCG, 300, 0.1},
		{300, 1, Config{Precond: None{}}, CG, 300, 0.1},
		{300, 1, Config{Precond: Nystrom{}}, PCG, 300, 0.1},
		{300, 10, Config{Solver: PCG, Precond: None{}}, CG, 300, 0.1},
		{300, 10, Config{Solver: BlockPCG, Precond: None{}}, BlockPCG, 300, 0.1},
		{300, 10, Config{Solver: Direct, Precond: None{}}, Direct, 300, 0.1},
		{20000, 1, Config{}, PCG, 2000, 0.1},
		{200000, 1, Config{}, PCG, 10000, 0.1},
	} {
		c.cfg.Kernel, c.cfg.Lambda = gauss, 0.1
		got := testkit.Must(c.cfg.withDefaults(c.n, c.t, 1e-5))
		if lowRank, ok := got.Precond.(stage.LowRank); ok {
			if approximation := lowRank.Approximation(gauss); approximation.S != c.s ||
				approximation.LambdaP != c.lambdaP {
				t.Errorf("n = %d, %+v: s = %d, λ_p = %g, want %d, %g", c.n, c.cfg, approximation.S,
					approximation.LambdaP, c.s, c.lambdaP)
			}
		}
		if got.Solver != c.solver || got.MaxIter != 1000 {
			t.Errorf("n = %d, %+v: %v, at most %d iterations, want %v, 1000", c.n, c.cfg, got.Solver, got.MaxIter,
				c.solver)
		}
		if got.Solver != BlockPCG && (got.Precond == Preconditioner(None{})) != (got.Solver != PCG) {
			t.Errorf("n=%d: solver %v with preconditioner %v", c.n, got.Solver, got.Precond)
		}
	}
}

// TestConfigErrors checks that impossible configurations are refused with the offending value.
func TestConfigErrors(t *testing.T) {
	train := regression(pointsByFormat(30, 4, 1)["float64"])
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Lambda: 1}, "no kernel"},
		{Config{Kernel: kernel.Gaussian{}, Lambda: 1}, "sigma = 0"},
		{Config{Kernel: gauss}, "λ = 0"},
		{Config{Kernel: gauss, Lambda: -1}, "λ = -1"},
		{Config{Kernel: gauss, Lambda: math.Inf(1)}, "λ = +Inf"},
		{Config{Kernel: gauss, Lambda: math.NaN()}, "λ = NaN"},
		{Config{Kernel: gauss, Lambda: 1, Precond: Features{LambdaP: -2}}, "LambdaP -2: want a positive number"},
		{Config{Kernel: gauss, Lambda: 1, Tol: 1}, "Tol 1"},
		{Config{Kernel: gauss, Lambda: 1, Tol: -1}, "Tol -1"},
		{Config{Kernel: gauss, Lambda: 1, MaxIter: -1}, "MaxIter -1"},
		{Config{Kernel: gauss, Lambda: 1, Precond: Features{S: 31}}, "s = 31"},
		{Config{Kernel: gauss, Lambda: 1, Precond: Nystrom{S: 31}}, "s = 31"},
		{Config{Kernel: gauss, Lambda: 1, Precond: Features{S: -1}}, "S -1: want at least 1"},
		{Config{Kernel: gauss, Lambda: 1, Memory: -1}, "Memory -1"},
		{Config{Kernel: gauss, Lambda: 1, Solver: Direct, Storage: gram.Recompute}, "recompute"},
		{Config{Kernel: kernel.Func{Name: "own", F: dot}, Lambda: 1, Precond: Features{}}, "no random features"},
	} {
		testkit.Fails(t, testkit.ErrOf(New(train, c.cfg)), c.want)
	}
	testkit.Fails(t, testkit.ErrOf(New(train.Head(1), Config{Kernel: gauss, Lambda: 1})), "at least 2")
	oneClass := classification(pointsByFormat(30, 4, 1)["float64"], 1)
	testkit.Fails(t, testkit.ErrOf(New(oneClass, Config{Kernel: gauss, Lambda: 1})), "class")
}

// dot returns the inner product of x and z.
func dot(x, z []float64) (sum float64) {
	for i, v := range x {
		sum += v * z[i]
	}
	return sum
}

// TestUserDefinedKernelDefault checks that a user-defined kernel known by Eval only is preconditioned by randomly
// pivoted Cholesky if nothing else is asked for. The report must give the reason, the coefficients must agree with a
// dense reference and the stages must run. One of the kernels has a K of full rank and the other of low rank.
func TestUserDefinedKernelDefault(t *testing.T) {
	x := pointsByFormat(90, 4, 3)["float64"]
	for name, eval := range map[string]func(x, z []float64) float64{
		"full":   func(x, z []float64) float64 { return gauss.Eval(x, z) + 0.01*dot(x, z) },
		"linear": func(x, z []float64) float64 { return 1 + dot(x, z) },
	} {
		userDefined := kernel.Func{Name: name, F: eval}
		for _, solver := range []Solver{PCG, BlockPCG} {
			sol := mustSolve(t, regression(x), Config{Kernel: userDefined, Lambda: 0.1, Tol: 1e-8, Solver: solver})
			ref := newReference(t, userDefined, x, 0.1, sol.System.Y)
			if difference := relativeDifference(sol.Model.C, &ref.c); !(difference <= 1e-6) || !sol.Converged() ||
				sol.Precond != "rpcholesky" {
				t.Errorf("%s, %v: %s with %q, coefficients off by %.3g", name, solver, sol.Status, sol.Precond,
					difference)
			}
			if text := sol.String(); !strings.Contains(text,
				"randomly pivoted Cholesky (the kernel has no random features)") {
				t.Errorf("%s: no reason in\n%s", name, text)
			}
		}
		lab := newLab(t, regression(x), Config{Kernel: userDefined, Lambda: 0.1, Solver: PCG})
		if quality, err := lab.Quality(t.Context(), QualityOptions{}); err != nil || !(quality.Kappa.Hi < math.Inf(1)) {
			t.Errorf("%s: quality %v, %v", name, quality, err)
		}
		if _, err := lab.StatDim(t.Context(), StatDimOptions{}); err != nil {
			t.Errorf("%s: statistical dimension: %v", name, err)
		}
		if _, err := lab.LambdaP(t.Context(), LambdaPOptions{}); err != nil {
			t.Errorf("%s: λ_p: %v", name, err)
		}
	}
	train := regression(pointsByFormat(DirectBelow+1, 2, 3)["float64"])
	lab, err := New(train, Config{Kernel: kernel.Func{Name: "min",
		F: func(x, z []float64) float64 { return 1 / (1 + math.Abs(x[0]-z[0])) }}, Lambda: 1})
	if err != nil || lab.cfg.Precond.(RPCholesky).S != DefaultFeatures(DirectBelow+1) {
		t.Errorf("above the direct limit: %+v, %v", lab, err)
	}
}

// TestFixed16Chosen checks that, if float32 does not fit into the memory, a solve stores K in 16 bits and refines
// the answer, while other stages recompute K.
func TestFixed16Chosen(t *testing.T) {
	setThreads(t, 2)
	x := pointsByFormat(1200, 4, 5)["float64"]
	lab := newLab(t, classification(x, 3), Config{Kernel: gauss, Lambda: 0.02, Precond: RPCholesky{S: 30}, Tol: 1e-4,
		Solver: PCG, Memory: 3e6})
	sol := solveLab(t, lab)
	residual := largestOrNaN(newReference(t, gauss, x, 0.02, lab.Targets()).residuals(sol.Model.C, lab.Targets()))
	if !sol.Converged() || sol.Storage != "fixed16" || !(residual <= 1e-4) ||
		!strings.Contains(sol.StorageReason, "float32 does not fit") {
		t.Errorf("%v, residual %.3g, storage %s: %s", sol.Status, residual, sol.Storage, sol.StorageReason)
	}
	if k := testkit.Must(lab.K(t.Context())); k.Storage() != gram.Recompute {
		t.Errorf("K of other stages is %v, want it recomputed", k.Choice())
	}
}

// TestDegenerateData checks that duplicated points, constant columns and y = 0 are solved.
func TestDegenerateData(t *testing.T) {
	x := points.NewDense(60, 3, nil)
	for i := range 60 {
		copy(x.Row(i), []float64{float64(i % 4), 7, 0})
	}
	for _, solver := range []Solver{PCG, CG, Direct} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: solver, Precond: precondFor(solver, Features{S: 20}),
			Tol: 1e-6}
		sol := mustSolve(t, regression(x), cfg)
		ref := newReference(t, gauss, x, 0.1, sol.System.Y)
		if difference := relativeDifference(sol.Model.C, &ref.c); difference > 1e-4 || !sol.Converged() {
			t.Errorf("%v: %s, coefficients off by %.3g", solver, sol.Status, difference)
		}
		zero := regression(x)
		clear(zero.Target)
		sol = mustSolve(t, zero, cfg)
		if maxAbs(sol.Model.C) != 0 || !sol.Converged() || sol.TrueResidual != 0 {
			t.Errorf("%v, y = 0: %s, residual %g", solver, sol.Status, sol.TrueResidual)
		}
	}
}

// TestSeedsAndThreads checks with each BLAS library that the answer has the same bits for any number of threads, and
// that it depends on the seed exactly for the solvers that draw random numbers.
func TestSeedsAndThreads(t *testing.T) {
	testkit.EachBLAS(t, seedsAndThreads)
}

// seedsAndThreads is TestSeedsAndThreads for the BLAS library in use.
func seedsAndThreads(t *testing.T) {
	setThreads(t, accel.Threads())
	train := classification(pointsByFormat(200, 5, 6)["float32"], 3)
	for _, solver := range []Solver{PCG, BlockPCG, CG, Direct} {
		var coefficients []*mat.Dense
		for _, run := range []struct {
			threads int
			seed    uint64
		}{{1, 1}, {2, 1}, {3, 1}, {2, 2}} {
			accel.SetThreads(run.threads)
			sol := mustSolve(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: precondFor(solver, Features{S: 60}),
				Solver: solver, Seed: run.seed})
			coefficients = append(coefficients, sol.Model.C)
		}
		if !mat.Equal(coefficients[0], coefficients[1]) || !mat.Equal(coefficients[0], coefficients[2]) {
			t.Errorf("%v: the number of threads changes the answer", solver)
		}
		if isRandom := solver == PCG || solver == BlockPCG; mat.Equal(coefficients[0], coefficients[3]) == isRandom {
			t.Errorf("%v: seeds 1 and 2 give the same answer: %v, want %v", solver, isRandom, !isRandom)
		}
	}
}

// TestEvents checks that the events of a solve and a prediction come in the order of the stages and that each stage
// reports its end.
func TestEvents(t *testing.T) {
	var stages []stage.Name
	last := map[stage.Name]Event{}
	cfg := Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-5, Precond: Features{S: 60}, Monitor: func(e Event) error {
		if len(stages) == 0 || stages[len(stages)-1] != e.Stage {
			stages = append(stages, e.Stage)
		}
		last[e.Stage] = e
		return nil
	}}
	sol := mustSolve(t, regression(pointsByFormat(200, 5, 6)["float64"]), cfg)
	testkit.Must(sol.Model.Decision(t.Context(), pointsByFormat(20, 5, 7)["float64"], sol.PredictOptions()))
	if want := []stage.Name{"features", "factor", "kernel", "solve", "predict"}; !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	for _, name := range []stage.Name{stage.Features, stage.Kernel, stage.Predict} {
		if e := last[name]; e.Done != e.Total || e.Total == 0 {
			t.Errorf("%s ended at %d of %d", name, e.Done, e.Total)
		}
	}
	if e := last["solve"]; e.Iteration != sol.Iterations || !(e.Residual > 0 && e.Residual <= 1e-3) {
		t.Errorf("the last iteration reported %+v, the solve took %d", e, sol.Iterations)
	}
}

// TestMemory checks that a configuration that does not fit into the memory limit is refused with the number of bytes
// or a remedy, and that K is recomputed if it does not fit and the storage is left open.
func TestMemory(t *testing.T) {
	setThreads(t, 2)
	train := regression(pointsByFormat(3000, 5, 6)["float32"])
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Precond: Features{S: 500}, Memory: 1e6}, "take fewer features"},
		{Config{Precond: Features{S: 50}, Memory: 27e6, Storage: gram.Float64, Solver: PCG}, "float32"},
		{Config{Solver: Direct, Memory: 20e6}, "36.1 MB"},
		{Config{Solver: Direct, Memory: 20e6, Storage: gram.Float64}, "72.1 MB"},
	} {
		c.cfg.Kernel, c.cfg.Lambda = gauss, 0.1
		lab := newLab(t, train, c.cfg)
		testkit.Fails(t, testkit.ErrOf(lab.Solve(t.Context())), c.want)
	}
	sol := mustSolve(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 50}, Memory: 12e6, Tol: 1e-2})
	if sol.Storage != "recompute" || !sol.Converged() {
		t.Errorf("in 12 MB: %s, %s", sol.Storage, sol.Status)
	}
}

// TestWrongDimension checks that New refuses points of dimension 0, and Verify test points of another dimension than
// the model's.
func TestWrongDimension(t *testing.T) {
	train := regression(pointsByFormat(5, 3, 1)["float64"])
	train.X = points.NewDense(5, 0, nil)
	testkit.Fails(t, testkit.ErrOf(New(train, Config{Kernel: gauss, Lambda: 1})), "dimension 0")
	sol := mustSolve(t, regression(pointsByFormat(40, 3, 1)["float64"]),
		Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 10}})
	sol.Model.Scaling = &datasets.Scaling{Kind: "unit", Scale: []float64{1, 1, 1}}
	testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), sol.Model,
		VerifyOptions{Train: sol.System.Train, Test: regression(pointsByFormat(4, 2, 1)["float64"])})),
		"the test data have 2 features, the model was fitted on 3")
}

// TestPreconditionerText checks that a preconditioner that is written as text and parsed again is unchanged, and that
// unknown names and options are refused.
func TestPreconditionerText(t *testing.T) {
	for _, p := range []Preconditioner{None{}, Features{S: 3, LambdaP: 2, Form: precond.FormEigen},
		Nystrom{S: 3}, RPCholesky{LambdaP: 1}, Features{S: 20, Map: testkit.Must(feature.ChainFor(gauss,
			feature.Levels{{Sketch: "features", Width: 40}, {Sketch: "srht", Width: 20}}))}} {
		text := testkit.Must(stage.PreconditionerText(p, gauss))
		got := testkit.Must(stage.ParsePreconditioner(text))
		if features, ok := p.(Features); ok && features.Map != nil {
			got = testkit.Must(got.(Features).WithDefaults(stage.Defaults{Kernel: gauss, N: 30, S: 9, LambdaP: 1}))
			features.LambdaP, features.Levels = 1, got.(Features).Levels
			p = features
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%q is read as %#v, want %#v", text, got, p)
		}
	}
	testkit.Fails(t, testkit.ErrOf(PrecondSpec{Name: "vecchia", LambdaP: 1}.Preconditioner(gauss)),
		`"lambda-p=1": the preconditioner vecchia has no such option: want one of features, neighbors, damping`)
	testkit.Fails(t, testkit.ErrOf(PrecondSpec{Name: "magic"}.Preconditioner(gauss)),
		`--precond "magic": want one of auto`)
}
