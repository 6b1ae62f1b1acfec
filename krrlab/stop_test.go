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

// endAt returns a Monitor that calls end in the given iteration, counted over all runs.
func endAt(iteration int, end func() error) func(Event) error {
	iterationsSeen := 0
	return func(e Event) error {
		if e.Iteration > 0 {
			if iterationsSeen++; iterationsSeen == iteration {
				return end()
			}
		}
		return nil
	}
}

// TestStopStages checks that an error of the Monitor ends every stage. If a stage has a partial result, it returns
// this result, without an error for pcg.ErrStop and with the Monitor's error otherwise. A stage without a result
// returns the Monitor's error, also pcg.ErrStop.
func TestStopStages(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	failure := errors.New("failure")
	// failIn returns a Monitor that returns err once the named stage has done the given number of steps.
	failIn := func(err error, name stage.Name, done int) func(Event) error {
		return func(e Event) error {
			if e.Stage == name && e.Done >= done {
				return err
			}
			return nil
		}
	}
	sol := mustSolve(t, ranksProblem(300), Config{Kernel: gauss, Lambda: 0.1})
	for _, monitorErr := range []error{pcg.ErrStop, failure} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Features{S: 20},
			Monitor: failIn(monitorErr, stage.Lanczos, 5)}
		quality, err := newLab(t, ranksProblem(300), cfg).Quality(t.Context(),
			QualityOptions{Width: 1e-6, MaxExactN: -1})
		if quality == nil || quality.Steps != 5 || monitorErr == failure && err != failure ||
			monitorErr == pcg.ErrStop && err != nil {
			t.Errorf("%v: %v, %v", monitorErr, quality, err)
		}
		cfg.Monitor = failIn(monitorErr, stage.Kernel, 0)
		lab := newLab(t, ranksProblem(300), cfg)
		names := []stage.Name{stage.Solve}
		for _, definition := range stages {
			names = append(names, definition.Name)
		}
		for _, name := range names {
			if name == stage.Plan || name == stage.Tune { // they form no K of the lab
				continue
			}
			options := `{}`
			if name == "statdim" {
				options = `{"Method": "hutchinson"}`
			}
			if result, err := lab.RunNamed(t.Context(), name, []byte(options)); result != nil || err != monitorErr {
				t.Errorf("%v in K of %s: %v, %v", monitorErr, name, result, err)
			}
		}
		if result, err := Verify(t.Context(), sol.Model, VerifyOptions{Monitor: cfg.Monitor}); result != nil ||
			err != monitorErr {
			t.Errorf("%v in Verify: %v, %v", monitorErr, result, err)
		}
		cfg.Monitor = failIn(monitorErr, stage.Plan, 0)
		if result, err := newLab(t, ranksProblem(300), cfg).RunNamed(t.Context(), stage.Plan,
			[]byte("{}")); result != nil || err != monitorErr {
			t.Errorf("%v in a plan: %v, %v", monitorErr, result, err)
		}
		cfg.Monitor = failIn(monitorErr, stage.Tune, 0)
		search, err := newLab(t, ranksProblem(300), cfg).Tune(t.Context(), tune.Options{})
		if search == nil || len(search.Points) != 1 || monitorErr == failure && err != failure ||
			monitorErr == pcg.ErrStop && err != nil {
			t.Errorf("%v in a search: %v, %v", monitorErr, search, err)
		}
	}
}

// TestStopRanks checks that all ranks stop in the same iteration with the same answer if the Monitor of one rank
// returns an error.
func TestStopRanks(t *testing.T) {
	failure := errors.New("failure")
	for _, monitorErr := range []error{pcg.ErrStop, failure} {
		const rankCount, stopRank = 3, 1
		solutions, errs := make([]*Solution, rankCount), make([]error, rankCount)
		onRanks(rankCount, func(ranks comm.Comm) {
			cfg, rank := Config{Kernel: gauss, Lambda: 0.1, Seed: 5, Tol: 1e-8, Solver: PCG, Precond: Features{S: 60},
				Comm: ranks}, ranks.Rank()
			if rank == stopRank {
				cfg.Monitor = endAt(5, func() error { return monitorErr })
			}
			solutions[rank], errs[rank] = newLab(t, ranksProblem(300), cfg).Solve(t.Context())
		})
		for rank, sol := range solutions {
			if sol == nil || sol.Status != pcg.Stopped || sol.Iterations != 5 ||
				!mat.Equal(sol.Model.C, solutions[0].Model.C) || sol.TrueResidual != solutions[0].TrueResidual {
				t.Fatalf("rank %d: %v, %v", rank, sol, errs[rank])
			}
			if monitorErr == pcg.ErrStop && errs[rank] != nil ||
				monitorErr == failure && (errs[rank] == nil || !strings.Contains(errs[rank].Error(), "failure")) {
				t.Errorf("rank %d: %v", rank, errs[rank])
			}
		}
		if monitorErr == failure && !errors.Is(errs[stopRank], failure) {
			t.Errorf("%v", errs[stopRank])
		}
	}
}

