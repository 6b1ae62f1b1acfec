package krrlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/race"
	"github.com/krrlab/lab/krrlab/results"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/weighted"
)

// solve solves by the method that the configuration names.
func (l *Lab) solve(ctx context.Context) (*Solution, error) {
	start := time.Now()
	s := &solve{Lab: l, sol: l.newSolution()}
	solver := s.iterate
	if l.cfg.Solver == Direct {
		solver = s.direct
	}
	c, err := solver(ctx)
	if err == nil && s.stop == errLate {
		return s.sol, s.stop
	}
	if c == nil || err != nil && ctx.Err() == nil {
		return nil, err
	}
	sol := s.sol
	switch {
	case err != nil:
		sol.Status = statusOf(ctx)
	case sol.Status == pcg.Stopped:
		err = s.stop
	}
	s.settleStatus()
	sol.finish()
	if e := s.certify(ctx, c); e != nil && err == nil && ctx.Err() == nil {
		return nil, e
	}
	sol.Model = l.model(c, sol, start)
	sol.SetTraining(l.given)
	sol.Seconds.Total = time.Since(start).Seconds()
	if r := sol.Ranks; r != nil { // what they have sent in all
		t := l.comm.Traffic()
		r.Bytes, r.Seconds = t.Bytes, t.Seconds
	}
	return sol, err
}

// errLate ends a planned solve that goes wrong, and goes over to the direct solver.
var errLate = errors.New("krrlab: the iteration takes longer than planned")

// statusOf returns the status of a solve that the end of ctx interrupts.
func statusOf(ctx context.Context) pcg.Status {
	if stage.Stopped(ctx) {
		return pcg.Stopped
	}
	return pcg.Canceled
}

// adopt completes a solution that the Backend of a lab returned.
func (s *Solution) adopt(ctx context.Context, l *Lab) error {
	n, _, t := l.Dims()
	if rows, columns := s.Model.C.Dims(); rows != n || columns != t {
		return fmt.Errorf("krrlab: the backend returned coefficients %d×%d, want %d×%d", rows, columns, n, t)
	}
	if s.Status == pcg.Canceled {
		s.Status = statusOf(ctx)
	}
	s.lab, s.Model = l, l.model(s.Model.C, s, time.Now())
	s.SetTraining(l.given)
	return nil
}

// model returns the model with the coefficients C that were begun at a time.
func (l *Lab) model(c *mat.Dense, sol *Solution, begun time.Time) *model.Model {
	k, weighs := l.base()
	if weighs {
		c = mat.DenseCopyOf(c)
		weighted.Rows(c, l.given.Weights)
	}
	return &model.Model{
		Kernel: k, Lambda: l.cfg.Lambda, X: l.given.X, C: c, Weighted: l.given.Weights != nil, Labels: l.coding.Labels, Targets: l.given.Targets, Mean: l.coding.Mean,
		Scaling: l.given.Scaling, Columns: l.given.Columns, Error: sol.Error.Model(),
		Origin: model.Origin{
			Dataset: l.given.Name, Solver: l.cfg.Solver.String(), Method: sol.Method(), Status: sol.Status.String(), Tol: l.cfg.Tol,
			TrueResidual: new(float64(sol.TrueResidual)), Seed: l.cfg.Seed, Created: begun.UTC().Format(time.RFC3339),
		},
	}
}

