package krrlab

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/compare"
	"github.com/krrlab/lab/krrlab/stage/plan"
	"github.com/krrlab/lab/krrlab/stage/tune"
)

// quadric is a user-defined radial kernel, the rational quadratic kernel k(x, z) = (1+r²/(2ασ²))^−α for α = 1.
type quadric struct{ Sigma float64 }

func (k quadric) String() string { return fmt.Sprintf("quadric(sigma=%g)", k.Sigma) }

func (k quadric) Eval(x, z []float64) float64 {
	var sq float64
	for i := range x {
		sq += (x[i] - z[i]) * (x[i] - z[i])
	}
	return 1 / (1 + sq*k.Slope())
}

func (k quadric) Profile(dst, sq []float64) {
	slope := k.Slope()
	for i, value := range sq {
		dst[i] = 1 / (1 + slope*value)
	}
}

func (k quadric) Slope() float64 { return 1 / (2 * k.Sigma * k.Sigma) }

// Spread draws s with k = E exp(−s²r²/2). It follows from (1+t)^−1 = E e^−tw for w ∼ χ²(2)/2.
func (k quadric) Spread(random rng.Stream) float64 {
	return math.Sqrt(random.ChiSquare(0, 2)/2) / k.Sigma
}

// Derivative returns dk/dr².
func (k quadric) Derivative(_, value float64) float64 { return -k.Slope() * value * value }

func (k quadric) Scale() float64                        { return k.Sigma }
func (k quadric) WithScale(sigma float64) kernel.Kernel { return quadric{sigma} }

var errQuadric = kernel.Register("test.quadric", quadric{})

// unsloped is the kernel quadric with an unknown slope.
type unsloped struct{ quadric }

func (unsloped) Slope() float64                { return math.Inf(1) }
func (k unsloped) Eval(x, z []float64) float64 { return k.quadric.Eval(x, z) }
func (k unsloped) Profile(dst, sq []float64)   { k.quadric.Profile(dst, sq) }

// TestRegisteredKernelEverywhere runs Plan, Compare and Tune with length scales for a registered user-defined kernel,
// and checks that a kernel without a scale cannot be tuned.
func TestRegisteredKernelEverywhere(t *testing.T) {
	testkit.OK(t, errQuadric)
	ctx := t.Context()
	lab := testkit.Must(New(datasets.SyntheticRegression(300, 3, 0.1, 1),
		Config{Kernel: quadric{1}, Lambda: 0.1, Precond: RPCholesky{S: 40}}))
	testkit.Must(lab.Plan(ctx, plan.Options{}))
	comparison := testkit.Must(lab.Compare(ctx, compare.Options{With: stage.Entries{{Text: "none"},
		{Text: "features features=60"}}}))
	for _, row := range comparison.Rows {
		if row.Iterations == nil {
			t.Errorf("%s did not run", row.Name)
		}
	}
	tuned := testkit.Must(lab.Tune(ctx, tune.Options{Kernels: []string{"test.quadric", "gaussian"}, Distance: "lengths",
		Points: 12}))
	if len(tuned.Distances) != 1 || tuned.Distances[0].Kernel != tuned.Best.Kernel && tuned.Distances[0].Accepted {
		t.Errorf("length scales: %+v", tuned.Distances)
	}
	for _, point := range tuned.Points {
		pointKernel := testkit.Must(kernel.FromSpec(point.Spec()))
		if tunedQuadric, ok := pointKernel.(quadric); ok && point.Lengths == nil && tunedQuadric.Sigma != point.Sigma {
			t.Errorf("%+v has the kernel %v", point, pointKernel)
		}
	}
	_, err := lab.Tune(ctx, tune.Options{Kernels: []string{"test.nameless"}})
	testkit.OK(t, errNameless)
	testkit.Fails(t, err, "the kernel test.nameless cannot be tuned: it has no")
}

// TestRadialAgainstDense solves with a user-defined radial kernel and compares coefficients and predictions with
// dense float64 linear algebra on Eval. It runs with all solvers, several preconditioners and storages, every format
// of points and every SIMD path.
func TestRadialAgainstDense(t *testing.T) {
	const n, d, lambda, tol = 80, 5, 0.05, 1e-9
	k := quadric{2}
	test := pointsByFormat(30, d, 8)["float64"]
	defer simd.UsePath(simd.CurrentPath())
	for _, path := range simd.Paths() {
		simd.UsePath(path)
		for format, x := range pointsByFormat(n, d, 7) {
			train := regression(x)
			for _, cfg := range []Config{
				{}, {Solver: PCG}, {Solver: BlockPCG, Precond: Features{S: 60}},
				{Precond: Nystrom{S: 40}},
				{Precond: RPCholesky{S: 40}, Storage: gram.Fixed16}, {Solver: CG, Storage: gram.Recompute},
				{Solver: PCG, Kernel: unsloped{k}},
				{Precond: RPCholesky{S: 40}, Kernel: unsloped{k}, Storage: gram.Float32},
			} {
				if cfg.Kernel == nil {
					cfg.Kernel = k
				}
				cfg.Lambda, cfg.Tol = lambda, tol
				sol := mustSolve(t, train, cfg)
				ref := newReference(t, k, x, lambda, sol.System.Y)
				if difference := relativeDifference(sol.Model.C, &ref.c); !sol.Converged() || difference > 1e-6 {
					t.Errorf("%v, %s points, %T by %v, %v: %v, coefficients off by %.3g", path, format, cfg.Kernel,
						sol.Solver, cfg.Precond, sol.Status, difference)
				}
				predicted := testkit.Must(sol.Model.Decision(t.Context(), test, nil))
				if difference := relativeDifference(predicted, ref.predict(test)); difference > 2e-5 {
					t.Errorf("%v, %s points, %T: predictions off by %.3g", path, format, cfg.Kernel, difference)
				}
			}
		}
	}
}