// TestErrorBoundsHold checks on random problems that the bounds of ‖e‖_A, of ‖c‖_A and of the decision values hold
// against a dense reference, for each preconditioner, storage and kind of residual. In float64 and with landmarks,
// for which a lower bound μ of λ_min(M⁻¹A) is known, the median bound may be at most three times the error. The long
// suite has 100 problems.
func TestErrorBoundsHold(t *testing.T) {
	problems := suite.Scale(4, 8, 100)
	for name, preconditioner := range map[string]Preconditioner{"none": None{}, "features": Features{},
		"nystrom":    Nystrom{},
		"rpcholesky": RPCholesky{}, "vecchia": Vecchia{S: 10}} {
		for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16} {
			var ratios, certainRatios []float64
			for i := range problems {
				random := rng.New(77).Sub("problem", uint64(i))
				x := points.NewDense(60+random.Sub("n").IntN(0, 90), 3, nil)
				random.Sub("x").Normals(x.Data, 0)
				cfg := Config{
					Kernel:  kernel.Gaussian{Sigma: math.Pow(10, 1.2*random.Sub("sigma").Float64(0)-0.5)},
					Lambda:  math.Pow(10, -3*random.Sub("lambda").Float64(0)),
					Precond: preconditioner, Solver: []Solver{PCG, BlockPCG}[i%2], Storage: storage, Seed: uint64(i),
					Tol: []float64{1e-2, 1e-4}[i/2%2], MaxIter: 400,
					Exact: []ResidualPolicy{ExactResidual, StoredResidual}[i%3/2],
				}
				if approximation, ok := preconditioner.(stage.LowRank); ok {
					cfg.Precond = withSize(approximation, 25, cfg.Lambda*[]float64{1, 10}[i%2])
				}
				lab := newLab(t, classification(x, 2+i%3), cfg)
				sol, err := lab.Solve(t.Context())
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
				ref := newReference(t, cfg.Kernel, x, cfg.Lambda, lab.y)
				for j, bound := range sol.Error.Bounds {
					errorNorm, solutionNorm := ref.energyNorms(sol.Model.C, j)
					slack := 1e-9 * solutionNorm // allows for the rounding error of the reference
					if errorNorm > bound+slack || sol.Error.Certain != nil && errorNorm > sol.Error.Certain[j]+slack ||
						sol.Error.SolutionNormBounds[j] > solutionNorm+slack {
						t.Errorf("%s, %v, problem %d, column %d: ‖e‖_A = %.4g, ‖c‖_A = %.4g, bounds %+v", name, storage,
							i, j, errorNorm, solutionNorm, sol.Error)
					}
					ratios = append(ratios, bound/errorNorm)
					decision := sol.Error.Decisions()[j]
					if residual := (sol.ColumnTrueResiduals[j] + 1e-6) * mat.Norm(lab.y.ColView(j),
						2) / (2 * math.Sqrt(cfg.Lambda)); cfg.Exact == ExactResidual && decision > residual*(1+1e-6) {
						t.Errorf("%s, %v, problem %d: decision values within %.4g, half of ‖r‖/√λ is %.4g", name,
							storage, i, decision, residual)
					}
					var coefficientError, decisionError mat.VecDense
					coefficientError.SubVec(ref.c.ColView(j), sol.Model.C.ColView(j))
					decisionError.MulVec(ref.a, &coefficientError) // (K+λI)e
					decisionError.AddScaledVec(&decisionError, -cfg.Lambda, &coefficientError)
					if largest := mat.Norm(&decisionError, math.Inf(1)); largest > decision+slack {
						t.Errorf("%s, %v, problem %d, column %d: decision values differ by %.4g, bound %.4g", name,
							storage, i, j, largest, decision)
					}
					if sol.Error.Certain != nil {
						certainRatios = append(certainRatios, sol.Error.Certain[j]/errorNorm)
					}
				}
			}
			slices.Sort(ratios)
			slices.Sort(certainRatios)
			if len(ratios) == 0 {
				continue
			}
			median := ratios[len(ratios)/2]
			t.Logf("%s, %v: bounds %.3g times the error in the median, at most %.3g; certain ones %.3g", name, storage,
				median, ratios[len(ratios)-1], certainRatios[len(certainRatios)/2])
			if _, lowRank := preconditioner.(stage.LowRank); storage == gram.Float64 && lowRank && name != "features" &&
				median > 3 {
				t.Errorf("%s: bounds are %.3g times the error in the median", name, median)
			}
		}
	}
}

