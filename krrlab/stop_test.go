package krrlab

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/tune"
)

// endAt returns a Monitor that calls end in iteration number k, counted over all runs.
func endAt(k int, end func() error) func(Event) error {
	seen := 0
	return func(e Event) error {
		if e.Iteration > 0 {
			if seen++; seen == k {
				return end()
			}
		}
		return nil
	}
}

// TestStopStages: an error of the Monitor ends every stage, which returns what it has.
func TestStopStages(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	boom := errors.New("boom")
	in := func(by error, name stage.Name, done int) func(Event) error {
		return func(e Event) error {
			if e.Stage == name && e.Done >= done {
				return by
			}
			return nil
		}
	}
	sol := mustSolve(t, ranksProblem(300), Config{Kernel: gauss, Lambda: 0.1})
	for _, by := range []error{pcg.ErrStop, boom} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Features{S: 20},
			Monitor: in(by, stage.Lanczos, 5)}
		q, err := newLab(t, ranksProblem(300), cfg).Quality(t.Context(), QualityOptions{Width: 1e-6, ExactBelow: -1})
		if q == nil || q.Steps != 5 || by == boom && err != boom || by == pcg.ErrStop && err != nil {
			t.Errorf("%v: %v, %v", by, q, err)
		}
		cfg.Monitor = in(by, stage.Kernel, 0)
		l := newLab(t, ranksProblem(300), cfg)
		names := []stage.Name{stage.Solve}
		for _, d := range stages {
			names = append(names, d.Name)
		}
		for _, name := range names {
			if name == stage.Plan || name == stage.Tune { // they form no K of the lab
				continue
			}
			options := `{}`
			if name == "statdim" {
				options = `{"Method": "hutchinson"}`
			}
			if v, err := l.RunNamed(t.Context(), name, []byte(options)); v != nil || err != by {
				t.Errorf("%v in K of %s: %v, %v", by, name, v, err)
			}
		}
		if v, err := Verify(t.Context(), sol.Model, VerifyOptions{Monitor: cfg.Monitor}); v != nil || err != by {
			t.Errorf("%v in Verify: %v, %v", by, v, err)
		}
		cfg.Monitor = in(by, stage.Plan, 0)
		if v, err := newLab(t, ranksProblem(300), cfg).RunNamed(t.Context(), stage.Plan, []byte("{}")); v != nil ||
			err != by {
			t.Errorf("%v in a plan: %v, %v", by, v, err)
		}
		cfg.Monitor = in(by, stage.Tune, 0)
		r, err := newLab(t, ranksProblem(300), cfg).Tune(t.Context(), tune.Options{})
		if r == nil || len(r.Points) != 1 || by == boom && err != boom || by == pcg.ErrStop && err != nil {
			t.Errorf("%v in a search: %v, %v", by, r, err)
		}
	}
}

// TestStopRanks: all ranks stop where the Monitor of one says so, with the same answer.
func TestStopRanks(t *testing.T) {
	boom := errors.New("boom")
	for _, by := range []error{pcg.ErrStop, boom} {
		const p, which = 3, 1
		sols, errs := make([]*Solution, p), make([]error, p)
		onRanks(p, func(c comm.Comm) {
			cfg, r := Config{Kernel: gauss, Lambda: 0.1, Seed: 5, Tol: 1e-8, Solver: PCG, Precond: Features{S: 60},
				Comm: c}, c.Rank()
			if r == which {
				cfg.Monitor = endAt(5, func() error { return by })
			}
			sols[r], errs[r] = newLab(t, ranksProblem(300), cfg).Solve(t.Context())
		})
		for r, sol := range sols {
			if sol == nil || sol.Status != pcg.Stopped || sol.Iterations != 5 ||
				!mat.Equal(sol.Model.C, sols[0].Model.C) || sol.TrueResidual != sols[0].TrueResidual {
				t.Fatalf("rank %d: %v, %v", r, sol, errs[r])
			}
			if by == pcg.ErrStop && errs[r] != nil ||
				by == boom && (errs[r] == nil || !strings.Contains(errs[r].Error(), "boom")) {
				t.Errorf("rank %d: %v", r, errs[r])
			}
		}
		if by == boom && !errors.Is(errs[which], boom) {
			t.Errorf("%v", errs[which])
		}
	}
}

