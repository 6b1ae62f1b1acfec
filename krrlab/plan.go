package krrlab

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
)

// PlanTask returns the problem, and what is held of the way to solve it.
func (b *bench) PlanTask() *plan.Task {
	l := b.Lab
	c, s := l.cfg, l.system()
	t := &plan.Task{
		Problem: b.Problem(), Prefer: s.Accuracy(), Drop: s.Preferred() / 4, Points: l.pointBytes(), Tiles: c.Tiles,
		Exact: s.Exact(l.k.a), Refined: c.Exact == AutoResidual, Iterative: c.onRanks() || c.Tiles == gram.SparseTiles ||
			c.Checkpoint != nil || c.Stop.Rule != bound.Residual,
	}
	if l.open != nil && l.open.fixed {
		t.Small = s.Precision()
	}
	if t.Comm.Size() == 1 {
		runtime.GC() // what is read and not needed any more is there for K
		t.Beside, t.Peak = max(0, accel.Occupied()-t.Points), accel.PeakRSS()
	}
	h := &t.Held
	if l.open == nil {
		*h, t.Form = l.method()
		if spec, err := SpecOf(c.Precond, c.Kernel); err == nil && !l.plain() {
			h.Named = spec.flags()
		}
	} else {
		h.S, h.LambdaP = l.open.s, l.open.lambdaP
	}
	if h.Storage = c.Storage; l.open == nil || l.open.solver {
		h.Solver = c.Solver.String()
	}
	return t
}

// solving is Solve as a stage. It claims nothing of a given K, and is none of Stages: krrlab fit has a command by hand.
type solving struct{}

var solveStage = stage.Definition{Name: stage.Solve, Options: solving{}, Result: (*Solution)(nil), Indefinite: true}

// Run implements stage.Runner.
func (solving) Run(ctx context.Context, b stage.Bench) (Stage, error) {
	sol, err := b.(*bench).solvePlanned(ctx)
	if sol == nil { // no value, where a nil pointer would be one
		return nil, err
	}
	return sol, err
}