// TestStopLabels checks the stopping rule for labels. At most 5 % of the labels may be open when it stops, every
// settled label must be that of the exact solution, and fewer iterations must be needed than at a small tolerance. It
// runs for the labels of the training points and for those of other points.
func TestStopLabels(t *testing.T) {
	x, other := pointsByFormat(400, 3, 4)["float64"], classification(pointsByFormat(150, 3, 9)["float64"], 3)
	for _, stopRows := range []*datasets.Dataset{nil, other} { // nil stands for the training points
		cfg := Config{Kernel: gauss, Lambda: 0.1, Precond: withSize(Nystrom{}, 40, 0.1), Solver: PCG, Tol: 1e-8}
		full := mustSolve(t, classification(x, 3), cfg)
		cfg.Stop, cfg.StopRows = bound.Stop{Rule: bound.ByLabels, MaxUndecided: 0.05}, stopRows
		lab := newLab(t, classification(x, 3), cfg)
		sol := mustSolve(t, classification(x, 3), cfg)
		rows := classification(x, 3)
		if stopRows != nil {
			rows = stopRows
		}
		predicted := testkit.Must(sol.Model.Predict(t.Context(), rows, sol.PredictOptions()))
		if stopRows != nil {
			testkit.Equal(t, sol.CheckedLabels, 0)
			sol.CountUndecidedLabels(predicted, rows)
		}
		exact := newReference(t, cfg.Kernel, x, cfg.Lambda, lab.y).predict(rows.X)
		changed, wrong := 0, 0
		exactLabels := lab.coding.Decode(exact)
		for i, class := range predicted.Class {
			if class != exactLabels[i] {
				changed++
				row := mat.NewDense(1, 3, predicted.Decision.RawRowView(i))
				wrong += 1 - bound.UndecidedRows(row, []float64{1}, sol.Error.Bounds)
			}
		}
		open := float64(sol.UndecidedLabels) / float64(sol.CheckedLabels)
		if sol.Status != pcg.Stopped || sol.Criterion != "labels" || sol.CheckedLabels != rows.Len() || open > 0.05 ||
			changed > sol.UndecidedLabels || wrong > 0 {
			t.Errorf("%v, criterion %q: %d of %d open; %d changed, %d of them settled", sol.Status, sol.Criterion,
				sol.UndecidedLabels, sol.CheckedLabels, changed, wrong)
		}
		if sol.Iterations >= full.Iterations || !strings.Contains(sol.String(), "labels are settled") {
			t.Errorf("%d iterations, %d in full; %s", sol.Iterations, full.Iterations, sol)
		}
		cfg.Tol = 0.3
		// A loose tolerance is reached before the labels are settled.
		if first := mustSolve(t, classification(x, 3), cfg); first.Criterion != "residual" || !first.Converged() {
			t.Errorf("τ = 0.3: %v, criterion %q", first.Status, first.Criterion)
		}
	}
}

// TestStopRefused checks that a stopping rule that does not suit the task or the solver is refused, and that the
// default solver is one that supports the rule.
func TestStopRefused(t *testing.T) {
	x := pointsByFormat(30, 3, 1)["float64"]
	labels := bound.Stop{Rule: bound.ByLabels, MaxUndecided: 0.1}
	for want, c := range map[string]struct {
		train *datasets.Dataset
		cfg   Config
	}{
		"classification":         {regression(x), Config{Stop: labels}},
		"Stop and Solver direct": {classification(x, 2), Config{Stop: labels, Solver: Direct}},
		"want a share":           {classification(x, 2), Config{Stop: bound.Stop{Rule: bound.ByLabels}}},
	} {
		c.cfg.Kernel, c.cfg.Lambda = gauss, 0.1
		testkit.Fails(t, testkit.ErrOf(New(c.train, c.cfg)), want)
	}
	if lab := newLab(t, classification(x, 2),
		Config{Kernel: gauss, Lambda: 0.1, Stop: labels}); lab.cfg.Solver == Direct {
		t.Error("auto takes the direct solver, which does not stop")
	}
}

// TestStopRulesOnRanks checks that each stopping rule ends the iteration on three ranks with the same answer and
// bounds as in one process.
func TestStopRulesOnRanks(t *testing.T) {
	const n = 560 // two of the units in which rows are distributed over ranks
	for name, cfg := range map[string]Config{
		"anorm": {Precond: withSize(Nystrom{}, 40, 0.1), Solver: PCG, Tol: 1e-2, Stop: bound.Stop{Rule: bound.ByANorm}},
		"labels": {Precond: withSize(RPCholesky{}, 30, 0.1), Solver: BlockPCG, Tol: 1e-6,
			Stop: bound.Stop{Rule: bound.ByLabels, MaxUndecided: 0.1}},
		"predictions": {Precond: Nystrom{S: 20}, Kernel: kernel.Gaussian{Sigma: 0.3}, Lambda: 1e-3},
	} {
		if cfg.Storage = gram.Float64; cfg.Kernel == nil {
			cfg.Kernel, cfg.Lambda = gauss, 0.1
		}
		want := mustSolve(t, ranksProblem(n), cfg)
		if want.Criterion != name || want.Noise != nil && want.Noise.Products == 0 {
			t.Fatalf("%s: %v", name, want)
		}
		onEachRank(t, 3, n, cfg, func(rank int, sol *Solution) {
			testkit.Equal(t, sameAnswer(sol, want), "", name, rank)
		})
	}
}
