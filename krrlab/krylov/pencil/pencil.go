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

// NotReached is the value of Row.FailureReason for a preconditioner that the stage did not reach before it ended.
const NotReached = "the stage ended before"

// Set is a set of pencils (A, M_c), where A = K+λI with the stored K, and the results for each of them.
type Set struct {
	A                  pcg.Operator    // K+λI with the stored K
	M                  lanczos.Metrics // *Preconditioners, whose errors are copied to the rows, or *precond.RidgeFamily
	Rows               []*Row          // results for each M_c
	StorageError       float64         // predicted storage error of K relative to λ: ‖K_stored−K‖₂ ≤ StorageError·λ
	LambdaMinA         float64         // lower bound of λ_min(A); 0 if none is known, so that errors are not bounded
	LambdaMin          []float64       // lower bound of λ_min(M_c⁻¹A) for each c; 0 if none is known
	RecursiveResiduals bool            // use recursive residuals only, because no true residual is computed
	MixedTargets       bool            // the right-hand side combines several targets, so Likelihood is not computed
	Weights            []float64       // weights of the rows, which scale A and the right-hand side; nil means 1
	// Probes is the number of Lanczos processes for each M_c; 0 means 1. Processes after the first are used only for
	// ln det(K+λI).
	Probes int
	Notify func(context.Context, stage.Event) // receives progress events

	squaredNorm float64 // ‖y‖₂² of a single right-hand side
}

// Lanczos runs the Lanczos processes of all rows that have not failed until each interval of κ is as narrow as o
// requires, and predicts the iterations to tau. It then runs the further processes for ln det(K+λI) (Probes). If a
// process fails, or its M cannot draw vectors of covariance M, only this process ends, with the reason in its row.
func (s *Set) Lanczos(ctx context.Context, o lanczos.Options, tau float64) error {
	preconditioners, _ := s.M.(*Preconditioners)
	for c, row := range s.Rows {
		if preconditioners != nil && preconditioners.Errs[c] == nil && row.FailureReason != "" &&
			row.FailureReason != NotReached {
			preconditioners.Errs[c] = errors.New(row.FailureReason)
		}
	}
	doneSteps, monitor := 0, o.Monitor
	o.Quantity, o.Definite = lanczos.ConditionNumber, true
	o.Monitor = func(result *lanczos.Result) error {
		if result.Steps > doneSteps {
			doneSteps = result.Steps
			s.Notify(ctx, stage.Event{Stage: stage.Lanczos, Done: doneSteps, Total: o.Steps, Remaining: -1})
		}
		if monitor != nil {
			return monitor(result)
		}
		return nil
	}

	firstRun, err := lanczos.RunMany(ctx, s.A, s.M, len(s.Rows), &o)
	runs := [][]*lanczos.Result{firstRun}
	if err == nil {
		var further [][]*lanczos.Result
		further, err = s.runProbes(ctx, firstRun, o)
		runs = append(runs, further...)
	}

	for c, result := range runs[0] {
		switch {
		case preconditioners != nil && errors.Is(preconditioners.Errs[c], errors.ErrUnsupported):
			preconditioners.Errs[c] = nil // M cannot draw start vectors, but can still be used otherwise
		case result == nil:
		case result.Err != nil:
			if s.Rows[c].FailureReason = result.Err.Error(); preconditioners != nil {
				preconditioners.Errs[c] = cmp.Or(preconditioners.Errs[c], result.Err)
			}
		default:
			s.setLanczos(s.Rows[c], result, tau)
			s.setLogDet(c, runs)
		}
	}
	s.setLikelihoods()
	s.copyErrors()
	return err
}

// runProbes runs the processes after the first, for ln det(K+λI) only, with the steps and the start of o. It returns
// the results of each process, which are nil for an M_c whose processes are not useful (usefulProbes). A process ends
// when the gap of its quadrature rules is small compared with the standard deviation over starts.
func (s *Set) runProbes(ctx context.Context, firstRun []*lanczos.Result, o lanczos.Options) (runs [][]*lanczos.Result,
	err error) {
	useful := s.usefulProbes(firstRun)
	for i := 1; i < s.Probes && err == nil; i++ {
		const checkedSteps = 8 // the spread takes eigenvalues of T, so it is computed only every 8 steps
		probeOptions := lanczos.Options{Steps: o.Steps, Quantity: lanczos.TridiagonalOnly,
			Start: o.Start.Sub("probe", uint64(i)),
			Done: func(c int, result *lanczos.Result) bool {
				if !useful[c] {
					return true
				}
				if result.Steps%checkedSteps != 0 {
					return false
				}
				gap, deviation := s.logDetSpread(c, firstRun[c], result)
				return gap <= deviation/10
			}}
		var results []*lanczos.Result
		results, err = lanczos.RunMany(ctx, s.A, s.M, len(s.Rows), &probeOptions)
		for c := range results {
			if !useful[c] {
				results[c] = nil
			}
		}
		runs = append(runs, results)
		s.Notify(ctx, stage.Event{Stage: stage.Lanczos, Detail: "ln det", Done: i, Total: s.Probes - 1, Remaining: -1})
	}
	return runs, err
}