// solvePlanned solves by the method of the configuration, or as planned where that is left open.
func (l *Lab) solvePlanned(ctx context.Context) (*Solution, error) {
	if !l.Planning() {
		return l.solve(ctx)
	}
	p, took, err := l.settledPlan(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if p == nil {
		return l.solve(ctx)
	}
	var m *Lab
	if len(l.open.race) > 0 {
		m, p, err = l.race(ctx, p, l.open.race)
		took += time.Since(start).Seconds()
	} else {
		m, err = l.chosen(p)
	}
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	sol, err := m.solve(ctx)
	var lost float64
	if over := m.over(sol, err); over != nil {
		if m, err = l.chosen(over); err != nil {
			return nil, err
		}
		l.Free()
		lost, p = time.Since(begun).Seconds(), over
		sol, err = m.solve(ctx)
	}
	if sol != nil {
		if sol.Storage == "dense float64" && p.Choice.Storage != gram.Float64 { // float32 did not come to τ
			again := *p
			again.Flags = "--solver direct --storage float64"
			p = &again
		}
		sol.Plan, sol.Seconds.Plan = p, took+lost
		sol.Seconds.Total = time.Since(begun).Seconds() + took
	}
	return sol, err
}

// over returns the direct solver as what is chosen after all, and why, where a planned solve went wrong,
// by the plan or by how it ended; else nil.
func (l *Lab) over(sol *Solution, err error) *plan.Report {
	ended := err == nil && !sol.Reached() && sol.Status != pcg.Stopped && l.plan.Worth(sol.Iterations)
	if l.plan.Instead == nil || err != solve.ErrLate && !ended {
		return nil
	}
	came := plural.Count(sol.Iterations, "iteration")
	if k := len(sol.History); k > 0 {
		came += fmt.Sprintf(" to a residual of %.1e", sol.History[k-1].Residual)
	}
	r, was := l.plan.Going(l.plan.Instead), &l.plan.Choice
	r.Over = fmt.Sprintf("%v, after %s, where %s were expected to come to %g (%v)", &r.Choice, came,
		plural.Count(was.Iterations, "iteration"), l.cfg.Tol, was)
	return &r
}

// settledPlan returns the plan that a checkpoint has, or that of Plan, or makes one, and the seconds that took;
// nil where none can be made.
func (l *Lab) settledPlan(ctx context.Context) (p *plan.Report, took float64, err error) {
	k := l.cfg.Checkpoint
	if k != nil && k.Resume {
		if k.Kept() { // a plan alone may be that of other data
			if p, err = plan.Saved(k.Dir); p != nil || err != nil { // else the run that is resumed named its method
				return p, 0, err
			}
		}
	}
	l.mu.Lock()
	made := l.planned
	l.mu.Unlock()
	if made == nil {
		if made, err = as[*plan.Plan](plan.Options{}.Run(ctx, &bench{Lab: l})); err != nil && ctx.Err() == nil {
			return nil, 0, nil // the fixed rule, and the error of its solve if there is one
		}
		if err != nil {
			return nil, 0, err
		}
		l.keepPlan(made)
	}
	return &made.Report, made.Took, nil
}

// chosen returns the lab of the same problem that does what is planned.
func (l *Lab) chosen(p *plan.Report) (*Lab, error) {
	cfg := l.cfg
	err := cfg.Solver.UnmarshalText([]byte(p.Choice.Solver))
	if err != nil {
		return nil, err
	}
	spec := PrecondSpec{Name: p.Choice.Precond, S: p.Choice.S, LambdaP: p.Choice.LambdaP}
	if p.Choice.Beside() {
		spec.Neighbors = p.Choice.Neighbors
	}
	if cfg.Precond, err = spec.Preconditioner(cfg.Kernel); err != nil {
		return nil, err
	}
	if s := p.Choice.Storage; cfg.Solver == Direct || s == gram.Recompute {
		cfg.Storage = s
	}
	return l.as(cfg, p)
}

// as returns the lab of the same problem with another configuration, which a plan chose.
func (l *Lab) as(cfg Config, p *plan.Report) (*Lab, error) {
	n, _, t := l.Dims()
	cfg, err := cfg.withDefaults(n, t)
	if err != nil {
		return nil, err
	}
	m := *l
	m.cfg, m.open, m.plan, m.retry = cfg, nil, p, l.cfg.Storage == gram.Auto
	return &m, nil
}

// raced are the iterations of a race.
const raced = 30

// comparer is the stage that races (stages.go).
var comparer stage.Comparer

// race compares the preconditioners given with the one that is planned and with none, by some iterations side by side,
// and returns the lab that takes the one that would be done first by its slope, M made, or the direct solver of the
// plan where that would.
func (l *Lab) race(ctx context.Context, p *plan.Report, with []Preconditioner) (*Lab, *plan.Report, error) {
	planned, err := l.chosen(p)
	if err != nil {
		return nil, nil, err
	}
	direct, all := p.Instead, append([]Preconditioner{None{}}, with...)
	if planned.cfg.Solver == Direct {
		direct = &p.Choice
	} else if !planned.plain() {
		all = append(all, planned.cfg.Precond)
	}
	var entries stage.Entries
	for _, one := range all[1:] {
		entries = append(entries, stage.Entry{Value: one})
	}
	b := &bench{Lab: l}
	b.Problem().MaxIter = raced
	rows, err := comparer.Compare(ctx, b, entries, l.cfg.Tol)
	if err != nil {
		return nil, nil, err
	}
	q, best, left := *p, []float64{-1}, math.Inf(1)
	if direct != nil {
		left = direct.Seconds.Total
	}
	for i, r := range rows {
		a := plan.Raced{Name: r.Name, Seconds: r.Build, Why: r.Why}
		if a.Why == "" {
			_, its := pcg.Forecast(r.Residuals, l.cfg.Tol)
			a.Iterations, a.Left = len(r.Residuals)-1, stage.Number(its*r.Each)
			a.Residual = stage.Number(r.Residuals[a.Iterations])
			if float64(a.Left) < left {
				best[0], left = float64(i), float64(a.Left)
			}
		}
		q.Raced = append(q.Raced, a)
	}
	if err := comm.ShareNumbers(ctx, l.comm, best, 0); err != nil { // all ranks decide alike
		return nil, nil, err
	}
	switch at := int(best[0]); {
	case at >= 0:
		return l.winner(all[at], &q, direct, &rows[at])
	case direct != nil:
		q = q.Going(direct)
	}
	planned, err = l.chosen(&q)
	return planned, &q, err
}

// winner returns the lab that takes a preconditioner that is not the planned one.
func (l *Lab) winner(one Preconditioner, p *plan.Report, direct *plan.Candidate,
	r *stage.Compared) (*Lab, *plan.Report, error) {
	cfg := l.cfg
	if cfg.Precond, cfg.Solver = one, l.asked.solver; cfg.Solver == AutoSolver {
		if cfg.Solver = PCG; l.columns() > 1 {
			cfg.Solver = BlockPCG
		}
	}
	_, left := pcg.Forecast(r.Residuals, cfg.Tol)
	its := len(r.Residuals) - 1 + int(math.Ceil(left))
	c := plan.Candidate{Solver: cfg.Solver.String(), Precond: one.String(), S: r.S, LambdaP: r.LambdaP,
		Storage: p.Choice.Storage, Iterations: its, Bytes: p.Bytes,
		Seconds: plan.Seconds{Factor: r.Build, Solve: float64(its+1) * r.Each}}
	c.Seconds.Total = c.Seconds.Sum()
	q := p.Going(&c)
	q.Instead = direct
	spec, err := SpecOf(one, cfg.Kernel)
	if q.Flags = fmt.Sprintf("--solver %v%s", cfg.Solver, spec.flags()); err != nil {
		q.Flags = fmt.Sprintf("Config{Solver: %v, Precond: %v}", cfg.Solver, one)
	}
	m, err := l.as(cfg, &q)
	return m, &q, err
}