// TestErrorBoundsHold: on problems drawn at random, no bound of the error is below it, whatever the preconditioner and
// the storage, and however the residual is recomputed; and in float64 they are near, in the median, where μ is known.
// The long run has 100 problems.
func TestErrorBoundsHold(t *testing.T) {
	problems := suite.Scale(4, 8, 100)
	for name, p := range map[string]Preconditioner{"none": None{}, "features": Features{}, "nystrom": Nystrom{},
		"rpcholesky": RPCholesky{}, "vecchia": Vecchia{S: 10}} {
		for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16} {
			var near, nearCertain []float64
			for i := range problems {
				g := rng.New(77).Sub("problem", uint64(i))
				x := points.NewDense(60+g.Sub("n").IntN(0, 90), 3, nil)
				g.Sub("x").Normals(x.Data, 0)
				cfg := Config{
					Kernel:  kernel.Gaussian{Sigma: math.Pow(10, 1.2*g.Sub("sigma").Float64(0)-0.5)},
					Lambda:  math.Pow(10, -3*g.Sub("lambda").Float64(0)),
					Precond: p, Solver: []Solver{PCG, BlockPCG}[i%2], Storage: storage, Seed: uint64(i),
					Tol: []float64{1e-2, 1e-4}[i/2%2], MaxIter: 400,
					Exact: []ResidualPolicy{ExactResidual, StoredResidual}[i%3/2],
				}
				if a, ok := p.(stage.LowRank); ok {
					cfg.Precond = sized(a, 25, cfg.Lambda*[]float64{1, 10}[i%2])
				}
				l := newLab(t, classes(x, 2+i%3), cfg)
				sol, err := l.Solve(t.Context())
				if err != nil {
					t.Fatalf("%s, %v, problem %d: %v", name, storage, i, err)
				}
				if sol.Error == nil {
					if storage == gram.Float64 {
						t.Errorf("%s, problem %d: no bound: %v", name, i, sol.Status)
					}
					continue
				}
				if (sol.Error.Certain != nil) != (cfg.Exact == ExactResidual) {
					t.Errorf("%s, %v, problem %d: certain %v of a residual of %s", name, storage, i, sol.Error.Certain,
						sol.ResidualKind)
				}
				ref := newReference(t, cfg.Kernel, x, cfg.Lambda, l.y)
				for j, bound := range sol.Error.Bounds {
					is, size := ref.off(sol.Model.C, j)
					slack := 1e-9 * size // of the reference
					if is > bound+slack || sol.Error.Certain != nil && is > sol.Error.Certain[j]+slack ||
						sol.Error.SolutionNormBounds[j] > size+slack {
						t.Errorf("%s, %v, problem %d, column %d: ‖e‖_A = %.4g, ‖c‖_A = %.4g, bounds %+v", name, storage,
							i, j, is, size, sol.Error)
					}
					near = append(near, bound/is)
					decision := sol.Error.Decisions()[j]
					if residual := (sol.TrueResiduals[j] + 1e-6) * mat.Norm(l.y.ColView(j),
						2) / (2 * math.Sqrt(cfg.Lambda)); cfg.Exact == ExactResidual && decision > residual*(1+1e-6) {
						t.Errorf("%s, %v, problem %d: decision values within %.4g, half of ‖r‖/√λ is %.4g", name,
							storage, i, decision, residual)
					}
					var e, f mat.VecDense
					e.SubVec(ref.c.ColView(j), sol.Model.C.ColView(j))
					f.MulVec(ref.a, &e) // (K+λI)e
					f.AddScaledVec(&f, -cfg.Lambda, &e)
					if worst := mat.Norm(&f, math.Inf(1)); worst > decision+slack {
						t.Errorf("%s, %v, problem %d, column %d: decision values differ by %.4g, bound %.4g", name,
							storage, i, j, worst, decision)
					}
					if sol.Error.Certain != nil {
						nearCertain = append(nearCertain, sol.Error.Certain[j]/is)
					}
				}
			}
			slices.Sort(near)
			slices.Sort(nearCertain)
			if len(near) == 0 {
				continue
			}
			m := near[len(near)/2]
			t.Logf("%s, %v: bounds %.3g times the error in the median, at most %.3g; certain ones %.3g", name, storage,
				m, near[len(near)-1], nearCertain[len(nearCertain)/2])
			if _, low := p.(stage.LowRank); storage == gram.Float64 && low && name != "features" && m > 3 {
				t.Errorf("%s: bounds are %.3g times the error in the median", name, m)
			}
		}
	}
}

