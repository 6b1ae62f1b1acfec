package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/compare"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/stage"
)

// raceLeast and raceMost are the iterations of a race: it ends between where one is ahead by its forecast's worst.
const raceLeast, raceMost = 8, 30

// lane is a preconditioner in a race.
type lane struct {
	plan.Raced
	Preconditioner
	made *stage.Made
	each float64   // seconds of an iteration
	res  []float64 // relative residuals
}

// ready is a preconditioner with the M that it made.
type ready struct {
	Preconditioner
	m pcg.Preconditioner
}

func (r ready) Make(context.Context, *Lab) (pcg.Preconditioner, error) { return r.m, nil }

// race iterates with the preconditioners given and the one that is planned, side by side, and returns the lab that goes
// on with the one that is done first by its slope, or with the direct solver of the plan where that is.
func (l *Lab) race(ctx context.Context, p *plan.Report, with []Preconditioner) (*Lab, *plan.Report, error) {
	planned, err := l.chosen(p)
	if err != nil {
		return nil, nil, err
	}
	direct := p.Instead
	if planned.cfg.Solver == Direct {
		direct = &p.Choice
	} else {
		with = append(slices.Clip(with), planned.cfg.Precond)
	}
	lanes, err := l.run(ctx, with)
	if err != nil {
		return nil, nil, err
	}
	q, best := *p, (*lane)(nil)
	for _, a := range lanes {
		q.Raced = append(q.Raced, a.Raced)
		if a.Why == "" && (best == nil || a.Left < best.Left) {
			best = a
		}
	}
	if direct != nil && (best == nil || direct.Seconds.Total < float64(best.Left)) {
		q = q.Going(direct)
	} else if best != nil && (best != lanes[len(lanes)-1] || planned.cfg.Solver == Direct) {
		return l.winner(best, &q, direct)
	}
	planned, err = l.chosen(&q)
	return planned, &q, err
}

// winner returns the lab that goes on with a preconditioner that is not the planned one.
func (l *Lab) winner(a *lane, p *plan.Report, direct *plan.Candidate) (*Lab, *plan.Report, error) {
	cfg := l.cfg
	if cfg.Solver = l.asked.solver; cfg.Solver == AutoSolver {
		if cfg.Solver = PCG; l.columns() > 1 {
			cfg.Solver = BlockPCG
		}
	}
	left := int(math.Ceil(float64(a.Left) / a.each))
	c := plan.Candidate{Solver: cfg.Solver.String(), Precond: a.String(), S: a.made.S, LambdaP: a.made.LambdaP,
		Storage: l.k.a.Storage(), Iterations: a.Iterations + left, Bytes: p.Bytes,
		Seconds: plan.Seconds{Kernel: l.k.seconds, Factor: a.Seconds, Solve: a.each * float64(a.Iterations+left+1)}}
	c.Seconds.Total = c.Seconds.Sum()
	q := p.Going(&c)
	q.Instead = direct
	spec, err := SpecOf(a.Preconditioner, cfg.Kernel)
	if q.Flags = fmt.Sprintf("--solver %v%s", cfg.Solver, spec.flags()); err != nil {
		q.Flags = fmt.Sprintf("Config{Solver: %v, Precond: %v}", cfg.Solver, a)
	}
	if cfg.Precond = a.Preconditioner; a.made.S == 0 { // others are made of what the lab holds
		cfg.Precond = ready{a.Preconditioner, a.made.M}
	}
	m, err := l.as(cfg, &q)
	return m, &q, err
}

func (a *lane) String() string { return a.Preconditioner.String() }

// run makes the preconditioners, and iterates.
func (l *Lab) run(ctx context.Context, with []Preconditioner) (lanes []*lane, err error) {
	b := &bench{Lab: l}
	p := b.Problem()
	k, err := b.K(ctx, 0)
	if err != nil {
		return nil, err
	}
	var product float64
	err = stage.Timed(&product, func() error { return k.MulTo(ctx, mat.NewDense(p.N, p.T, nil), p.Y) })
	if err != nil {
		return nil, err
	}
	var ms []pcg.Preconditioner
	var running []*lane
	var each []float64
	room := cmp.Or(p.Left(k), math.MaxInt64)
	for _, one := range with {
		a := &lane{Preconditioner: one, res: []float64{1}, Raced: plan.Raced{Name: one.String()}}
		var apply float64
		if a.made, err = b.Make(ctx, stage.Entry{Value: one}, 0); err == nil {
			apply, err = compare.Try(ctx, a.made.M, p.Y)
		}
		if err == nil && a.made.Bytes > room {
			err = fmt.Errorf("it takes %s, and there are %s left", accel.Bytes(a.made.Bytes), accel.Bytes(room))
		}
		lanes = append(lanes, a)
		if err = comm.Agree(ctx, l.comm, err); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			a.Why = err.Error()
			continue
		}
		room, a.Seconds = room-a.made.Bytes, a.made.Seconds
		ms, running, each = append(ms, a.made.M), append(running, a), append(each, product+apply)
	}
	if err := comm.ShareNumbers(ctx, l.comm, each, 0); err != nil || len(ms) == 0 { // all ranks decide alike
		return lanes, err
	}
	_, fails, err := compare.Iterate(ctx, k, ms, p, &pcg.Options{Tol: l.cfg.Tol, MaxIter: raceMost,
		Monitor: func(it *pcg.Iteration) error {
			b.Tell(ctx, Event{Stage: stage.Compare, Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1})
			for j, a := range running {
				a.take(it.Index, it.RelRes[j], l.cfg.Tol, each[j])
			}
			if it.Index >= raceLeast && decided(running, l.cfg.Tol) {
				return pcg.ErrStop
			}
			return ctx.Err()
		}})
	for j, f := range fails {
		if f != nil {
			running[j].Why = f.Error()
		}
	}
	if err == pcg.ErrStop {
		err = nil
	}
	return lanes, err
}

// take takes note of an iteration, in seconds each, unless τ was reached before.
func (a *lane) take(its int, residual, tol, each float64) {
	if a.res[len(a.res)-1] > tol {
		a.res, a.each = append(a.res, residual), each
		a.Iterations, a.Residual = its, stage.Number(residual)
		_, mid, _ := pcg.Forecast(a.res, tol)
		a.Left = stage.Number(mid * each)
	}
}

// decided reports whether one is done before all others, by its forecast's worst and their best.
func decided(lanes []*lane, tol float64) bool {
	first := slices.MinFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.Left, b.Left) })
	_, _, high := pcg.Forecast(first.res, tol)
	for _, a := range lanes {
		if low, _, _ := pcg.Forecast(a.res, tol); a != first && low*a.each <= high*first.each {
			return false
		}
	}
	return true
}
