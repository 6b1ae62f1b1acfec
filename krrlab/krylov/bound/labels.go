package bound

import (
	"context"
	"math"

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

// Open returns how many rows of decision values F, m×t, have a label that may change where f_j(x_i) is known to
// roots_i·errors_j only, roots_i = √k(x_i, x_i): the sign of one column, the largest of several.
func Open(f *mat.Dense, roots, errors []float64) (open int) {
	m, t := f.Dims()
	for i := range m {
		row := f.RawRowView(i)
		if t == 1 {
			if !(math.Abs(row[0]) > roots[i]*errors[0]) {
				open++
			}
			continue
		}
		top := datasets.Label(row)
		for j, v := range row {
			if j != top && !(row[top]-v > roots[i]*(errors[top]+errors[j])) {
				open++
				break
			}
		}
	}
	return open
}

// Roots returns √k(x_i, x_i).
func Roots(k kernel.Kernel, x points.Points) []float64 {
	d := kernel.Diag(k, x)
	for i, v := range d {
		d[i] = math.Sqrt(v)
	}
	return d
}

// sampleRows is how many rows a Sample has at most.
const sampleRows = 1024

// SampleBytes returns the memory of a Sample for n training points.
func SampleBytes(n int) int64 { return 8 * sampleRows * int64(n) }

// Sample decides during an iteration whether few labels are open, from rows drawn at random and their
// kernel values, which it holds.
type Sample struct {
	n, m, all int
	share     float64
	k         []float64 // m×n
	roots     []float64
	below     float64 // the error at which the rows are next looked at
}

// NewSample draws at most 1,024 of the rows, for the training points x, scaled as they are, and forms their kernel
// values in float64, 8·1,024·n bytes.
func NewSample(ctx context.Context, k kernel.Kernel, x, rows points.Points, share float64, g rng.Stream) (*Sample,
	error) {
	n, _ := x.Dims()
	all, _ := rows.Dims()
	s := &Sample{n: n, m: min(all, sampleRows), all: all, share: share, below: math.Inf(1)}
	if s.m < all {
		rows = points.Gather(rows, g.Perm(all)[:s.m])
	}
	place, arith := kernel.NewPlacement(k, x).Accurate(k, 1e-10)
	s.k, s.roots = make([]float64, s.m*n), Roots(k, rows)
	left, right := place.Apply(rows), place.Panel
	work := make([]kernel.Workspace, accel.Threads())
	return s, s.strips(ctx, func(w, lo, hi int) {
		kernel.Tile64(s.k[lo*n:hi*n], n, k, left.Slice(lo, hi), right, arith, &work[w])
	})
}

// strip is how many rows a worker takes together.
const strip = 64

func (s *Sample) strips(ctx context.Context, f func(w, lo, hi int)) error {
	return accel.ForEach(ctx, (s.m+strip-1)/strip, func(w, b int) { f(w, b*strip, min((b+1)*strip, s.m)) })
}

// due reports whether the errors, bounds of ‖e_j‖_A, have fallen by a fifth since it last said so.
func (s *Sample) due(errors []float64) bool {
	var worst float64
	for _, e := range errors {
		worst = math.Max(worst, e)
	}
	if !(worst <= s.below) {
		return false
	}
	s.below = 0.8 * worst
	return true
}

// few reports whether at most the share of all rows is open, for coefficients C with such errors: of the sample
// if that is all, and else with 99 % confidence, by the binomial distribution.
func (s *Sample) few(ctx context.Context, c *mat.Dense, errors []float64) (bool, error) {
	_, t := c.Dims()
	f := mat.NewDense(s.m, t, nil)
	right, out := c.RawMatrix(), f.RawMatrix()
	err := s.strips(ctx, func(_, lo, hi int) {
		left := blas64.General{Rows: hi - lo, Cols: s.n, Stride: s.n, Data: s.k[lo*s.n:]}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, left, right, 0,
			blas64.General{Rows: hi - lo, Cols: t, Stride: t, Data: out.Data[lo*t:]})
	})
	if err != nil {
		return false, err
	}
	open := Open(f, s.roots, errors)
	if s.m == s.all {
		return float64(open) <= s.share*float64(s.m), nil
	}
	return distuv.Binomial{N: float64(s.m), P: s.share}.CDF(float64(open)) <= 0.01, nil
}

// Watch bounds the error of an iteration, and ends it as Stop says.
type Watch struct {
	Basis  *Basis
	Stop   Stop
	Tau    float64 // of ANorm
	Sample *Sample // of Labels
	Ended  bool    // it has
	errors []float64
	c      *mat.Dense
}

// Enough returns the bound of the error, relative to the solution, and pcg.ErrStop where Stop is met.
func (w *Watch) Enough(ctx context.Context, it *pcg.Iteration) (float64, error) {
	if w.errors == nil {
		w.errors = make([]float64, len(w.Basis.Norms))
	}
	w.Basis.Errors(w.errors, it.RelRes, it.Error)
	worst := w.Basis.relative(w.errors, it.TotalDecrease)
	switch {
	case w.Stop.Rule == ANorm:
		w.Ended = worst <= w.Tau
	case w.Stop.Rule == Labels && w.Sample.due(w.decisions(it.RelRes)):
		if w.c == nil {
			w.c = mat.NewDense(w.Sample.n, len(w.errors), nil)
		}
		it.AnswerTo(w.c)
		var err error
		if w.Ended, err = w.Sample.few(ctx, w.c, w.errors); err != nil {
			return worst, err
		}
	}
	if w.Ended {
		return worst, pcg.ErrStop
	}
	return worst, nil
}

// decisions turns the errors to bounds of |f_j*(x)−f_j(x)|/√k(x, x): see Errors.Decisions.
func (w *Watch) decisions(relres []float64) []float64 {
	for j, y := range w.Basis.Norms {
		w.errors[j] = min(w.errors[j], relres[j]*y/(2*math.Sqrt(w.Basis.Lambda)))
	}
	return w.errors
}

// Met reports whether what ended the iteration, if that is labels, holds for its answer C too, by its
// Decisions: they may be far above those by recurrence where K is stored in few bits.
func (w *Watch) Met(ctx context.Context, c *mat.Dense, errors []float64) (bool, error) {
	if !w.Ended || w.Stop.Rule != Labels {
		return false, nil
	}
	return w.Sample.few(ctx, c, errors)
}
