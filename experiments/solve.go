package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// solve runs a case of one of the solvers.
func (s *session) solve(ctx context.Context, c Case) (*Result, error) {
	cfg, err := s.config(c)
	if err != nil {
		return nil, err
	}
	lab, err := s.labOf(cfg)
	if err != nil {
		return nil, err
	}
	if lab.Planning() {
		var o krrlab.PlanOptions
		if test := s.tests(c); test != nil {
			o.Tests = test.Len()
		}
		if _, err := lab.Plan(ctx, o); err != nil {
			return nil, err
		}
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		return nil, err
	}
	r := s.begin(c)
	r.Status, r.Converged, r.Iterations = Status(sol.Status.String()), sol.Converged(), sol.Iterations
	r.TrueResidual, r.SampledResidual, r.Kappa = finitePtr(float64(sol.TrueResidual)),
		finitePtr(float64(sol.SampledResidual)), finitePtr(float64(sol.Kappa))
	r.ResidualKind = sol.ResidualKind
	r.History, r.Reached = history(sol.History), reached(sol.History)
	r.Seconds, r.Shared = sol.Seconds, sol.Shared
	r.Seconds.Load = s.load
	r.Storage, r.Form = sol.Storage, sol.Form
	if c.Solver == krrlab.AutoSolver {
		r.Chosen = sol.Method()
	}
	if sol.KeptShare.Known() {
		r.Values = finite(map[string]float64{"kept": float64(sol.KeptShare), "dropped": float64(sol.DroppedBound)})
	}
	return r, s.judge(c, r, func(test *datasets.Dataset) (*model.Score, error) {
		return sol.Model.Evaluate(ctx, test, sol.PredictOptions())
	})
}

// labOf returns a lab that shares its matrices with those of the session's other cases, with Auto one that does not:
// what is there would make another method the fastest.
func (s *session) labOf(cfg krrlab.Config) (*krrlab.Lab, error) {
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

// inDouble reports whether a case of n points is conjugate gradients without a preconditioner that are counted in
// double precision, as the paper's are: where nothing else is asked for and K takes 5 GB at most. In float32
// orthogonality is lost sooner (ADULT: 557 iterations for 366).
func (c Case) inDouble(n int) bool {
	return c.Solver == krrlab.CG && c.Storage == gram.Auto && n <= 35_000
}

// config turns a case into a configuration.
func (s *session) config(c Case) (cfg krrlab.Config, err error) {
	cfg = c.Config
	if cfg.Kernel, err = kernel.FromSpec(c.Kernel); err == nil {
		cfg.Precond, err = c.Preconditioner(cfg.Kernel)
	}
	if n := s.train.Len(); c.inDouble(n) && (s.opt.Memory == 0 || gram.RankBytes(n, gram.Float64, 1) < s.opt.Memory/2) {
		cfg.Storage = gram.Float64
	}
	cfg.Memory, cfg.Monitor = s.opt.Memory, s.monitor
	return cfg, err
}

// begin returns a result with what is known before a case is run.
func (s *session) begin(c Case) *Result {
	r := &Result{Data: s.info}
	t := s.tests(c)
	if t == nil {
		return r
	}
	if r.Data.TestN = t.Len(); r.Data.TestN < s.info.TestN {
		r.Data.Note = joinNotes(fmt.Sprintf("the first %d of %d test rows", r.Data.TestN, s.info.TestN), r.Data.Note)
	}
	return r
}

// judge puts the judgment on the test data, if there are any, into the result.
func (s *session) judge(c Case, r *Result, of func(test *datasets.Dataset) (*model.Score, error)) error {
	test := s.tests(c)
	if test == nil {
		return nil
	}
	start := time.Now()
	score, err := of(test)
	if err != nil {
		return err
	}
	r.Seconds.Predict = time.Since(start).Seconds()
	r.TestN = score.N
	r.TestError, r.RMSE, r.RelErr = finitePtr(score.ErrorRate), finitePtr(score.RMSE), finitePtr(score.RelErr)
	r.BestError = finitePtr(score.BestError)
	return nil
}

// finitePtr returns a pointer to v, nil for what is not finite.
func finitePtr(v float64) *float64 {
	if !krrlab.Number(v).Known() {
		return nil
	}
	return &v
}

// history returns the worst residual after each iteration, to four digits.
func history(h []krrlab.HistRow) []float64 {
	out := make([]float64, len(h))
	for i, x := range h {
		out[i] = stage.RoundDigits(x.Residual, 4)
	}
	return out
}

// reached returns after how many iterations every column had been within 10⁻¹, 10⁻², …: where
// the solve to that tolerance would have ended, since a column that has converged is
// left as it is, and the others do not depend on it. (Those of block conjugate gradients do: there
// it is when they had come so far, and no more.)
func reached(h []krrlab.HistRow) []Reached {
	if len(h) == 0 || len(h[0].Columns) == 0 {
		return nil
	}
	least := slices.Repeat([]float64{math.Inf(1)}, len(h[0].Columns)) // so far, of each column
	var out []Reached
	for k, x := range h {
		worst := 0.0
		for j, v := range x.Columns {
			least[j] = math.Min(least[j], v)
			worst = math.Max(worst, least[j])
		}
		for len(out) < len(decades) && worst <= stage.Aim*decades[len(out)] {
			out = append(out, Reached{decades[len(out)], k})
		}
	}
	return out
}

// decades are the tolerances that reached looks for.
var decades = []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8}
