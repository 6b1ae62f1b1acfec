package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// solve runs a case that one of krrlab's solvers solves.
func (s *session) solve(ctx context.Context, c Case) (*Result, error) {
	cfg, err := s.config(c)
	if err != nil {
		return nil, err
	}
	lab, err := s.labFor(cfg)
	if err != nil {
		return nil, err
	}
	if lab.Planning() {
		var options krrlab.PlanOptions
		if test := s.testRows(c); test != nil {
			options.TestRows = test.Len()
		}
		if _, err := lab.Plan(ctx, options); err != nil {
			return nil, err
		}
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		return nil, err
	}
	result := s.newResult(c)
	result.Status, result.Converged, result.Iterations = Status(sol.Status.String()), sol.Converged(), sol.Iterations
	result.TrueResidual, result.SampledResidual, result.Kappa = finitePtr(float64(sol.TrueResidual)),
		finitePtr(float64(sol.SampledResidual)), finitePtr(float64(sol.Kappa))
	result.ResidualKind = sol.ResidualKind
	result.History, result.Reached = history(sol.History), reachedTolerances(sol.History)
	result.Seconds, result.Shared = sol.Seconds, sol.Shared
	result.Seconds.Load = s.loadSeconds
	result.Storage, result.Form = sol.Storage, sol.Form
	if c.Solver == krrlab.AutoSolver {
		result.Chosen = sol.Method()
	}
	if sol.KeptShare.Known() {
		result.Values = finiteValues(map[string]float64{"kept": float64(sol.KeptShare),
			"dropped": float64(sol.DroppedBound)})
	}
	return result, s.addScores(c, result, func(test *datasets.Dataset) (*model.Score, error) {
		return sol.Model.Evaluate(ctx, test, sol.PredictOptions())
	})
}

// labFor returns a lab that shares its matrices with the other cases of the session. For Auto it returns a lab that
// shares nothing, because existing matrices could change which method is the fastest.
func (s *session) labFor(cfg krrlab.Config) (*krrlab.Lab, error) {
	if cfg.Solver == krrlab.AutoSolver {
		return krrlab.New(s.train, cfg)
	}
	if s.lab == nil {
		var err error
		s.lab, err = krrlab.New(s.train, cfg)
		return s.lab, err
	}
	return s.lab.With(func(c *krrlab.Config) { *c = cfg })
}

// prefersFloat64 reports whether the case is to be solved with K in float64, as in the paper. This is so for conjugate
// gradients without a preconditioner, if the case does not set the storage and K, of which half is stored, needs at
// most 5 GB (n ≤ 35,000). With K in float32 orthogonality is lost earlier, which costs iterations: 557 on ADULT, and
// 366 in float64.
func (c Case) prefersFloat64(n int) bool {
	return c.Solver == krrlab.CG && c.Storage == gram.Auto && n <= 35_000
}

// config returns the configuration of krrlab.New for a case.
func (s *session) config(c Case) (cfg krrlab.Config, err error) {
	cfg = c.Config
	if cfg.Kernel, err = kernel.FromSpec(c.Kernel); err == nil {
		cfg.Precond, err = c.Preconditioner(cfg.Kernel)
	}
	if n := s.train.Len(); c.prefersFloat64(n) &&
		(accel.Budget{Limit: s.opt.Memory}).Fits(2*gram.RankBytes(n, gram.Float64, 1)) {
		cfg.Storage = gram.Float64
	}
	cfg.Memory, cfg.Monitor = s.opt.Memory, s.monitor
	return cfg, err
}

// newResult returns the result of a case with the description of its data.
func (s *session) newResult(c Case) *Result {
	result := &Result{Data: s.info}
	test := s.testRows(c)
	if test == nil {
		return result
	}
	if result.Data.TestN = test.Len(); result.Data.TestN < s.info.TestN {
		result.Data.Note = joinNotes(fmt.Sprintf("the first %d of %d test rows", result.Data.TestN, s.info.TestN),
			result.Data.Note)
	}
	return result
}

// addScores adds the test errors to the result, if the case is tested. evaluate computes the scores of the test rows.
func (s *session) addScores(c Case, r *Result, evaluate func(test *datasets.Dataset) (*model.Score, error)) error {
	test := s.testRows(c)
	if test == nil {
		return nil
	}
	start := time.Now()
	score, err := evaluate(test)
	if err != nil {
		return err
	}
	r.Seconds.Predict = time.Since(start).Seconds()
	r.TestN = score.N
	r.TestError, r.RMSE, r.RelErr = finitePtr(score.ErrorRate), finitePtr(score.RMSE), finitePtr(score.RelErr)
	r.BestError = finitePtr(score.BestError)
	return nil
}

// finitePtr returns a pointer to v, or nil if v is not finite.
func finitePtr(v float64) *float64 {
	if !krrlab.Number(v).Known() {
		return nil
	}
	return &v
}

// history returns the worst residual after each iteration, rounded to four digits.
func history(rows []krrlab.HistoryRow) []float64 {
	out := make([]float64, len(rows))
	for i, row := range rows {
		out[i] = stage.RoundDigits(row.Residual, 4)
	}
	return out
}

// reachedTolerances returns the number of iterations after which every column had been within 10⁻¹, 10⁻², …. A solve
// with this tolerance would have ended there, because a column that has converged is not changed any more and the other
// columns do not depend on it. (In block conjugate gradients the columns depend on each other, and a solve with this
// tolerance could end after another number of iterations.)
func reachedTolerances(rows []krrlab.HistoryRow) []Reached {
	if len(rows) == 0 || len(rows[0].Columns) == 0 {
		return nil
	}
	smallest := slices.Repeat([]float64{math.Inf(1)}, len(rows[0].Columns)) // smallest residual of each column so far
	var out []Reached
	for k, row := range rows {
		worst := 0.0
		for j, v := range row.Columns {
			smallest[j] = math.Min(smallest[j], v)
			worst = math.Max(worst, smallest[j])
		}
		for len(out) < len(decades) && worst <= stage.TolFraction*decades[len(out)] {
			out = append(out, Reached{decades[len(out)], k})
		}
	}
	return out
}

// decades are the tolerances of reachedTolerances: the powers of ten that a solve in float64 can reach.
var decades = []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8}