// TestRegisteredKernel checks that a model of a registered kernel can be saved, loaded and verified, and that it then
// predicts the same. The model of an unregistered kernel must be refused with a message that says how to register it,
// and checkpoint fingerprints must distinguish kernel parameters, even if String does not print them.
func TestRegisteredKernel(t *testing.T) {
	train := regression(pointsByFormat(80, 4, 7)["float64"])
	sol := mustSolve(t, train, Config{Kernel: quadric{2}, Lambda: 0.1, Tol: 1e-6})
	file := filepath.Join(t.TempDir(), "m.krr")
	testkit.OK(t, sol.Model.Save(file))
	loaded, err := model.Load(file)
	if err != nil || loaded.Kernel != kernel.Kernel(quadric{2}) {
		t.Fatalf("read %+v, %v", loaded, err)
	}
	want := testkit.Must(sol.Model.Decision(t.Context(), train.X, nil))
	if got, err := loaded.Decision(t.Context(), train.X, nil); err != nil || !mat.Equal(got, want) {
		t.Errorf("the loaded model predicts differently: %v", err)
	}
	verified, err := Verify(t.Context(), loaded, VerifyOptions{Train: train})
	if err != nil || !(float64(verified.Residual) <= 1e-6) || !strings.Contains(verified.String(), ": proved\n") ||
		!strings.Contains(verified.String(), "not covered") {
		t.Errorf("verified: %v, %v", verified, err)
	}
	unregistered := mustSolve(t, train, Config{Kernel: unsloped{quadric{2}}, Lambda: 0.1})
	testkit.Fails(t, unregistered.Model.Save(file), "kernel.Register(name, krrlab.unsloped{…})")
	fingerprints := map[[32]byte]bool{}
	for _, k := range []kernel.Kernel{quadric{2}, quadric{math.Nextafter(2, 3)}, nameless{2}, nameless{3}} {
		lab := newLab(t, train, Config{Kernel: k, Lambda: 0.1})
		fingerprints[testkit.Must(lab.fingerprint())] = true
	}
	testkit.Equal(t, len(fingerprints), 4)
}

// nameless is a kernel whose String does not print its parameter.
type nameless struct{ C float64 }

var errNameless = kernel.Register("test.nameless", nameless{})

func (nameless) String() string                { return "nameless" }
func (k nameless) Eval(x, z []float64) float64 { return quadric{k.C}.Eval(x, z) }

// TestEvaluatedOnce checks that a kernel known by Eval only is evaluated about once for each pair of points, plus the
// columns of landmarks. The residuals must still be those of float64 with a bound of their rounding error that holds
// against residuals in twice the digits.
func TestEvaluatedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		n     int
		cfg   Config
		limit float64 // limit of evaluations ÷ n²/2; tiles of 128 points on the diagonal are evaluated completely
	}{
		"default":          {600, Config{}, 1.25},
		"direct":           {600, Config{Solver: Direct, Tol: 1e-9}, 1.25},
		"direct, float32":  {600, Config{Solver: Direct, Storage: gram.Float32, Tol: 1e-9}, 1.25},
		"pcg":              {600, Config{Precond: Nystrom{S: 60}, Tol: 1e-8}, 1.5},
		"block":            {600, Config{Solver: BlockPCG, Precond: RPCholesky{S: 60}, Tol: 1e-6}, 1.6},
		"cg, 1,500 points": {1500, Config{Solver: CG}, 1.15},
		"float64":          {600, Config{Solver: CG, Storage: gram.Float64}, 1.25},
		"refined":          {600, Config{Solver: CG, Storage: gram.Float64, Tol: 1e-10}, 1.25},
		"asked for":        {600, Config{Solver: CG, Exact: ExactResidual}, 1.25},
	} {
		var calls atomic.Int64
		c.cfg.Kernel = kernel.Func{Name: "own",
			F: func(x, z []float64) float64 { calls.Add(1); return gauss.Eval(x, z) }}
		c.cfg.Lambda = 0.1
		train := regression(pointsByFormat(c.n, 3, 5)["float64"])
		sol := mustSolve(t, train, c.cfg)
		if got := float64(calls.Load()) / float64(c.n*c.n/2); got > c.limit {
			t.Errorf("%s: %.3g·n²/2 evaluations, want at most %g·n²/2", name, got, c.limit)
		}
		exact := trueResiduals(c.cfg.Kernel, rows(train.X), 0.1, sol.Model.C, sol.System.Y)[0]
		if !sol.Converged() || sol.ColumnRoundings == nil ||
			!(math.Abs(sol.ColumnTrueResiduals[0]-exact) <= sol.ColumnRoundings[0]) {
			t.Errorf("%s: %v, residual %v ± %v, want %g", name, sol.Status, sol.ColumnTrueResiduals,
				sol.ColumnRoundings, exact)
		}
		if text := newLab(t, train, c.cfg).String() + sol.String(); strings.Contains(text, "as the residual is not") ||
			!strings.Contains(text, "not certain, as nothing proves that the kernel is positive semi-definite") ||
			!strings.Contains(text, "cannot be saved") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
