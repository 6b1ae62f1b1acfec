package pencil

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// Ended is Why of a row that a stage did not come to.
const Ended = "the stage ended before"

// Set are the pencils (A, M_c) of A = K+λI as it is stored, and what is known of each.
type Set struct {
	A     pcg.Operator
	M     lanczos.Metrics // *Sides, whose failures are noted in the rows, or *precond.Family
	Rows  []*Row
	Off   float64   // ‖K_stored−K‖₂ ≤ Off·λ, as predicted
	Least float64   // a lower bound of λ_min(A), 0 if none is known: no bounds of errors then
	Mu    []float64 // of each λ_min(M_c⁻¹A), likewise
	Recur bool      // residuals are those by recurrence, none is recomputed
	Mixed bool      // the right-hand side is of several targets: no Likelihood
	// Probes are the Lanczos processes of each, 0 for 1; those after the first serve LogDetA alone
	Probes int
	Tell   func(stage.Event)

	size float64 // ‖y‖₂² of a single right-hand side
}

// Lanczos runs the Lanczos processes of all rows that have not failed until each κ is as narrow as o asks, and predicts
// iterations to tau. One that fails, or of an M that cannot draw, ends alone.
func (s *Set) Lanczos(ctx context.Context, o lanczos.Options, tau float64) error {
	sides, _ := s.M.(*Sides)
	for c, r := range s.Rows {
		if sides != nil && sides.Fails[c] == nil && r.Why != "" && r.Why != Ended {
			sides.Fails[c] = errors.New(r.Why)
		}
	}
	done, after := 0, o.Monitor
	o.Cond, o.Definite = true, true
	o.Monitor = func(r *lanczos.Result) error {
		if r.Steps > done {
			done = r.Steps
			s.Tell(stage.Event{Stage: stage.Lanczos, Done: done, Total: o.Steps, Remaining: -1})
		}
		if after != nil {
			return after(r)
		}
		return nil
	}
	var runs [][]*lanczos.Result
	var err error
	for i, start := 0, o.Start; i == 0 || i < s.Probes && err == nil; i++ {
		if i > 0 {
			o.Start = start.Sub("probe", uint64(i))
		}
		var all []*lanczos.Result
		all, err = lanczos.RunMany(ctx, s.A, s.M, len(s.Rows), &o)
		runs = append(runs, all)
	}
	for c, l := range runs[0] {
		switch {
		case sides != nil && errors.Is(sides.Fails[c], errors.ErrUnsupported):
			sides.Fails[c] = nil // of draws alone
		case l == nil:
		case l.Err != nil:
			if s.Rows[c].Why = l.Err.Error(); sides != nil {
				sides.Fails[c] = cmp.Or(sides.Fails[c], l.Err)
			}
		default:
			s.bracket(s.Rows[c], l, tau)
			s.determine(c, runs)
		}
	}
	s.note()
	return err
}

// determined is an M that knows ln det M, built-in or user-defined.
type determined interface{ LogDet() float64 }

// determine takes ln det(K+λI) = ln det M + ln det(M⁻¹(K+λI)).
func (s *Set) determine(c int, runs [][]*lanczos.Result) {
	sides, ok := s.M.(*Sides)
	if !ok {
		return
	}
	var own, least float64
	if m := sides.Ms[c]; m != nil {
		of, ok := m.(determined)
		if !ok {
			return
		}
		own = of.LogDet()
	}
	var all []*lanczos.Result
	for _, run := range runs {
		if l := run[c]; l != nil && l.Err == nil {
			all = append(all, l)
		}
	}
	if s.Mu != nil {
		least = s.Mu[c]
	}
	e := lanczos.LogDet(all, least)
	off := float64(s.A.Dim()) * s.Off / max(0, 1-s.Off) // |ln det(A+E) − ln det A| ≤ n‖E‖₂/(λ−‖E‖₂)
	if e.Value, e.Lo, e.Hi = e.Value+own, e.Lo+own-off, e.Hi+own+off; e.Hi-e.Lo <= math.MaxFloat64 {
		s.Rows[c].LogDetA = &e
	}
}

