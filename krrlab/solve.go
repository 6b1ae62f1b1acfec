package krrlab

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
)

// Solve computes the coefficients with the configured solver. If ctx ends first it
// returns ctx's error.
func (l *Lab) Solve(ctx context.Context) (*Solution, error) {
	if l.cfg.Backend != nil {
		return l.solveElsewhere(ctx)
	}
	end, err := l.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	start := time.Now()
	s := &solve{Lab: l, sol: l.newSolution()}
	var c *mat.Dense
	if l.cfg.Solver == Direct {
		c, err = s.direct(ctx)
	} else {
		c, err = s.iterate(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.settleSampled()
	sol := s.sol
	sol.finish()
	sol.Model = l.model(c, sol, start)
	sol.Seconds.Total = time.Since(start).Seconds()
	l.countWaiting(sol)
	return sol, nil
}

// solveElsewhere is Solve by the backend.
func (l *Lab) solveElsewhere(ctx context.Context) (*Solution, error) {
	sol, err := send[Solution](ctx, l, "solve", nil)
	if err != nil {
		return nil, err
	}
	n, _, t := l.Dims()
	if rows, columns := sol.Model.C.Dims(); rows != n || columns != t {
		return nil, fmt.Errorf("krrlab: the backend returned coefficients %d×%d, want %d×%d", rows, columns, n, t)
	}
	sol.lab, sol.Model = l, l.model(sol.Model.C, sol, time.Now())
	return sol, nil
}

// model returns the model with the coefficients C that were begun at a time.
func (l *Lab) model(c *mat.Dense, sol *Solution, begun time.Time) *model.Model {
	return &model.Model{
		Kernel: l.cfg.Kernel, Lambda: l.cfg.Lambda, X: l.train.X, C: c, Labels: l.coding.Labels,
		Scaling: l.train.Scaling, Columns: l.train.Columns,
		Origin: model.Origin{
			Dataset: l.train.Name, Solver: l.cfg.Solver.String(), Status: sol.Status.String(), Tol: l.cfg.Tol,
			TrueResidual: float64(sol.TrueResidual), Seed: l.cfg.Seed, Created: begun.UTC().Format(time.RFC3339),
		},
	}
}

// iterate solves by (block) PCG or CG, once for each preconditioner.
func (s *solve) iterate(ctx context.Context) (*mat.Dense, error) {
	if err := s.checkMemory(ctx); err != nil {
		return nil, err
	}
	var err error
	if s.keep, s.as, err = s.newKeeper(ctx, s.sol); err != nil {
		return nil, err
	}
	defer s.keep.close()
	var answers []*mat.Dense
	short := pcg.MaxIterations // how one that did not converge ended, as far as is known
	for rep := range s.cfg.Repeat {
		c := s.keep.answer(rep)
		if c != nil && rep+1 < s.cfg.Repeat { // the last one's M and K are needed all the same
			answers = append(answers, c)
			continue
		}
		if err := s.matrices(ctx, rep); err != nil {
			return nil, err
		}
		if c == nil {
			var exact *gram.Matrix
			if s.exact() {
				exact = s.a.Exact(s.exactness())
			}
			o := &pcg.Options{Tol: s.cfg.Tol}
			s.keep.begin(s.sol, s.a.Choice(), rep, answers, o)
			if c, err = s.pcg(ctx, o, exact, exactKind); err != nil {
				return nil, err
			}
			if !s.sol.Converged() {
				short = s.sol.Status
			}
		}
		answers = append(answers, c)
	}
	if s.keep.refining() {
		return s.refine(ctx, answers, answers[0])
	}
	c := answers[0]
	if len(answers) > 1 {
		if c, err = s.median(ctx, answers, short); err != nil {
			return nil, err
		}
	}
	if s.exact() {
		return c, nil
	}
	rounding := s.sol.Converged() || s.sol.Status == pcg.Inaccurate || s.sol.Status == pcg.Stagnated
	if err = s.checkRows(ctx, c); err != nil || !rounding || s.within() {
		return c, err
	}
	return s.refine(ctx, answers, c)
}

// pcg runs (preconditioned, block) conjugate gradients on AC = Y from C = o.InitX, nil for 0. If
// finer is not nil the true residual is taken with it, and where K as stored is too
// coarse for the tolerance, the restarts of package pcg refine C by it.
func (s *solve) pcg(ctx context.Context, o *pcg.Options, finer *gram.Matrix, kind string) (*mat.Dense, error) {
	sol, stored := s.sol, s.a.Choice()
	o.Aim, o.MaxIter, o.Monitor = aim, s.cfg.MaxIter, s.watchSolve()
	if sol.ResidualKind = storedKind; finer == nil && o.InitX == nil && s.a.Storage() != gram.Float64 { // leave room for what the rows will find
		o.Aim = max(aim32-share*stored.Error/(s.cfg.Lambda*s.cfg.Tol), 0.5)
	}
	if finer != nil {
		o.Exact, sol.ResidualKind = finer, kind
		o.Refine = min(reach*stored.Error/s.cfg.Lambda, 0.5)
	}
	start, count := time.Now(), s.countTraffic()
	run := pcg.Solve
	if s.cfg.Solver == BlockPCG {
		run = pcg.SolveBlock
	}
	res, err := run(ctx, s.a, s.m, s.y, o)
	if err != nil {
		return nil, err
	}
	sol.Seconds.Residual += res.Stats.Exact.Seconds
	sol.Seconds.Solve += time.Since(start).Seconds() - res.Stats.Exact.Seconds
	count(res)
	sol.Result = res
	sol.Iterations += res.Iterations
	sol.Status = res.Status
	sol.TrueResiduals, sol.Roundings, s.r = res.TrueRelRes, res.Rounding, res.R
	if k := res.Cond(); !math.IsNaN(k) {
		sol.Kappa = Number(k)
	}
	for _, h := range res.History.RelRes {
		sol.History = append(sol.History, HistRow{len(sol.History), floats.Max(h), h})
	}
	return res.X, nil
}

// watchSolve returns a monitor that reports the residual and the time left, judged
// by the mean rate of convergence so far.
func (l *Lab) watchSolve() func(*pcg.Iteration) error {
	start := time.Now()
	return func(it *pcg.Iteration) error {
		e := Event{Stage: "solve", Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1}
		if rate := -math.Log(it.MaxRelRes) / float64(it.Index); it.Index > 2 && rate > 0 {
			left := math.Log(it.MaxRelRes/l.cfg.Tol) / rate
			left = min(max(left, 0), float64(l.cfg.MaxIter-it.Index))
			e.Remaining = time.Duration(left * float64(time.Since(start)) / float64(it.Index))
		}
		l.cfg.Monitor(e)
		return nil
	}
}

// refine takes the answer c of K as stored to where K itself meets the tolerance: by K as stored, if the
// rows checked leave half of the tolerance for it, else by what residuals can be taken with.
func (s *solve) refine(ctx context.Context, answers []*mat.Dense, c *mat.Dense) (*mat.Dense, error) {
	sol := s.sol
	if sol.SampledResiduals == nil { // resumed
		if err := s.residual(ctx, s.a, c); err != nil {
			return nil, err
		}
		if err := s.checkRows(ctx, c); err != nil {
			return nil, err
		}
	}
	o := &pcg.Options{InitX: c, Tol: s.cfg.Tol - 1.2*s.slack()*worst(sol.StorageResiduals)}
	var finer *gram.Matrix
	kind := storedKind
	if !(o.Tol >= s.cfg.Tol/2) {
		var err error
		if finer, kind, err = s.finer(ctx, s.a); err != nil || finer == nil {
			return c, err
		}
		if o.Tol = s.cfg.Tol; !finer.Choice().Certain { // leave room for what the rows will find
			o.Tol *= min(max(aim-3*share*finer.Choice().Error/(s.cfg.Lambda*s.cfg.Tol), 0.25), 0.75)
		}
	}
	s.keep.begin(s.sol, s.a.Choice(), s.cfg.Repeat, answers, o)
	c, err := s.pcg(ctx, o, finer, kind)
	if err != nil || finer != nil && finer.Choice().Certain {
		sol.SampledResiduals, sol.StorageResiduals, sol.SampledRows = nil, nil, 0
		return c, err
	}
	return c, s.checkRows(ctx, c)
}

// median picks the answer of least median A-norm distance to the others, column by
// column, and recomputes its residual. short is the status if that is not within τ.
func (s *solve) median(ctx context.Context, answers []*mat.Dense, short pcg.Status) (*mat.Dense, error) {
	c, err := pcg.MedianByNorm(ctx, s.a, answers)
	if err != nil {
		return nil, err
	}
	check := s.a
	if s.exact() {
		check = s.a.Exact(s.exactness())
	}
	if err := s.residual(ctx, check, c); err != nil {
		return nil, err
	}
	s.sol.Status = pcg.Converged
	for j, v := range s.sol.TrueResiduals {
		if s.sol.Roundings != nil {
			v += s.sol.Roundings[j]
		}
		if !(v <= s.cfg.Tol) {
			s.sol.Status = short
		}
	}
	return c, nil
}

// direct solves by a dense Cholesky factorization: in float64 up to n = DirectBelow or
// where float64 storage is asked for, beyond in float32 with refinement by float64
// residuals.
func (s *solve) direct(ctx context.Context) (*mat.Dense, error) {
	o := &direct.Options{Tol: s.cfg.Tol, Progress: s.watch("kernel")}
	if s.cfg.Storage == gram.Float32 || s.cfg.Storage == gram.Auto && s.train.Len() > DirectBelow {
		o.Precision = direct.Float32Refined
	}
	if s.cfg.Memory > 0 {
		o.Memory = max(1, s.cfg.Memory-pointBytes(s.train.X))
	}
	res, err := direct.Solve(ctx, s.cfg.Kernel, s.train.X, s.cfg.Lambda, s.y, o)
	if err != nil {
		return nil, err
	}
	sol := s.sol
	sol.Status = res.Status
	sol.TrueResiduals, sol.Roundings, sol.ResidualKind = res.TrueRelRes, res.Rounding, exactKind
	sol.KBound = Number(res.KError)
	sol.Storage, sol.KBytes = fmt.Sprintf("dense %v", res.Precision), res.Bytes
	sol.Seconds.Kernel, sol.Seconds.Factor = res.Seconds.Kernel, res.Seconds.Factor
	sol.Seconds.Solve, sol.Seconds.Residual = res.Seconds.Solve, res.Seconds.Residual
	for i, r := range res.History {
		sol.History = append(sol.History, HistRow{i, floats.Max(r), r})
	}
	return res.X, nil
}