// logDeterminant is a built-in or user-defined M that provides ln det M.
type logDeterminant interface{ LogDet() float64 }

// logDetM returns ln det M_c of the normalized M_c, and whether it is known.
func (s *Set) logDetM(c int) (value float64, hasLogDet bool) {
	preconditioners, ok := s.M.(*Preconditioners)
	if !ok || preconditioners.ms[c] == nil {
		return 0, ok // M = I
	}
	m, hasLogDet := preconditioners.ms[c].Preconditioner.(logDeterminant)
	if hasLogDet {
		value = m.LogDet() - float64(s.A.Dim())*math.Log(preconditioners.factor(c))
	}
	return value, hasLogDet
}

// lowerBound returns a lower bound of λ_min(M_c⁻¹A) that does not depend on a Lanczos process, or 0 if none is known.
func (s *Set) lowerBound(c int) float64 {
	if s.LambdaMin == nil {
		return 0
	}
	bound := s.LambdaMin[c]
	if preconditioners, ok := s.M.(*Preconditioners); ok {
		bound *= preconditioners.factor(c)
	}
	return bound
}

// logDetSpread returns lanczos.Result.LogDetSpread for the mean of all processes with M_c, estimated from one of them.
// It returns +Inf if ln det M_c or a lower bound of the spectrum is not known.
func (s *Set) logDetSpread(c int, firstResult, r *lanczos.Result) (gap, deviation float64) {
	if firstResult != nil && firstResult.Err == nil {
		lowerBound := cmp.Or(s.lowerBound(c), max(0, firstResult.Min.Lo))
		if _, hasLogDet := s.logDetM(c); hasLogDet && lowerBound > 0 {
			gap, deviation = r.LogDetSpread(lowerBound)
			return gap, deviation / math.Sqrt(float64(s.Probes))
		}
	}
	return math.Inf(1), math.Inf(1)
}

// usefulProbes reports, for each preconditioner, whether its interval of ln det(K+λI), estimated from the first
// process, is at most twice as wide as the narrowest one.
func (s *Set) usefulProbes(firstRun []*lanczos.Result) []bool {
	widths, useful := make([]float64, len(firstRun)), make([]bool, len(firstRun))
	for c, result := range firstRun {
		gap, deviation := s.logDetSpread(c, result, result)
		widths[c] = gap + deviation
	}
	for c, width := range widths {
		useful[c] = width <= 2*slices.Min(widths) && !math.IsInf(width, 1)
	}
	return useful
}

// setLogDet sets LogDetA and LogDetEstimate of row c from ln det(K+λI) = ln det M + ln det(M⁻¹(K+λI)).
func (s *Set) setLogDet(c int, runs [][]*lanczos.Result) {
	logDetM, hasLogDet := s.logDetM(c)
	if !hasLogDet {
		return
	}
	var results []*lanczos.Result
	for _, run := range runs {
		if result := run[c]; result != nil && result.Err == nil {
			results = append(results, result)
		}
	}
	// |ln det(A+E) − ln det A| ≤ n‖E‖₂/(λ−‖E‖₂)
	storageError := float64(s.A.Dim()) * s.StorageError / max(0, 1-s.StorageError)
	shiftByLogDetM := func(interval estimate.Interval) *estimate.Interval {
		interval.Value, interval.Lo, interval.Hi = interval.Value+logDetM, interval.Lo+logDetM-storageError,
			interval.Hi+logDetM+storageError
		if !(interval.Hi-interval.Lo <= math.MaxFloat64) {
			return nil
		}
		return &interval
	}
	proved, estimated := lanczos.LogDet(results, s.lowerBound(c))
	s.Rows[c].LogDetA, s.Rows[c].LogDetEstimate = shiftByLogDetM(proved),
		shiftByLogDetM(estimated)
}

// setLikelihoods sets the likelihoods of all rows from their determinants and from the solves.
func (s *Set) setLikelihoods() {
	for _, row := range s.Rows {
		row.Likelihood, row.LikelihoodEstimate = s.likelihood(row, row.LogDetA), s.likelihood(row, row.LogDetEstimate)
	}
}

// copyErrors copies the errors of the preconditioners to the rows.
func (s *Set) copyErrors() {
	if preconditioners, ok := s.M.(*Preconditioners); ok {
		for c, err := range preconditioners.Errs {
			if err != nil {
				s.Rows[c].FailureReason = err.Error()
			}
		}
	}
}

