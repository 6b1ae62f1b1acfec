package bound

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// UndecidedRows returns the number of rows of decision values F, m×t, whose label is undecided: it may change if
// f_j(x_i) has an error of up to roots_i·errors_j, roots_i = √k(x_i, x_i). The label is the sign if there is one
// column, and the index of the largest value otherwise.
func UndecidedRows(f *mat.Dense, roots, errors []float64) (undecided int) {
	m, t := f.Dims()
	for i := range m {
		row := f.RawRowView(i)
		if t == 1 {
			if !(math.Abs(row[0]) > roots[i]*errors[0]) {
				undecided++
			}
			continue
		}
		label := datasets.PredictedClass(row)
		for j, v := range row {
			if j != label && !(row[label]-v > roots[i]*(errors[label]+errors[j])) {
				undecided++
				break
			}
		}
	}
	return undecided
}

// DiagonalRoots returns √k(x_i, x_i).
func DiagonalRoots(k kernel.Kernel, x points.Points) []float64 {
	d := kernel.Diag(k, x)
	for i, v := range d {
		d[i] = math.Sqrt(v)
	}
	return d
}

// maxSampleRows is the maximum number of rows of a LabelSample. More rows decide more precisely and need more memory.
const maxSampleRows = 1024

// LabelSampleBytes returns the memory of a LabelSample for n training points.
func LabelSampleBytes(n int) int64 { return 8 * maxSampleRows * int64(n) }

// LabelSample decides during an iteration whether few labels are undecided. It uses rows drawn at random and stores
// their kernel values.
type LabelSample struct {
	n, m         int // number of training points, and of rows in the sample
	totalRows    int // number of rows the sample was drawn from
	maxUndecided float64
	k            []float64 // kernel values, m×n
	roots        []float64 // √k(x_i, x_i) of the rows
	nextError    float64   // the labels are tested again once the error is at most this
}

// NewLabelSample draws at most 1,024 of the rows and computes their kernel values with the training points x in
// float64, which takes 8·1,024·n bytes. Both must be scaled in the same way. At most the fraction maxUndecided of all
// rows may be undecided when the iteration ends.
func NewLabelSample(ctx context.Context, k kernel.Kernel, x, rows points.Points, maxUndecided float64,
	g rng.Stream) (*LabelSample, error) {
	n, _ := x.Dims()
	totalRows, _ := rows.Dims()
	s := &LabelSample{n: n, m: min(totalRows, maxSampleRows), totalRows: totalRows, maxUndecided: maxUndecided,
		nextError: math.Inf(1)}
	if s.m < totalRows {
		rows = points.Gather(rows, g.Perm(totalRows)[:s.m])
	}
	placement, arith := kernel.NewPlacement(k, x).WithAccuracy(1e-10)
	s.k, s.roots = make([]float64, s.m*n), DiagonalRoots(k, rows)
	rowPanel, trainingPanel := placement.Apply(rows), placement.Panel
	work := make([]kernel.Workspace, accel.Threads())
	return s, accel.ForEachBlock(ctx, s.m, stripRows, func(w, lo, hi int) {
		kernel.Tile64(s.k[lo*n:hi*n], n, k, rowPanel.Slice(lo, hi), trainingPanel, arith, &work[w])
	})
}

// stripRows is the number of rows that a worker processes together.
const stripRows = 64

// needsTest reports whether the labels should be tested: the largest error bound has decreased by a fifth since
// needsTest last returned true.
func (s *LabelSample) needsTest(errors []float64) bool {
	worst := slices.Max(errors)
	if !(worst <= s.nextError) {
		return false
	}
	s.nextError = 0.8 * worst
	return true
}