// TestStopLabels: no more labels are open than asked, those that are settled are the exact solution's, of the training
// points and of others; and there are fewer iterations than at the tolerance.
func TestStopLabels(t *testing.T) {
	x, other := kinds(400, 3, 4)["float64"], classes(kinds(150, 3, 9)["float64"], 3)
	for _, given := range []*datasets.Dataset{nil, other} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Precond: sized(Nystrom{}, 40, 0.1), Solver: PCG, Tol: 1e-8}
		full := mustSolve(t, classes(x, 3), cfg)
		cfg.Stop, cfg.StopRows = bound.Stop{Rule: bound.Labels, Share: 0.05}, given
		l := newLab(t, classes(x, 3), cfg)
		sol := mustSolve(t, classes(x, 3), cfg)
		rows := classes(x, 3)
		if given != nil {
			rows = given
		}
		p := testkit.Must(sol.Model.Predict(t.Context(), rows, sol.PredictOptions()))
		if given != nil {
			testkit.Equal(t, sol.LabelsCounted, 0)
			sol.CountOpenLabels(p, rows)
		}
		exact := newReference(t, cfg.Kernel, x, cfg.Lambda, l.y).predict(rows.X)
		changed, wrong := 0, 0
		is := l.coding.Decode(exact)
		for i, c := range p.Class {
			if c != is[i] {
				changed++
				one := mat.NewDense(1, 3, p.Decision.RawRowView(i))
				wrong += 1 - bound.Open(one, []float64{1}, sol.Error.Bounds)
			}
		}
		open := float64(sol.LabelsOpen) / float64(sol.LabelsCounted)
		if sol.Status != pcg.Stopped || sol.Criterion != "labels" || sol.LabelsCounted != rows.Len() || open > 0.05 ||
			changed > sol.LabelsOpen || wrong > 0 {
			t.Errorf("%v, criterion %q: %d of %d open; %d changed, %d of them settled", sol.Status, sol.Criterion,
				sol.LabelsOpen, sol.LabelsCounted, changed, wrong)
		}
		if sol.Iterations >= full.Iterations || !strings.Contains(sol.String(), "labels are settled") {
			t.Errorf("%d iterations, %d in full; %s", sol.Iterations, full.Iterations, sol)
		}
		cfg.Tol = 0.3
		if first := mustSolve(t, classes(x, 3), cfg); first.Criterion != "residual" || !first.Converged() {
			t.Errorf("τ = 0.3: %v, criterion %q", first.Status, first.Criterion)
		}
	}
}

// TestStopRefused: a rule that the problem or the solver does not have is an error.
func TestStopRefused(t *testing.T) {
	x := kinds(30, 3, 1)["float64"]
	labels := bound.Stop{Rule: bound.Labels, Share: 0.1}
	for want, c := range map[string]struct {
		train *datasets.Dataset
		cfg   Config
	}{
		"classification":         {regression(x), Config{Stop: labels}},
		"Stop and Solver direct": {classes(x, 2), Config{Stop: labels, Solver: Direct}},
		"share 0":                {classes(x, 2), Config{Stop: bound.Stop{Rule: bound.Labels}}},
	} {
		c.cfg.Kernel, c.cfg.Lambda = gauss, 0.1
		testkit.Fails(t, testkit.ErrOf(New(c.train, c.cfg)), want)
	}
	if l := newLab(t, classes(x, 2), Config{Kernel: gauss, Lambda: 0.1, Stop: labels}); l.cfg.Solver == Direct {
		t.Error("auto takes the direct solver, which does not stop")
	}
}

// TestStopRulesOnRanks: on ranks the iteration ends where it does without them, with the same bounds.
func TestStopRulesOnRanks(t *testing.T) {
	const n = 560 // two units of rows
	for name, cfg := range map[string]Config{
		"anorm": {Precond: sized(Nystrom{}, 40, 0.1), Solver: PCG, Tol: 1e-2, Stop: bound.Stop{Rule: bound.ANorm}},
		"labels": {Precond: sized(RPCholesky{}, 30, 0.1), Solver: BlockPCG, Tol: 1e-6,
			Stop: bound.Stop{Rule: bound.Labels, Share: 0.1}},
		"predictions": {Precond: Nystrom{S: 20}, Kernel: kernel.Gaussian{Sigma: 0.3}, Lambda: 1e-3},
	} {
		if cfg.Storage = gram.Float64; cfg.Kernel == nil {
			cfg.Kernel, cfg.Lambda = gauss, 0.1
		}
		want := mustSolve(t, ranksProblem(n), cfg)
		if want.Criterion != name || want.Noise != nil && want.Noise.Products == 0 {
			t.Fatalf("%s: %v", name, want)
		}
		onEachRank(t, 3, n, cfg, func(rank int, s *Solution) {
			testkit.Equal(t, sameAnswer(s, want), "", name, rank)
		})
	}
}
