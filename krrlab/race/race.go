package race

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
)

// maker makes the M of a racer; nil is M = I. Its error puts the racer out, unless ctx has ended.
type maker func(ctx context.Context) (pcg.Preconditioner, error)

// Phase is where a racer is.
type Phase string

// The phases.
const (
	Running Phase = "running" // or overtaken, when the race is over
	Done    Phase = "done"    // it has reached τ
	Out     Phase = "out"     // it failed: see Racer.Why
)

// clock returns the seconds that a racer takes alone for that many iterations.
func (r *Result) clock(s *Racer, iterations float64) float64 {
	return s.Build + iterations*(r.Product+s.Solve)
}

// race is one under way: the preconditioner of a block whose column c has the M of racer c.
type race struct {
	*Result
	tell func(*Racer) // called with each that runs, after every step
	a    pcg.Operator
	ms   []pcg.Preconditioner // nil: M = I
	its  int                  // done by those that run
	best float64              // seconds of the first that has reached τ, by the clocks; +Inf before
	x, z *mat.Dense           // n×1
}

// hold lets the racers, M = I and those that are made, run for AX = Y, A n×n and Y n×t, in at most maxIter iterations.
// stream draws the signs of the columns for t > 1, share sets seconds to those of one rank, on all. Memory: what is
// made, and 5n numbers for each. An error is returned if ctx ends, or if A or share returns one: beside what is known
// so far.
func (r *race) hold(ctx context.Context, y *mat.Dense, makers []maker, maxIter int, stream rng.Stream,
	share func(ctx context.Context, seconds []float64) error) error {
	start := time.Now()
	defer func() { r.Racing = time.Since(start).Seconds() }()
	r.best, r.x, r.z = math.Inf(1), mat.NewDense(r.Dim(), 1, nil), mat.NewDense(r.Dim(), 1, nil)
	if err := r.measure(ctx, y, makers, share); err != nil {
		return err
	}
	res, err := pcg.Solve(ctx, r.a, r, r.combined(y, stream), &pcg.Options{Tol: r.Tol, MaxIter: maxIter,
		Monitor: r.step})
	if res == nil { // it is Y that is wrong
		return err
	}
	r.Steps = res.Iterations
	for c := range r.Racers {
		s, col := &r.Racers[c], &res.Columns[c]
		r.Columns += col.Iterations
		if s.Phase == Running {
			s.Iterations = col.Iterations
		}
		for _, row := range res.History.RelRes[:min(s.Iterations+1, len(res.History.RelRes))] {
			s.Residuals = append(s.Residuals, row[c])
		}
		switch {
		case s.Phase != Running || s.late:
		case col.Status == pcg.Converged: // Y is 0
			s.Phase = Done
		case col.Status < pcg.Canceled && col.Status != pcg.Active:
			s.Phase, s.Why = Out, col.Status.String()
		}
		if s.Phase == Done && (r.Winner < 0 || r.clock(s, float64(s.Iterations)) <
			r.clock(r.Best(), float64(r.Best().Iterations))) {
			r.Winner = c
		}
	}
	return err
}

// combined returns a column for each racer, all the same: y, or for t > 1 the sum of its columns with random signs.
func (r *race) combined(y *mat.Dense, stream rng.Stream) *mat.Dense {
	n, t := y.Dims()
	b := mat.NewDense(n, len(r.ms), nil)
	for i := range n {
		var sum float64
		for c := range t {
			sign := 1.0
			if t > 1 && stream.Uint64(uint64(c))&1 == 1 {
				sign = -1
			}
			sum += sign * y.At(i, c)
		}
		for j := range r.ms {
			b.Set(i, j, sum)
		}
	}
	return b
}

// measure makes each M, and times it and products with A on Y, by the seconds of one rank.
func (r *race) measure(ctx context.Context, y *mat.Dense, makers []maker,
	share func(ctx context.Context, seconds []float64) error) (err error) {
	took := func(f func() error) float64 {
		start := time.Now()
		err = f()
		return time.Since(start).Seconds()
	}
	n, t := y.Dims()
	to := mat.NewDense(n, t, nil)
	seconds := []float64{took(func() error { return r.a.MulTo(ctx, to, y) })}
	if err != nil {
		return err
	}
	r.ms = make([]pcg.Preconditioner, len(makers))
	for i, build := range makers {
		var made, solve float64
		if build != nil {
			if made = took(func() (err error) { r.ms[i], err = build(ctx); return err }); err == nil {
				solve = took(func() error { return r.ms[i].SolveTo(ctx, to, y) })
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.Racers[i].out(err)
		}
		seconds = append(seconds, made, solve)
	}
	if err := share(ctx, seconds); err != nil {
		return err
	}
	r.Product = seconds[0]
	for i := range r.Racers {
		r.Racers[i].Build, r.Racers[i].Solve = seconds[2*i+1], seconds[2*i+2]
	}
	return nil
}

func (s *Racer) out(err error) { s.Phase, s.Why = Out, err.Error() }

// step takes up an iteration of all that run, and ends the race once no other can end before the first.
func (r *race) step(it *pcg.Iteration) error {
	r.its = it.Index
	next := math.Inf(1)
	for c := range r.Racers {
		s := &r.Racers[c]
		if s.Phase != Running || s.late {
			continue
		}
		s.Iterations, s.residual = it.Index, it.RelRes[c]
		if it.RelRes[c] <= r.Tol { // by recurrence, whatever K as stored is accurate to
			s.Phase, r.best = Done, min(r.best, r.clock(s, float64(it.Index)))
			continue
		}
		next = min(next, r.clock(s, float64(it.Index+1)))
		r.tell(s)
	}
	if next >= r.best {
		return pcg.ErrStop
	}
	return nil
}

// Dim returns n.
func (r *race) Dim() int { return r.a.Dim() }

// SolveTo is not called: pcg.Solve solves by column.
func (r *race) SolveTo(context.Context, *mat.Dense, *mat.Dense) error { panic("race: not by column") }

// SolveColumnsTo solves with the M of each racer. A column that is not finite ends its racer: one that has failed, or
// that cannot end before the first.
func (r *race) SolveColumnsTo(ctx context.Context, dst, src *mat.Dense, cols []int) error {
	for j, c := range cols {
		s, to := &r.Racers[c], dst.ColView(j).(*mat.VecDense)
		s.late = s.Phase == Running && r.clock(s, float64(r.its+1)) >= r.best
		if r.ms[c] == nil && s.Phase == Running && !s.late {
			to.CopyVec(src.ColView(j))
			continue
		}
		r.z.Set(0, 0, math.NaN())
		if s.Phase == Running && !s.late {
			r.x.ColView(0).(*mat.VecDense).CopyVec(src.ColView(j))
			if err := r.ms[c].SolveTo(ctx, r.z, r.x); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				s.out(err)
				r.z.Set(0, 0, math.NaN())
			}
		}
		to.CopyVec(r.z.ColView(0))
	}
	return nil
}