// iterate solves by (block) PCG or CG, once for each preconditioner.
func (s *solve) iterate(ctx context.Context) (*mat.Dense, error) {
	if err := s.checkMemory(ctx); err != nil {
		return nil, err
	}
	var err error
	if s.saved, s.as, err = s.openCheckpoints(ctx, s.sol); err != nil {
		return nil, err
	}
	defer s.saved.close()
	var answers []*mat.Dense
	short := pcg.MaxIterations // how one that did not converge ended, as far as is known
	for rep := range s.cfg.Repeat {
		c := s.saved.answer(rep)
		if c != nil && rep+1 < s.cfg.Repeat { // the last one's M and K are needed all the same
			answers = append(answers, c)
			continue
		}
		finished := *s.sol
		if err := s.matrices(ctx, rep); err != nil {
			return s.reached(ctx, answers, nil, &finished, err)
		}
		if c == nil {
			o := &pcg.Options{Tol: s.tol(), InitX: s.cfg.Start}
			if err := s.measureStart(ctx); err != nil {
				return s.reached(ctx, answers, nil, &finished, err)
			}
			s.saved.begin(s.sol, s.a.Choice(), rep, answers, o)
			if c, err = s.pcg(ctx, o, s.exactMatrix(), results.InFloat64); err != nil || s.sol.Status == pcg.Stopped {
				c, err = s.reached(ctx, answers, c, &finished, err)
				if err == nil && s.bounds.Ended {
					return s.ended(ctx, c)
				}
				return c, err
			}
			if !s.sol.Converged() {
				short = s.sol.Status
			}
		}
		answers = append(answers, c)
	}
	if s.saved.refining() {
		return s.refine(ctx, answers, answers[0])
	}
	c := answers[len(answers)-1]
	if len(answers) > 1 {
		median, err := s.median(ctx, answers, short)
		if err != nil {
			return c, err
		}
		c = median
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

// reached returns what there is when the run after those of the given answers is ended from outside at c,
// nil if it has not begun: c if it is the first, or else the median of the answers, or where err says that no
// time is left for it the last one, of which finished is what is known.
func (s *solve) reached(ctx context.Context, answers []*mat.Dense, c *mat.Dense, finished *Solution, err error) (*mat.Dense, error) {
	if len(answers) > 0 {
		sol := s.sol
		if err == nil {
			c, err = s.median(ctx, answers, pcg.Stopped)
		}
		if err != nil {
			finished.Iterations, finished.History, finished.Seconds = sol.Iterations, sol.History, sol.Seconds
			*sol = *finished
			return answers[len(answers)-1], err
		}
		sol.Status = pcg.Stopped
	}
	if c == nil || err != nil || s.exact() {
		return c, err
	}
	return c, s.checkRows(ctx, c)
}

// ended returns the answer c that the rule of Config.Stop ended by its recurrence, or, where its bounds do not meet the rule, what
// its residual leads to.
func (s *solve) ended(ctx context.Context, c *mat.Dense) (*mat.Dense, error) {
	if err := s.certify(ctx, c); err != nil || s.sol.Reached() {
		return c, err
	}
	return s.refine(ctx, []*mat.Dense{c}, c)
}

// exactMatrix returns K+λI recomputed where true residuals are taken with it from the start, else nil.
func (s *solve) exactMatrix() *gram.Matrix {
	if !s.exact() {
		return nil
	}
	return s.a.Exact(s.exactness())
}

// pcg runs (preconditioned, block) conjugate gradients on AC = Y from C = o.InitX, nil for 0. If
// finer is not nil the true residual is taken with it, and where K as stored is too
// coarse for the tolerance, the restarts of package pcg refine C by it.
func (s *solve) pcg(ctx context.Context, o *pcg.Options, finer *gram.Matrix, kind string) (*mat.Dense, error) {
	sol := s.sol
	if err := s.beginBounds(ctx, o); err != nil {
		return nil, err
	}
	s.goOn(o)
	s.aim(o, s.a, finer)
	o.MaxIter, o.Monitor = s.cfg.MaxIter, s.watchSolve(ctx, sol.Iterations, s.bounds.Enough)
	if sol.ResidualKind = results.AsStored; finer != nil {
		sol.ResidualKind = kind
	}
	start, count := time.Now(), s.countTraffic()
	run := pcg.Solve
	if s.cfg.Solver == BlockPCG {
		run = pcg.SolveBlock
	}
	res, err := run(ctx, s.a, s.m, s.y, o)
	if res == nil || res.Status == pcg.Failed {
		return nil, err
	}
	if res.Status == pcg.Stopped {
		s.stop, err = err, ctx.Err()
	}
	count(res)
	s.r = res.R
	sol.TakeOn(res, s.bounds.Basis.History(res), time.Since(start).Seconds())
	if err != nil || res.Status == pcg.Stopped && math.IsNaN(res.MaxTrueRelRes()) {
		sol.TrueResiduals, sol.Roundings, sol.ResidualKind = nil, nil, results.ByRecurrence
	}
	if err != nil && sol.Iterations == 0 {
		return nil, err
	}
	return res.X, err
}

// goOn lets a solve with the winner of a race go on from where that ended.
func (s *solve) goOn(o *pcg.Options) {
	w := s.won
	if w.state == nil || o.Resume != nil || o.InitX != nil || o.LambdaMin != w.mu || s.a != w.a || s.m != w.m || s.cfg.Solver == BlockPCG || o.Tol != w.tol || s.cfg.MaxIter <= w.done {
		return
	}
	o.Resume = w.state
	s.share(true, "race")
}

// aim sets what the recurrence aims at for products with a, and how it is held against K where that is finer.
func (l *Lab) aim(o *pcg.Options, a, finer *gram.Matrix) {
	stored := a.Choice()
	if o.Aim = aim; finer == nil && o.InitX == l.cfg.Start && a.Storage() != gram.Float64 { // leave room for what the rows will find
		o.Aim = max(aim32-share*stored.Error/(l.cfg.Lambda*l.cfg.Tol), 0.5)
	}
	if finer != nil {
		o.Exact, o.Refine = finer, min(reach*stored.Error/l.cfg.Lambda, 0.5)
	}
}

// watchSolve returns a monitor that reports the residual and the time left, as race.Forecast has it, with the bound of the error that enough returns, nil for none; an error
// of it ends the solve, and so does a plan by which it is late after those iterations and the ones done before. On ranks all return an error if one
// or the Monitor of one does.
func (l *Lab) watchSolve(ctx context.Context, before int, enough func(context.Context, *pcg.Iteration) (float64, error)) func(*pcg.Iteration) error {
	start, residuals := time.Now(), []float64{1}
	return func(it *pcg.Iteration) error {
		e := Event{Stage: stage.Solve, Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1}
		residuals = append(residuals, it.MaxRelRes)
		low, left, _ := race.Forecast(residuals, l.cfg.Tol)
		if it.Index > 2 && !math.IsInf(left, 1) {
			e.Remaining = time.Duration(min(left, float64(l.cfg.MaxIter-it.Index)) * float64(time.Since(start)) / float64(it.Index))
		}
		var err error
		if enough != nil {
			e.Bound, err = enough(ctx, it)
		}
		if err == nil && left > 0 && l.plan.Late(before+it.Index, low, left) {
			err = errLate
		}
		if told := l.cfg.Monitor(e); told != nil {
			err = told
		}
		return stage.AgreeToStop(ctx, l.comm, err)
	}
}

// refine takes the answer c to where K itself meets the tolerance: by K as stored, if the
// rows checked leave half of the tolerance for it, else by what residuals can be taken with. Where they can be taken with nothing else, it goes on
// with an answer only that ended before K as stored met the tolerance.
func (s *solve) refine(ctx context.Context, answers []*mat.Dense, c *mat.Dense) (*mat.Dense, error) {
	sol, tau := s.sol, s.tol()
	if s.exact() {
		o := &pcg.Options{InitX: c, Tol: tau}
		s.saved.begin(sol, s.a.Choice(), s.cfg.Repeat, answers, o)
		return s.pcg(ctx, o, s.exactMatrix(), results.InFloat64)
	}
	if sol.SampledResiduals == nil { // resumed
		if err := s.residual(ctx, s.a, c); err != nil {
			return c, err
		}
		if err := s.checkRows(ctx, c); err != nil {
			return c, err
		}
	}
	o := &pcg.Options{InitX: c, Tol: tau - 1.2*bound.Slack(s.train.Len())*slices.Max(sol.StorageResiduals)}
	var finer *gram.Matrix
	kind := results.AsStored
	if !(o.Tol >= tau/2) {
		var err error
		if finer, kind, err = s.finer(ctx, s.a); err != nil || finer == nil && sol.Status != pcg.Stopped && !s.saved.refining() {
			return c, err
		}
		if o.Tol = tau; finer != nil && !finer.Choice().Certain { // leave room for what the rows will find
			o.Tol *= min(max(aim-3*share*finer.Choice().Error/(s.cfg.Lambda*s.cfg.Tol), 0.25), 0.75)
		}
	}
	s.saved.begin(s.sol, s.a.Choice(), s.cfg.Repeat, answers, o)
	if known := s.answer(c); known != nil {
		s.known = known.Sizes
	}
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
	s.sol.Result = nil // the answer is of several
	c, err := pcg.MedianByNorm(ctx, s.a, answers)
	if err != nil {
		return nil, err
	}
	check := cmp.Or(s.exactMatrix(), s.a)
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

// precision returns that of a direct solve which is left open.
func (l *Lab) precision() direct.Precision {
	return direct.Faster(l.train.Len(), slices.Max(kernel.Diag(l.cfg.Kernel, l.train.X)), l.cfg.Lambda, l.cfg.Tol)
}

// direct solves by a dense Cholesky factorization: in the precision of the storage that is asked for or planned, else in that of
// precision. If it was not asked for, and the residual in float32 does not come to τ, it solves in float64 again where that fits the memory.
func (s *solve) direct(ctx context.Context) (*mat.Dense, error) {
	o := &direct.Options{Tol: s.cfg.Tol, Progress: s.watch(ctx, stage.Kernel)}
	switch s.cfg.Storage {
	case gram.Float32:
		o.Precision = direct.Float32Refined
	case gram.Auto:
		o.Precision = s.precision()
	}
	if s.cfg.Memory > 0 {
		o.Memory = max(1, s.cfg.Memory-s.pointBytes())
	}
	res, err := direct.Solve(ctx, s.cfg.Kernel, s.train.X, s.cfg.Lambda, s.y, o)
	free := (s.cfg.Storage == gram.Auto || s.retry) && o.Precision == direct.Float32Refined
	if fits := o.Memory == 0 || direct.Need(direct.Float64, s.train.Len(), s.columns()) <= o.Memory; free && fits && ctx.Err() == nil && (err != nil || !(res.MaxTrueRelRes() <= s.cfg.Tol)) {
		var before direct.Seconds
		if res != nil {
			before = res.Seconds
		}
		o.Precision = direct.Float64
		if res, err = direct.Solve(ctx, s.cfg.Kernel, s.train.X, s.cfg.Lambda, s.y, o); err == nil {
			res.Seconds.Add(before)
		}
	}
	if err != nil {
		return nil, err
	}
	s.sol.TakeOnDirect(res)
	return res.X, nil
}
