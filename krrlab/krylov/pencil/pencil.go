package pencil

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
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
	// Probes are the Lanczos processes of each, 0 for 1; those after the first serve ln det(K+λI) alone
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
	first, err := lanczos.RunMany(ctx, s.A, s.M, len(s.Rows), &o)
	runs, tells := [][]*lanczos.Result{first}, s.tells(first)
	for i := 1; i < s.Probes && err == nil; i++ {
		probe := lanczos.Options{Steps: o.Steps, Ends: lanczos.Neither, Start: o.Start.Sub("probe", uint64(i)),
			Done: func(c int, r *lanczos.Result) bool {
				gap, deviation := math.Inf(1), 0.
				if tells[c] && r.Steps%8 == 0 {
					gap, deviation = s.spread(c, first[c], r)
				}
				return !tells[c] || gap <= deviation/10
			}}
		var all []*lanczos.Result
		all, err = lanczos.RunMany(ctx, s.A, s.M, len(s.Rows), &probe)
		for c := range all {
			if !tells[c] {
				all[c] = nil
			}
		}
		runs = append(runs, all)
		s.Tell(stage.Event{Stage: stage.Lanczos, Detail: "ln det", Done: i, Total: s.Probes - 1, Remaining: -1})
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

// ownDet returns ln det M_c, if it is known.
func (s *Set) ownDet(c int) (value float64, known bool) {
	sides, ok := s.M.(*Sides)
	if !ok || sides.Ms[c] == nil {
		return 0, ok // M = I
	}
	m, known := sides.Ms[c].(determined)
	if known {
		value = m.LogDet()
	}
	return value, known
}

// least returns a lower bound of λ_min(M_c⁻¹A) that needs no Lanczos process, 0 if none is known.
func (s *Set) least(c int) float64 {
	if s.Mu == nil {
		return 0
	}
	return s.Mu[c]
}

// spread returns lanczos.Result.LogDetSpread of the mean of all processes with M_c, by one of them; +Inf if ln det M_c
// or a lower bound of the spectrum is not known.
func (s *Set) spread(c int, first, r *lanczos.Result) (gap, deviation float64) {
	if first != nil && first.Err == nil {
		least := cmp.Or(s.least(c), max(0, first.Min.Lo))
		if _, known := s.ownDet(c); known && least > 0 {
			gap, deviation = r.LogDetSpread(least)
			return gap, deviation / math.Sqrt(float64(s.Probes))
		}
	}
	return math.Inf(1), math.Inf(1)
}

// tells reports which preconditioners tell ln det(K+λI) about as well as the best of them, by the first process of
// each.
func (s *Set) tells(first []*lanczos.Result) []bool {
	each, tells := make([]float64, len(first)), make([]bool, len(first))
	for c, r := range first {
		gap, deviation := s.spread(c, r, r)
		each[c] = gap + deviation
	}
	for c, v := range each {
		tells[c] = v <= 2*slices.Min(each) && !math.IsInf(v, 1)
	}
	return tells
}

// determine takes ln det(K+λI) = ln det M + ln det(M⁻¹(K+λI)).
func (s *Set) determine(c int, runs [][]*lanczos.Result) {
	own, known := s.ownDet(c)
	if !known {
		return
	}
	var all []*lanczos.Result
	for _, run := range runs {
		if l := run[c]; l != nil && l.Err == nil {
			all = append(all, l)
		}
	}
	off := float64(s.A.Dim()) * s.Off / max(0, 1-s.Off) // |ln det(A+E) − ln det A| ≤ n‖E‖₂/(λ−‖E‖₂)
	given := func(e estimate.Interval) *estimate.Interval {
		if e.Value, e.Lo, e.Hi = e.Value+own, e.Lo+own-off, e.Hi+own+off; !(e.Hi-e.Lo <= math.MaxFloat64) {
			return nil
		}
		return &e
	}
	proved, estimated := lanczos.LogDet(all, s.least(c))
	s.Rows[c].LogDetA, s.Rows[c].LogDetEstimate = given(proved), given(estimated)
}

// note takes what failed, and puts the likelihood together.
func (s *Set) note() {
	for _, r := range s.Rows {
		r.Likelihood, r.LikelihoodEstimate = s.likelihood(r, r.LogDetA), s.likelihood(r, r.LogDetEstimate)
	}
	if sides, ok := s.M.(*Sides); ok {
		for c, err := range sides.Fails {
			if err != nil {
				s.Rows[c].Why = err.Error()
			}
		}
	}
}

// likelihood returns the interval of −2 ln p(y) by one of ln det(K+λI), nil where one of its parts is not known.
func (s *Set) likelihood(r *Row, det *estimate.Interval) *estimate.Interval {
	if det == nil || r.energy[1] == 0 || s.Mixed {
		return nil
	}
	e, at := *det, float64(s.A.Dim())*math.Log(2*math.Pi)
	e.Value += at + s.size*r.energy[0]
	e.Lo += at + s.size*r.energy[0]*max(0, 1-s.Off) // K = 0 and E = −Off·λI
	e.Hi += at + s.size*r.energy[1]/max(0, 1-s.Off)
	return &e
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

// Exact finds all eigenvalues of each M_c⁻¹A where M_c did not fail, unless M_c⁻¹ as applied is not positive definite
// in float64. M_c are Sides.
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
