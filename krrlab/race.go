package krrlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

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

// ready is a preconditioner with the M that it made.
type ready struct {
	Preconditioner
	m pcg.Preconditioner
}

func (k ready) Make(context.Context, *Lab) (pcg.Preconditioner, error) { return k.m, nil }

// race is Auto.Race under way: column j is of all[j].
type race struct {
	*bench
	all  []Preconditioner
	made []*stage.Made
	rows []plan.Raced // of all, those that failed before too
	of   []int        // row of a column
	each []float64    // seconds of an iteration
	res  [][]float64  // relative residuals
}

// race iterates with the preconditioners given and the one that is planned, side by side, and returns the lab that goes
// on with the one that is done first by its slope, or with the direct solver of the plan where that is.
func (l *Lab) race(ctx context.Context, p *plan.Report, with []Preconditioner) (*Lab, *plan.Report, error) {
	planned, err := l.chosen(p)
	if err != nil {
		return nil, nil, err
	}
	r, direct := &race{bench: &bench{Lab: l}}, p.Instead
	if planned.cfg.Solver == Direct {
		direct = &p.Choice
	} else {
		r.Lab, with = planned, append(with[:len(with):len(with)], planned.cfg.Precond)
	}
	if err := r.run(ctx, with); err != nil {
		return nil, nil, err
	}
	best := -1
	for j := range r.all {
		if best < 0 || r.rows[r.of[j]].Left < r.rows[r.of[best]].Left {
			best = j
		}
	}
	q := *p
	q.Raced = r.rows
	if best < 0 || direct != nil && direct.Seconds.Total < float64(r.rows[r.of[best]].Left) {
		if direct != nil && planned.cfg.Solver != Direct {
			q.Choice, q.Seconds, q.Flags, q.Instead = *direct, direct.Seconds, direct.Flags(), nil
		}
		planned, err = l.chosen(&q)
		return planned, &q, err
	}
	if r.of[best] == len(with)-1 && r.Lab == planned {
		planned.plan = &q
		return planned, &q, nil
	}
	return r.winner(best, &q, direct)
}

// winner returns the lab that goes on with column j.
func (r *race) winner(j int, q *plan.Report, direct *plan.Candidate) (*Lab, *plan.Report, error) {
	l, row, m := r.Lab, r.rows[r.of[j]], r.made[j]
	cfg := l.cfg
	if cfg.Solver = PCG; l.columns() > 1 {
		cfg.Solver = BlockPCG
	}
	if l.asked.solver != AutoSolver {
		cfg.Solver = l.asked.solver
	}
	p := r.all[j]
	spec, err := SpecOf(p, cfg.Kernel)
	q.Flags = fmt.Sprintf("--solver %v%s", cfg.Solver, spec.flags())
	if err != nil {
		q.Flags = fmt.Sprintf("%v by Config.Precond, Solver %v", p, cfg.Solver)
	}
	if cfg.Precond = p; m.S == 0 { // others are held by the lab, or made of what is
		cfg.Precond = ready{p, m.M}
	}
	left := int(math.Ceil(float64(row.Left) / r.each[j]))
	q.Choice = plan.Candidate{Solver: cfg.Solver.String(), Precond: p.String(), S: m.S, LambdaP: m.LambdaP,
		Storage: r.k.a.Storage(), Iterations: row.Iterations + left, Bytes: q.Choice.Bytes}
	q.Choice.Seconds = plan.Seconds{Kernel: r.k.seconds, Factor: row.Seconds,
		Solve: r.each[j] * float64(row.Iterations+left+1)}
	q.Choice.Seconds.Total = q.Choice.Seconds.Sum()
	q.Seconds, q.Instead = q.Choice.Seconds, direct
	to, err := l.as(cfg, q)
	return to, q, err
}

// run makes the preconditioners, and iterates.
func (r *race) run(ctx context.Context, with []Preconditioner) error {
	p := r.Problem()
	k, err := r.K(ctx, 0)
	if err != nil {
		return err
	}
	var product float64
	to := mat.NewDense(p.N, p.T, nil)
	if err := stage.Timed(&product, func() error { return k.MulTo(ctx, to, p.Y) }); err != nil {
		return err
	}
	var ms []pcg.Preconditioner
	left := cmp.Or(p.Left(k), math.MaxInt64)
	for i, one := range with {
		m, err := r.Make(ctx, stage.Entry{Value: one}, 0)
		var apply float64
		if err == nil {
			apply, err = compare.Try(ctx, m.M, p.Y)
		}
		if err == nil {
			if left -= m.Bytes; left < 0 {
				err = fmt.Errorf("it takes %s, and there are %s left", accel.Bytes(m.Bytes), accel.Bytes(left+m.Bytes))
			}
		}
		if err = comm.Agree(ctx, r.comm, err); ctx.Err() != nil {
			return ctx.Err()
		}
		row := plan.Raced{Name: one.String(), Left: stage.Number(math.Inf(1))}
		if err != nil {
			row.Why = err.Error()
		} else {
			row.Seconds = m.Seconds
			r.all, r.made, r.of = append(r.all, one), append(r.made, m), append(r.of, i)
			r.each, r.res, ms = append(r.each, product+apply), append(r.res, []float64{1}), append(ms, m.M)
		}
		r.rows = append(r.rows, row)
	}
	if len(ms) == 0 {
		return nil
	}
	if err := comm.ShareNumbers(ctx, r.comm, r.each, 0); err != nil { // all ranks decide alike
		return err
	}
	_, fails, err := compare.Iterate(ctx, k, ms, p, &pcg.Options{Tol: r.cfg.Tol, MaxIter: raceMost,
		Monitor: func(it *pcg.Iteration) error { return r.watch(ctx, it) }})
	for j, f := range fails {
		if row := &r.rows[r.of[j]]; f != nil {
			row.Why, row.Left = f.Error(), stage.Number(math.Inf(1))
		}
	}
	if errors.Is(err, pcg.ErrStop) {
		err = nil
	}
	return err
}

// watch takes note of an iteration, and ends the race where it is decided.
func (r *race) watch(ctx context.Context, it *pcg.Iteration) error {
	best, high := math.Inf(1), math.Inf(1)
	lows := make([]float64, len(r.all))
	for j, v := range it.RelRes {
		row := &r.rows[r.of[j]]
		if last := r.res[j][len(r.res[j])-1]; last > r.cfg.Tol { // it goes on
			r.res[j] = append(r.res[j], v)
			row.Iterations, row.Residual = it.Index, stage.Number(v)
		}
		low, mid, most := pcg.Forecast(r.res[j], r.cfg.Tol)
		row.Left, lows[j] = stage.Number(mid*r.each[j]), low*r.each[j]
		if left := mid * r.each[j]; left < best {
			best, high = left, most*r.each[j]
		}
	}
	r.Tell(ctx, Event{Stage: stage.Compare, Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1})
	ahead := 0 // of those that may yet be the first
	for _, low := range lows {
		if low <= high {
			ahead++
		}
	}
	if best == 0 || it.Index >= raceLeast && ahead <= 1 {
		return pcg.ErrStop
	}
	return ctx.Err()
}
