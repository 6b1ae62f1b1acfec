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

// UndecidedRows returns the number of rows of decision values F, m×t, whose label is undecided, which means that the
// label may change if f_j(x_i) has an error of up to roots_i·errorBounds_j, where roots_i = √k(x_i, x_i). The label is
// the sign if there is one column, and the index of the largest value otherwise.
func UndecidedRows(f *mat.Dense, roots, errorBounds []float64) (undecided int) {
	m, t := f.Dims()
	for i := range m {
		row := f.RawRowView(i)
		if t == 1 {
			if !(math.Abs(row[0]) > roots[i]*errorBounds[0]) {
				undecided++
			}
			continue
		}
		label := datasets.PredictedClass(row)
		for j, value := range row {
			if j != label && !(row[label]-value > roots[i]*(errorBounds[label]+errorBounds[j])) {
				undecided++
				break
			}
		}
	}
	return undecided
}

// DiagonalRoots returns √k(x_i, x_i).
func DiagonalRoots(k kernel.Kernel, x points.Points) []float64 {
	roots := kernel.Diag(k, x)
	for i, diagonal := range roots {
		roots[i] = math.Sqrt(diagonal)
	}
	return roots
}

// maxSampleRows is the maximum number of rows of a LabelSample. More rows decide more precisely and need more memory.
const maxSampleRows = 1024

// LabelSampleBytes returns the memory of a LabelSample for n training points.
func LabelSampleBytes(n int) int64 { return 8 * maxSampleRows * int64(n) }

// LabelSample decides during an iteration whether few labels are undecided. It uses rows drawn at random and stores
// their kernel values.
type LabelSample struct {
	n            int       // number of training points
	sampleRows   int       // number of rows in the sample
	totalRows    int       // number of rows the sample was drawn from
	maxUndecided float64   // largest fraction of undecided rows
	k            []float64 // kernel values, sampleRows×n
	roots        []float64 // √k(x_i, x_i) of the rows
	nextError    float64   // the labels are tested again once the error is at most this
}

// NewLabelSample draws at most 1,024 of the rows and computes their kernel values with the training points x in
// float64, which takes 8·1,024·n bytes. The rows and x must be scaled in the same way. At most the fraction
// maxUndecided of all rows may be undecided when the iteration ends.
func NewLabelSample(ctx context.Context, k kernel.Kernel, x, rows points.Points, maxUndecided float64,
	g rng.Stream) (*LabelSample, error) {
	n, _ := x.Dims()
	totalRows, _ := rows.Dims()
	s := &LabelSample{n: n, sampleRows: min(totalRows, maxSampleRows), totalRows: totalRows, maxUndecided: maxUndecided,
		nextError: math.Inf(1)}
	if s.sampleRows < totalRows {
		rows = points.Gather(rows, g.Perm(totalRows)[:s.sampleRows])
	}
	placement, arith := kernel.NewPlacement(k, x).WithAccuracy(1e-10)
	s.k, s.roots = make([]float64, s.sampleRows*n), DiagonalRoots(k, rows)
	rowPanel, trainingPanel := placement.Apply(rows), placement.Panel
	work := make([]kernel.Workspace, accel.Threads())
	return s, accel.ForEachBlock(ctx, s.sampleRows, stripRows, func(worker, start, end int) {
		kernel.Tile64(s.k[start*n:end*n], n, k, rowPanel.Slice(start, end), trainingPanel, arith, &work[worker])
	})
}

// stripRows is the number of rows that a worker processes together.
const stripRows = 64

// needsTest reports whether the labels should be tested: the largest error bound has decreased by a fifth since
// needsTest last returned true.
func (s *LabelSample) needsTest(errorBounds []float64) bool {
	worst := slices.Max(errorBounds)
	if !(worst <= s.nextError) {
		return false
	}
	s.nextError = 0.8 * worst
	return true
}