// fewUndecided reports whether the labels of at most the fraction maxUndecided of all rows are undecided, for
// coefficients C with the given error bounds. The result is exact if the sample contains all rows. Otherwise a result
// true has 99 % confidence, by the binomial distribution.
func (s *LabelSample) fewUndecided(ctx context.Context, c *mat.Dense, errors []float64) (bool, error) {
	_, t := c.Dims()
	f := mat.NewDense(s.m, t, nil)
	coefficients, out := c.RawMatrix(), f.RawMatrix()
	err := accel.ForEachBlock(ctx, s.m, stripRows, func(_, lo, hi int) {
		kernelRows := blas64.General{Rows: hi - lo, Cols: s.n, Stride: s.n, Data: s.k[lo*s.n:]}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, kernelRows, coefficients, 0,
			blas64.General{Rows: hi - lo, Cols: t, Stride: t, Data: out.Data[lo*t:]})
	})
	if err != nil {
		return false, err
	}
	undecided := UndecidedRows(f, s.roots, errors)
	if s.m == s.totalRows {
		return float64(undecided) <= s.maxUndecided*float64(s.m), nil
	}
	return distuv.Binomial{N: float64(s.m), P: s.maxUndecided}.CDF(float64(undecided)) <= 0.01, nil
}

// Monitor bounds the error of an iteration, and ends it according to Stop. The caller sets the exported fields, and
// Check changes Noise, Tol and Stopped.
type Monitor struct {
	Problem *Problem
	Stop    Stop
	Tau     float64      // tolerance for the rule ByANorm
	Sample  *LabelSample // rows for the rule ByLabels
	Noise   *Noise       // estimate for the rule ByPredictions; nil before the first one
	// Classes reports that the columns belong to one classification.
	Classes bool
	// Trace estimates λ·tr(A⁻¹)/n from above with at most the given number of iterations for a random vector.
	Trace        func(ctx context.Context, iterations int) (trace float64, products int, err error)
	Tol          float64    // tolerance τ of the solve, then the one that the rule ByPredictions accepted
	TolFraction  float64    // fraction of Tol that the recursive residual must reach, pcg.Options.TolFraction
	Stopped      bool       // Monitor ended the iteration by ByANorm or ByLabels
	estimatedTol float64    // tolerance by the latest estimate of the noise; 0: none
	errors       []float64  // bounds of the errors of the columns
	c            *mat.Dense // copy of the iterate, for the rule ByLabels
}

// Check is called after each iteration. It returns the largest bound of ‖e_j‖_A/‖c_j*‖_A, and pcg.ErrStop if the rule
// ByANorm or ByLabels is satisfied. For the rule ByPredictions it may raise the tolerance of the iteration.
func (w *Monitor) Check(ctx context.Context, iteration *pcg.Iteration) (float64, error) {
	if w.errors == nil {
		w.errors = make([]float64, len(w.Problem.Norms))
	}
	w.Problem.iterateErrors(w.errors, iteration.RelRes, iteration.ErrorBounds)
	worst := w.Problem.largestRelative(w.errors, iteration.TotalDecrease)
	switch {
	case w.Stop.Rule == ByPredictions:
		return worst, w.checkNoise(ctx, iteration)
	case w.Stop.Rule == ByANorm:
		w.Stopped = worst <= w.Tau
	case w.Stop.Rule == ByLabels && w.Sample.needsTest(w.decisionErrors(iteration.RelRes)):
		if w.c == nil {
			w.c = mat.NewDense(w.Sample.n, len(w.errors), nil)
		}
		iteration.AnswerTo(w.c)
		var err error
		if w.Stopped, err = w.Sample.fewUndecided(ctx, w.c, w.errors); err != nil {
			return worst, err
		}
	}
	if w.Stopped {
		return worst, pcg.ErrStop
	}
	return worst, nil
}

// decisionErrors converts w.errors in place to bounds of |f_j*(x)−f_j(x)|/√k(x, x), see Errors.Decisions.
func (w *Monitor) decisionErrors(relres []float64) []float64 {
	for j, y := range w.Problem.Norms {
		w.errors[j] = min(w.errors[j], relres[j]*y/(2*math.Sqrt(w.Problem.Lambda)))
	}
	return w.errors
}

// LabelsHold reports whether the iteration was ended by labels and the rule still holds for its answer C with the
// bounds errors, its Decisions. These may be much larger than the bounds during the iteration if K is stored in few
// bits.
func (w *Monitor) LabelsHold(ctx context.Context, c *mat.Dense, errors []float64) (bool, error) {
	if !w.Stopped || w.Stop.Rule != ByLabels {
		return false, nil
	}
	return w.Sample.fewUndecided(ctx, c, errors)
}