// likelihood returns the interval of −2 ln p(y) for an interval of ln det(K+λI), or nil if a term is not known.
func (s *Set) likelihood(row *Row, logDetA *estimate.Interval) *estimate.Interval {
	if logDetA == nil || row.energyBounds[1] == 0 || s.MixedTargets {
		return nil
	}
	interval, constant := *logDetA, float64(s.A.Dim())*math.Log(2*math.Pi)
	for _, weight := range s.Weights { // A and y are multiplied by the weights
		constant -= math.Log(weight)
	}
	interval.Value += constant + s.squaredNorm*row.energyBounds[0]
	// The extreme case is K = 0 with the storage error −StorageError·λI.
	interval.Lo += constant + s.squaredNorm*row.energyBounds[0]*max(0, 1-s.StorageError)
	interval.Hi += constant + s.squaredNorm*row.energyBounds[1]/max(0, 1-s.StorageError)
	return &interval
}

// Solve runs conjugate gradients with each M_c for every column of b, n×t, as one block of all columns.
func (s *Set) Solve(ctx context.Context, b *mat.Dense, o pcg.Options) error {
	n, t := b.Dims()
	rhs := mat.NewDense(n, t*len(s.Rows), nil)
	for c := range s.Rows {
		rhs.Slice(0, n, c*t, (c+1)*t).(*mat.Dense).Copy(b)
	}
	start, monitor := time.Now(), o.Monitor
	o.Monitor = func(iteration *pcg.Iteration) error {
		if monitor != nil {
			return monitor(iteration)
		}
		event := stage.Event{Stage: stage.Solve, Iteration: iteration.Index, Residual: iteration.MaxRelRes,
			Remaining: -1}
		if progress := math.Log(iteration.MaxRelRes) / math.Log(o.Tol); progress > 0.05 {
			event.Remaining = time.Duration(float64(time.Since(start)) * (1/progress - 1))
		}
		s.Notify(ctx, event)
		return nil
	}
	s.squaredNorm = math.Pow(mat.Norm(b, 2), 2)
	res, err := pcg.Solve(ctx, s.A, repeatedColumns{s.M, t}, rhs, &o)
	for c := range s.Rows {
		if res != nil {
			s.setSolve(res, c, t)
		}
	}
	s.setLikelihoods()
	s.copyErrors()
	return err
}

// Exact computes all eigenvalues of each M_c⁻¹A, except for M_c that failed. It sets NotDefinite if the computed M_c⁻¹
// is not positive definite in float64. M must be *Preconditioners.
func (s *Set) Exact(ctx context.Context, b stage.Bench) error {
	preconditioners, lambda := s.M.(*Preconditioners), b.Problem().Lambda
	for c, row := range s.Rows {
		if preconditioners.Errs[c] != nil {
			continue
		}
		s.Notify(ctx, stage.Event{Stage: stage.Spectrum, Detail: row.Name, Remaining: -1})
		k, kError, err := b.Dense(ctx, 0)
		if err != nil {
			return err
		}
		start := time.Now()
		var m pcg.Preconditioner // nil for M = I
		if preconditioners.ms[c] != nil {
			m = preconditioners.ms[c]
		}
		values, roundingBound, isDefinite, err := eigenvalues(ctx, k, lambda, m)
		if err = comm.Agree(ctx, preconditioners.ranks, err); ctx.Err() != nil {
			return ctx.Err()
		}
		if preconditioners.Errs[c], row.NotDefinite = err, err == nil && !isDefinite; err != nil || !isDefinite {
			continue
		}
		const method = "dense eigenvalues"
		ends := lanczos.FromIntervals(estimate.Certain(values[0], roundingBound, method),
			estimate.Certain(values[len(values)-1], roundingBound, method))
		kappa, _, _ := ends.PerturbedIntervals(kError / lambda) // the error of K in float64
		kappa.Seconds = time.Since(start).Seconds()
		row.Exact = &kappa
		row.setSpectrum(len(values), values, nil)
	}
	s.copyErrors()
	return nil
}

// ApplySeconds returns the time, in seconds, of applying op to y: the smaller of two measurements.
func ApplySeconds(ctx context.Context, op func(ctx context.Context, dst, src *mat.Dense) error, y *mat.Dense) (float64,
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

// repeatedColumns applies Metrics to blocks that have perMatrix columns for each M_c.
type repeatedColumns struct {
	lanczos.Metrics
	perMatrix int
}

// SolveTo is never called, because pcg.Solve uses SolveColumnsTo.
func (m repeatedColumns) SolveTo(context.Context, *mat.Dense, *mat.Dense) error {
	return errors.ErrUnsupported
}

// SolveColumnsTo implements pcg.ColumnPreconditioner.
func (m repeatedColumns) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	matrices := make([]int, len(cols))
	for j, c := range cols {
		matrices[j] = c / m.perMatrix
	}
	return m.Metrics.SolveColumnsTo(ctx, dst, r, matrices)
}