// fewUndecided reports whether the labels of at most the fraction maxUndecided of all rows are undecided, for
// coefficients C with the given error bounds. The result is exact if the sample contains all rows. Otherwise true has
// 99 % confidence, by the binomial distribution.
func (s *LabelSample) fewUndecided(ctx context.Context, c *mat.Dense, errorBounds []float64) (bool, error) {
	_, t := c.Dims()
	f := mat.NewDense(s.sampleRows, t, nil)
	coefficients, values := c.RawMatrix(), f.RawMatrix()
	err := accel.ForEachBlock(ctx, s.sampleRows, stripRows, func(_, start, end int) {
		kernelRows := blas64.General{Rows: end - start, Cols: s.n, Stride: s.n, Data: s.k[start*s.n:]}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, kernelRows, coefficients, 0,
			blas64.General{Rows: end - start, Cols: t, Stride: t, Data: values.Data[start*t:]})
	})
	if err != nil {
		return false, err
	}
	undecided := UndecidedRows(f, s.roots, errorBounds)
	if s.sampleRows == s.totalRows {
		return float64(undecided) <= s.maxUndecided*float64(s.sampleRows), nil
	}
	return distuv.Binomial{N: float64(s.sampleRows), P: s.maxUndecided}.CDF(float64(undecided)) <= 0.01, nil
}

// Monitor bounds the error of an iteration, and ends it according to Stop. The caller sets the exported fields, and
// Check changes Noise, Tol and Stopped as the iteration proceeds.
type Monitor struct {
	Problem *Problem     // the problem that the iteration solves
	Stop    Stop         // rule that ends the iteration
	Tau     float64      // tolerance for the rule ByANorm
	Sample  *LabelSample // rows for the rule ByLabels
	Noise   *Noise       // estimate for the rule ByPredictions; nil before the first one
	// Classes reports that the columns belong to one classification.
	Classes bool
	// Trace returns an upper estimate of λ·tr(A⁻¹)/n, by at most the given number of iterations for a random vector,
	// and the number of products with A.
	Trace        func(ctx context.Context, iterations int) (trace float64, products int, err error)
	Tol          float64    // tolerance τ of the solve, which the rule ByPredictions may raise
	TolFraction  float64    // fraction of Tol that the recursive residual must reach, pcg.Options.TolFraction
	Stopped      bool       // the Monitor ended the iteration by ByANorm or ByLabels
	estimatedTol float64    // tolerance by the latest estimate of the noise; 0 if there is no estimate
	errors       []float64  // bounds of the errors of the columns
	c            *mat.Dense // copy of the iterate, for the rule ByLabels
}

// Check is called after each iteration. It returns the largest bound of ‖e_j‖_A/‖c_j*‖_A, and pcg.ErrStop if the rule
// ByANorm or ByLabels is satisfied. For the rule ByPredictions it may raise the tolerance of the iteration.
func (m *Monitor) Check(ctx context.Context, iteration *pcg.Iteration) (float64, error) {
	if m.errors == nil {
		m.errors = make([]float64, len(m.Problem.Norms))
	}
	m.Problem.iterateErrors(m.errors, iteration.RelRes, iteration.ErrorBounds)
	worst := m.Problem.largestRelative(m.errors, iteration.TotalDecrease)
	switch {
	case m.Stop.Rule == ByPredictions:
		return worst, m.checkNoise(ctx, iteration)
	case m.Stop.Rule == ByANorm:
		m.Stopped = worst <= m.Tau
	case m.Stop.Rule == ByLabels && m.Sample.needsTest(m.decisionErrors(iteration.RelRes)):
		if m.c == nil {
			m.c = mat.NewDense(m.Sample.n, len(m.errors), nil)
		}
		iteration.AnswerTo(m.c)
		var err error
		if m.Stopped, err = m.Sample.fewUndecided(ctx, m.c, m.errors); err != nil {
			return worst, err
		}
	}
	if m.Stopped {
		return worst, pcg.ErrStop
	}
	return worst, nil
}

// decisionErrors converts m.errors in place to bounds of |f_j*(x)−f_j(x)|/√k(x, x), see Errors.Decisions.
func (m *Monitor) decisionErrors(relRes []float64) []float64 {
	for j, yNorm := range m.Problem.Norms {
		m.errors[j] = min(m.errors[j], relRes[j]*yNorm/(2*math.Sqrt(m.Problem.Lambda)))
	}
	return m.errors
}

// LabelsHold reports whether the rule ByLabels ended the iteration and still holds for the answer C with the bounds
// decisionBounds of Errors.Decisions. If K is stored in few bits, these may be much larger than the bounds during the
// iteration.
func (m *Monitor) LabelsHold(ctx context.Context, c *mat.Dense, decisionBounds []float64) (bool, error) {
	if !m.Stopped || m.Stop.Rule != ByLabels {
		return false, nil
	}
	return m.Sample.fewUndecided(ctx, c, decisionBounds)
}
