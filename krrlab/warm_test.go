package krrlab

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// distance returns the largest ‖c_j−c_j*‖_A/‖c_j*‖_A, C* by dense linear algebra, and that of each bound to what it
// bounds.
func distance(t *testing.T, l *Lab, sol *Solution) (relative, excess float64) {
	t.Helper()
	ref := newReference(t, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.y)
	norm := func(v *mat.VecDense) float64 { return math.Sqrt(mat.Inner(v, ref.a, v)) }
	for j := range l.columns() {
		c := mat.VecDenseCopyOf(ref.c.ColView(j))
		var e mat.VecDense
		e.SubVec(sol.Model.C.ColView(j), c)
		relative = math.Max(relative, norm(&e)/norm(c))
		if sol.Error != nil {
			excess = math.Max(excess, norm(&e)/(sol.Error.Bounds[j]+1e-12*norm(c)))
		}
	}
	return relative, excess
}

// TestWarmStart: from the answer for fewer rows or another λ every solver comes to the answer of a fresh solve within
// the tolerance, with bounds that hold; from its own answer it takes no more iterations than from 0.
func TestWarmStart(t *testing.T) {
	const n, added, tol = 150, 30, 1e-6
	for i, solver := range []Solver{PCG, BlockPCG, CG} {
		for j, storage := range []gram.Storage{gram.Float64, gram.Float32} {
			x := points.NewDense(n+added, 3, nil)
			rng.New(5).Sub("x", uint64(i), uint64(j)).Normals(x.Data, 0)
			all := regression(x)
			if i == 1 {
				all = classes(x, 3)
			}
			cfg := Config{Kernel: kernel.Gaussian{Sigma: 1.2}, Lambda: 0.05, Solver: solver, Storage: storage, Tol: tol,
				MaxIter: 2000}
			first := mustSolve(t, all.Head(n), cfg).Model
			for _, c := range []struct {
				rows   int
				lambda float64
			}{{n, 0.05}, {n, 0.2}, {n, 0.01}, {n + added, 0.05}, {n + added, 0.1}} {
				cfg := cfg
				cfg.Lambda = c.lambda
				train := all.Head(c.rows)
				fresh := mustSolve(t, train, cfg)
				var err error
				if cfg.Start, err = first.Start(train, cfg.Kernel, c.lambda); err != nil {
					t.Fatal(err)
				}
				l := newLab(t, train, cfg)
				warm := solveLab(t, l)
				// ‖e‖_A ≤ ‖r‖₂/√λ and ‖c*‖_A ≥ ‖y‖₂/√(λ+n)
				most := tol * math.Sqrt((c.lambda+float64(c.rows))/c.lambda)
				rel, excess := distance(t, l, warm)
				if !warm.Converged() || !(float64(warm.TrueResidual) <= tol) || !(rel <= most) || !(excess <= 1) {
					t.Errorf("%v, %v, %+v: %v, %g off, bounds %g too small", solver, storage, c, warm.Status, rel,
						excess)
				}
				if e := apart(warm.Model.C, fresh.Model.C); !(e <= 2*most*math.Sqrt(float64(c.rows)/c.lambda)) {
					t.Errorf("%v, %v, %+v: %g apart from the fresh answer", solver, storage, c, e)
				}
				if c.rows == n && c.lambda == 0.05 && !(warm.Iterations < fresh.Iterations) {
					t.Errorf("%v, %v: %d iterations from the answer, %d from 0", solver, storage, warm.Iterations,
						fresh.Iterations)
				}
			}
		}
	}
}

// TestWarmBounds: a start far from the answer, on its side or not, does not make the error look small beside it, and is
// of no harm.
func TestWarmBounds(t *testing.T) {
	x := points.NewDense(120, 2, nil)
	rng.New(6).Normals(x.Data, 0)
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 0.8}, Lambda: 0.02, Solver: CG, Storage: gram.Float64, Tol: 1e-2,
		MaxIter: 3000, Stop: bound.Stop{Rule: bound.ANorm}}
	answer := mustSolve(t, regression(x), cfg).Model.C
	for _, times := range []float64{300, -300, 0} {
		start := mat.DenseCopyOf(answer)
		start.Scale(times, start)
		cfg.Start = start
		l := newLab(t, regression(x), cfg)
		sol := solveLab(t, l)
		if rel, excess := distance(t, l, sol); !sol.Reached() || !(rel <= cfg.Tol) || !(excess <= 1) ||
			!(sol.Error.Relative >= rel) {
			t.Errorf("%g times the answer: %v by %q, %g off, said at most %g", times, sol.Status, sol.Criterion, rel,
				sol.Error.Relative)
		}
		if start.At(3, 0) != times*answer.At(3, 0) {
			t.Error("the start was changed")
		}
	}
}

// TestWarmRefusals: a model of another problem is refused with what differs, and so is a start of another shape; a
// checkpoint is another's with another start.
func TestWarmRefusals(t *testing.T) {
	x := points.NewDense(40, 2, nil)
	rng.New(6).Normals(x.Data, 0)
	d := regression(x)
	k := kernel.Gaussian{Sigma: 1}
	cfg := Config{Kernel: k, Lambda: 0.1, Solver: CG}
	m := mustSolve(t, d.Head(30), cfg).Model
	other := regression(points.NewDense(40, 2, append([]float64{9}, x.Data[1:]...)))
	scaled, _, err := datasets.Scale("standard", d, nil)
	if err != nil {
		t.Fatal(err)
	}
	wide := points.NewDense(40, 3, nil)
	heavy, short := *d, cfg
	heavy.Weights, short.Start = make([]float64, 40), m.C
	for want, err := range map[string]error{
		"the model has the kernel gaussian(sigma=1), the fit gaussian(sigma=2)": testkit.ErrOf(m.Start(d,
			kernel.Gaussian{Sigma: 2}, 1)),
		"the model is for regression":                                      testkit.ErrOf(m.Start(classes(x, 3), k, 1)),
		"the model has 30 points of 2 features, the training data 20 of 2": testkit.ErrOf(m.Start(d.Head(20), k, 1)),
		"the model has 30 points of 2 features, the training data 40 of 3": testkit.ErrOf(m.Start(regression(wide),
			k, 1)),
		"have weights":                     testkit.ErrOf(m.Start(&heavy, k, 1)),
		"not scaled as the model's points": testkit.ErrOf(m.Start(scaled, k, 1)),
		"row 0 (counted from 0) of the training data is not the model's": testkit.ErrOf(m.Start(other, k, 1)),
		"Start is 30×1, want 40×1":                                       testkit.ErrOf(New(d, short)),
	} {
		testkit.Fails(t, err, want)
	}
	with := cfg
	if with.Start, err = m.Start(d, k, 0.1); err != nil {
		t.Fatal(err)
	}
	if testkit.Must(newLab(t, d, cfg).owner()) == testkit.Must(newLab(t, d, with).owner()) {
		t.Error("checkpoints with and without a start are not told apart")
	}
}
