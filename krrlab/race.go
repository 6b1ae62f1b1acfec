package krrlab

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/compare"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/stage"
)

// raced are the iterations of a race.
const raced = 30

// race compares the preconditioners given with the one that is planned and with none, by some iterations side by side,
// and returns the lab that takes the one that would be done first by its slope, M made, or the direct solver of the plan
// where that would.
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
	o := compare.Options{To: l.cfg.Tol, Steps: -1}
	for _, one := range all[1:] {
		o.With = append(o.With, stage.Entry{Value: one})
	}
	b := &bench{Lab: l}
	b.Problem().MaxIter = raced
	res, err := as[*compare.Result](o.Run(ctx, b))
	if err != nil {
		return nil, nil, err
	}
	q, best, left := *p, []float64{-1}, math.Inf(1)
	if direct != nil {
		left = direct.Seconds.Total
	}
	for i, r := range res.Rows {
		a := plan.Raced{Name: r.Name, Seconds: r.Build, Iterations: r.Iterations, Why: r.Why}
		if a.Why == "" {
			_, its, _ := pcg.Forecast(r.Residuals, o.To)
			a.Residual, a.Left = stage.Number(r.Residuals[r.Iterations]), stage.Number(its*(res.Product+r.Solve))
			if float64(a.Left) < left {
				best[0], left = float64(i), float64(a.Left)
			}
		}
		q.Raced = append(q.Raced, a)
	}
	if err := comm.ShareNumbers(ctx, l.comm, best, 0); err != nil { // all ranks decide alike
		return nil, nil, err
	}
	at := int(best[0])
	switch {
	case at < 0 && direct != nil:
		q = q.Going(direct)
	case at >= 0 && (at <= len(with) || planned.cfg.Solver == Direct):
		return l.winner(all[at], &q, direct, &res.Rows[at], res.Product)
	}
	planned, err = l.chosen(&q)
	return planned, &q, err
}

// winner returns the lab that takes a preconditioner that is not the planned one.
func (l *Lab) winner(one Preconditioner, p *plan.Report, direct *plan.Candidate, r *compare.Row,
	product float64) (*Lab, *plan.Report, error) {
	cfg := l.cfg
	if cfg.Precond, cfg.Solver = one, l.asked.solver; cfg.Solver == AutoSolver {
		if cfg.Solver = PCG; l.columns() > 1 {
			cfg.Solver = BlockPCG
		}
	}
	_, left, _ := pcg.Forecast(r.Residuals, cfg.Tol)
	its := r.Iterations + int(math.Ceil(left))
	c := plan.Candidate{Solver: cfg.Solver.String(), Precond: one.String(), S: r.S, LambdaP: r.LambdaP,
		Storage: p.Choice.Storage, Iterations: its, Bytes: p.Bytes,
		Seconds: plan.Seconds{Factor: r.Build, Solve: float64(its+1) * (product + r.Solve)}}
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