// note takes what failed, and puts the likelihood together.
func (s *Set) note() {
	for _, r := range s.Rows {
		if r.LogDetA == nil || r.energy[1] == 0 || s.Mixed {
			continue
		}
		e, at := *r.LogDetA, float64(s.A.Dim())*math.Log(2*math.Pi)
		e.Value += at + s.size*r.energy[0]
		e.Lo += at + s.size*r.energy[0]*max(0, 1-s.Off) // K = 0 and E = −Off·λI
		e.Hi += at + s.size*r.energy[1]/max(0, 1-s.Off)
		r.Likelihood = &e
	}
	if sides, ok := s.M.(*Sides); ok {
		for c, err := range sides.Fails {
			if err != nil {
				s.Rows[c].Why = err.Error()
			}
		}
	}
}

// Solve takes conjugate gradients with each M_c to every column of b, n×t, at the price of a block of all.
func (s *Set) Solve(ctx context.Context, b *mat.Dense, o pcg.Options) error {
	n, t := b.Dims()
	all := mat.NewDense(n, t*len(s.Rows), nil)
	for c := range s.Rows {
		all.Slice(0, n, c*t, (c+1)*t).(*mat.Dense).Copy(b)
	}
	start, after := time.Now(), o.Monitor
	o.Monitor = func(it *pcg.Iteration) error {
		if after != nil {
			return after(it)
		}
		e := stage.Event{Stage: stage.Solve, Iteration: it.Index, Residual: it.MaxRelRes, Remaining: -1}
		if share := math.Log(it.MaxRelRes) / math.Log(o.Tol); share > 0.05 {
			e.Remaining = time.Duration(float64(time.Since(start)) * (1/share - 1))
		}
		s.Tell(e)
		return nil
	}
	s.size = math.Pow(mat.Norm(b, 2), 2)
	res, err := pcg.Solve(ctx, s.A, columns{s.M, t}, all, &o)
	for c := range s.Rows {
		if res != nil {
			s.take(res, c, t)
		}
	}
	s.note()
	return err
}

// Exact finds all eigenvalues of each M_c⁻¹A where M_c did not fail, unless M_c⁻¹ as applied is not positive definite in
// float64. M_c are Sides.
func (s *Set) Exact(ctx context.Context, b stage.Bench) error {
	sides, lambda := s.M.(*Sides), b.Problem().Lambda
	for c, r := range s.Rows {
		if sides.Fails[c] != nil {
			continue
		}
		s.Tell(stage.Event{Stage: stage.Spectrum, Detail: r.Name, Remaining: -1})
		k, off, err := b.Dense(ctx, 0)
		if err != nil {
			return err
		}
		start := time.Now()
		values, slack, ok, err := spectrum(ctx, k, lambda, sides.Ms[c])
		if err = comm.Agree(ctx, sides.Comm, err); ctx.Err() != nil {
			return ctx.Err()
		}
		if sides.Fails[c], r.NotDefinite = err, err == nil && !ok; err != nil || !ok {
			continue
		}
		const how = "dense eigenvalues"
		ends := lanczos.Known(estimate.Exact(values[0], slack, how), estimate.Exact(values[len(values)-1], slack, how))
		e, _, _ := ends.Allowing(off / lambda) // of K in float64
		e.Seconds = time.Since(start).Seconds()
		r.Exact = &e
		r.spectrum(len(values), values, nil)
	}
	s.note()
	return nil
}

// Seconds returns what an operation on y takes, the less of two times.
func Seconds(ctx context.Context, op func(ctx context.Context, dst, src *mat.Dense) error, y *mat.Dense) (float64,
	error) {
	n, t := y.Dims()
	best := math.Inf(1)
	for range 2 {
		start := time.Now()
		if err := op(ctx, mat.NewDense(n, t, nil), y); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start).Seconds())
	}
	return best, nil
}

// columns are those of a block, as many for each M.
type columns struct {
	lanczos.Metrics
	each int
}

// SolveTo is not called: conjugate gradients say which columns they are at.
func (m columns) SolveTo(context.Context, *mat.Dense, *mat.Dense) error { return errors.ErrUnsupported }

func (m columns) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	of := make([]int, len(cols))
	for j, c := range cols {
		of[j] = c / m.each
	}
	return m.Metrics.SolveColumnsTo(ctx, dst, r, of)
}
