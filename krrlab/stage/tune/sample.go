package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model/leaveout"
)

// sample is a subsample of the rows. It stores the distances or inner products of all pairs of rows, from which it
// forms K for every kernel and σ. The first m of its n rows are fitted; the others are only predicted.
type sample struct {
	x              points.Points
	unscaled       points.Points                 // x before setShape; nil: x
	shape          []float64                     // shape of the distance, as for stretch; nil: all features have one length scale
	y              *mat.Dense                    // coded targets, n×t
	judgment       scoring                       // metric and weights of the judging rows, or of all rows if none
	sqrtWeights    []float64                     // √w_i of the fitted rows, and 1 for judging rows; nil: all ones
	tables         map[kernel.Argument][]float64 // lower triangles, n×m, of ‖x−z‖₂², ‖x−z‖₁ or xᵀz
	k              *mat.Dense                    // n×m, lower triangle
	formedKernel   kernel.Kernel                 // kernel of k; nil: k is not valid
	groups         *datasets.Grouping            // rows to be left out together
	centersTargets bool                          // the fit subtracts the mean of its targets
	fittedRows     int                           // number m of fitted rows; 0: all rows, judged by leave-one-out
}

// dims returns the number n of rows and the number m of fitted rows.
func (s *sample) dims() (n, m int) {
	n, _ = s.x.Dims()
	return n, cmp.Or(s.fittedRows, n)
}

// tile is the number of rows and columns of a block of a table.
const tile = 256

// table returns the distances or inner products that the kernel is a function of, for all pairs of rows. Points that
// are far from zero compared with their spread are first shifted by their mean, to avoid cancellation in
// ‖a‖²+‖b‖²−2aᵀb.
func (s *sample) table(ctx context.Context, k kernel.Kernel) ([]float64, error) {
	argument, form := kernel.ArgumentOf(k), squaredDistances
	switch argument {
	case kernel.L1Distance:
		form = points.L1Dist64
	case kernel.InnerProduct:
		form = points.Inner64
	}
	if t := s.tables[argument]; t != nil {
		return t, nil
	}
	x := kernel.NewPlacement(k, s.x).Panel.X
	n, m := s.dims()
	t := make([]float64, n*m)
	work := make([]points.Workspace, accel.Threads())
	err := accel.ForEach(ctx, (n+tile-1)/tile, func(worker, b int) {
		i0, i1 := b*tile, min((b+1)*tile, n)
		for j0 := 0; j0 < min(i1, m); j0 += tile {
			form(t[i0*m+j0:], m, x.Slice(i0, i1), x.Slice(j0, min(j0+tile, m)), &work[worker])
		}
	})
	if err == nil {
		s.tables[argument] = t
	}
	return t, err
}

// squaredDistances computes ‖a−b‖² = ‖a‖²+‖b‖²−2aᵀb. If that cancels for any pair, it computes all distances from
// differences instead, because points may be close together and far from zero. Products of bytes are exact, and sparse
// points are not close together far from zero, so that neither is checked.
func squaredDistances(dst []float64, ld int, a, b points.Points, w *points.Workspace) {
	points.Inner64(dst, ld, a, b, w)
	_, trusted := points.ExactProductUnit(a, b)
	if _, sparse := a.(*points.CSR); sparse {
		trusted = true
	}
	na, nb := points.SqNorms(a), points.SqNorms(b)
	for i, u := range na {
		row := dst[i*ld : i*ld+len(nb)]
		for j, v := range nb {
			row[j] = max(0, u+v-2*row[j])
			if !trusted && row[j] < cancellationShare*(u+v) {
				points.SqDist64(dst, ld, a, b, w)
				return
			}
		}
	}
}

// cancellationShare is the share of ‖a‖²+‖b‖² below which ‖a−b‖² is computed from differences. A share of 1e-6 is a
// loss of six digits; a larger one is more accurate and computes more distances from differences.
const cancellationShare = 1e-6

// formKernel forms the lower triangle of K for the kernel.
func (s *sample) formKernel(ctx context.Context, k kernel.Kernel) error {
	if reflect.DeepEqual(s.formedKernel, k) {
		return nil
	}
	t, err := s.table(ctx, k)
	if err != nil {
		return err
	}
	n, m := s.dims()
	if s.k == nil {
		s.k = mat.NewDense(n, m, nil)
	}
	s.formedKernel = nil
	profiler := k.(interface{ Profile(dst, s []float64) })
	err = accel.ForEach(ctx, n, func(_, i int) {
		row := s.k.RawRowView(i)[:min(i+1, m)]
		profiler.Profile(row, t[i*m:i*m+len(row)])
		for j := range row {
			if s.sqrtWeights != nil {
				row[j] *= s.sqrtWeights[i] * s.sqrtWeights[j]
			}
		}
	})
	if err == nil {
		s.formedKernel = k
	}
	return err
}

// meanDiagonal returns the mean of K's diagonal, the unit of the grid of λ.
func (s *sample) meanDiagonal(ctx context.Context, k kernel.Kernel) (float64, error) {
	if kernel.Bounded01(k) && s.sqrtWeights == nil {
		return 1, nil
	}
	if err := s.formKernel(ctx, k); err != nil {
		return 0, err
	}
	_, m := s.dims()
	return mat.Trace(s.k.Slice(0, m, 0, m)) / float64(m), nil
}

// loss returns the loss of one kernel and one λ, by leave-one-out or for the judging rows.
func (s *sample) loss(ctx context.Context, k kernel.Kernel, lambda float64) (*loss, error) {
	if err := s.formKernel(ctx, k); err != nil {
		return nil, err
	}
	if s.fittedRows > 0 {
		return s.predictionLoss(ctx, lambda)
	}
	return s.leaveOut(ctx, lambda, s.groups.FirstRow)
}

// leaveOut returns the leave-one-out loss, with the rows of each group left out together. firstOfGroup is the first row
// of the group of each row.
func (s *sample) leaveOut(ctx context.Context, lambda float64, firstOfGroup []int) (*loss, error) {
	options := &leaveout.Problem{Classification: s.judgment.classes(), ComputeResiduals: true,
		SubtractsMean: s.centersTargets}
	options.FirstEqual, options.Groups = s.groups.SplitByKind(firstOfGroup)
	for _, f := range s.sqrtWeights {
		options.Weights = append(options.Weights, f*f)
	}
	scores, err := leaveout.Dense(ctx, s.k, points.ScaleRows(s.sqrtWeights, s.y), []float64{lambda}, options)
	if err != nil {
		return nil, err
	}
	j := s.judgment
	j.groups = firstOfGroup
	return j.loss(s.y, scores[0].Residuals), nil
}

// predictionLoss returns the loss of the judging rows, predicted from the fitted rows.
func (s *sample) predictionLoss(ctx context.Context, lambda float64) (*loss, error) {
	n, t := s.y.Dims()
	m := s.fittedRows
	a, mean := make([]float64, m*m), make([]float64, t)
	for i := range m {
		copy(a[i*m:], s.k.RawRowView(i)[:i+1])
		a[i*m+i] += lambda
	}
	c := mat.DenseCopyOf(s.y.Slice(0, m, 0, t))
	var weights []float64
	for i := range min(m, len(s.sqrtWeights)) {
		weights = append(weights, s.sqrtWeights[i]*s.sqrtWeights[i])
	}
	for j := 0; s.centersTargets && j < t; j++ {
		mean[j] = stat.Mean(mat.Col(nil, j, c), weights)
	}
	c.Apply(func(_, j int, v float64) float64 { return v - mean[j] }, c)
	c = points.ScaleRows(s.sqrtWeights, c)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !accel.Dpotrf(m, a, m) {
		return nil, errNoLoss
	}
	tri := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m, Stride: m, Data: a}
	blas64.Trsm(blas.Left, blas.NoTrans, 1, tri, c.RawMatrix())
	blas64.Trsm(blas.Left, blas.Trans, 1, tri, c.RawMatrix()) // c ← A⁻¹y
	var e mat.Dense
	e.Mul(s.k.Slice(m, n, 0, m), c)
	y := s.y.Slice(m, n, 0, t).(*mat.Dense)
	e.Apply(func(i, j int, v float64) float64 { return y.At(i, j) - mean[j] - v }, &e)
	if sum := mat.Sum(&e); math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, errors.New("the predictions have a number that is not finite")
	}
	return s.judgment.loss(y, &e), nil
}

// appendJudging appends judging rows: they are not fitted, and the loss is that of their predictions, by j.
func (s *sample) appendJudging(x points.Points, y *mat.Dense, j scoring) {
	n, d := s.x.Dims()
	m, t := y.Dims()
	stackedX := points.NewDense(n+m, d, nil)
	points.RowsTo(s.x, stackedX.Data, d)
	points.RowsTo(x, stackedX.Data[n*d:], d)
	stackedY := mat.NewDense(n+m, t, nil)
	stackedY.Stack(s.y, y)
	s.x, s.y, s.fittedRows, s.judgment = stackedX, stackedY, n, j
	if s.sqrtWeights != nil {
		s.sqrtWeights = append(s.sqrtWeights, slices.Repeat([]float64{1}, m)...)
	}
}

// typicalScale returns the center of the grid of a family's scale: the median distance of rows, or for a polynomial the
// median of ‖x‖².
func (s *sample) typicalScale(ctx context.Context, f *family) (float64, error) {
	k := f.kernel(1)
	t, err := s.table(ctx, k)
	if err != nil {
		return 0, err
	}
	_, m := s.dims()
	var values []float64
	for i := range min(m, 1000) { // half a million pairs are enough for a median
		if kernel.ArgumentOf(k) == kernel.InnerProduct {
			values = append(values, t[i*m+i])
			continue
		}
		values = append(values, t[i*m:i*m+i]...)
	}
	scale := kernel.PositiveMedian(values)
	if _, ok := k.(kernel.Radial); ok {
		scale = math.Sqrt(scale)
	}
	if scale == 0 {
		return 1, nil // all points coincide
	}
	if !(scale > 1e-100 && scale < 1e100) { // kernels have scales up to 1e150
		return 0, fmt.Errorf("tune: the median distance of rows is %.3g: scale the features before, or give them in "+
			"other units", scale)
	}
	return scale, nil
}

// setShape stretches the points by shape; nil restores them. It frees the matrices of the previous shape.
func (s *sample) setShape(shape []float64) {
	if slices.Equal(shape, s.shape) {
		return
	}
	if s.unscaled == nil {
		s.unscaled = s.x
	}
	if s.x = s.unscaled; shape != nil {
		s.x = stretch(centeredDense(s.unscaled), shape)
	}
	s.shape = shape
	s.freeMatrices()
}

// minClassRows is the number of rows that a single subsample has of each class, if the data have as many and there are
// few classes. A larger number chooses better for rare classes and takes longer.
const minClassRows = 50

// addRareClasses returns the first count rows in random order, followed by rows of classes of which these have fewer
// than minClassRows. Added rows are at most half of count. If there are any, it sets s.classFactors to the ratio of a
// class's share of all rows to its share of the sample, so that the weighted losses are estimates of those of a random
// sample.
func (s *search) addRareClasses(count int) []int {
	rows, class := s.order[:count:count], s.data.train.Class
	if class == nil {
		return rows
	}
	sampled, total := make([]float64, len(s.data.train.Labels)), make([]float64, len(s.data.train.Labels))
	quota := float64(min(minClassRows, count/(2*len(total))))
	for k, i := range s.order {
		c := class[i]
		if total[c]++; k < count {
			sampled[c]++
		} else if sampled[c] < quota {
			sampled[c]++
			rows = append(rows, i)
		}
	}
	if len(rows) > count {
		s.classFactors = make([]float64, len(total))
		for c := range total {
			s.classFactors[c] = total[c] * float64(count) / (float64(len(class)) * max(1, sampled[c]))
		}
	}
	return rows
}

// trainingSample returns a sample of some training rows.
func (s *search) trainingSample(rows []int) *sample {
	set := s.data.train.Subset(rows)
	if s.classFactors != nil {
		weights := make([]float64, len(rows))
		for p, c := range set.Class {
			weights[p] = s.classFactors[c] * set.Weight(p)
		}
		set.Weights = weights
	}
	sample := &sample{x: set.X, y: rowsOf(s.data.y, rows), judgment: s.data.judgment, groups: set.Grouping(nil),
		centersTargets: s.data.centersTargets, tables: map[kernel.Argument][]float64{}}
	sample.judgment.weights = set.Weights
	for _, w := range set.FitWeights() {
		sample.sqrtWeights = append(sample.sqrtWeights, math.Sqrt(w))
	}
	return sample
}

// rowsOf returns some rows of y.
func rowsOf(y *mat.Dense, rows []int) *mat.Dense {
	_, t := y.Dims()
	selected := mat.NewDense(len(rows), t, nil)
	for p, i := range rows {
		selected.SetRow(p, y.RawRowView(i))
	}
	return selected
}

// newSample returns a sample of some training rows, followed by the validation rows, if any.
func (s *search) newSample(rows []int) *sample {
	sample := s.trainingSample(rows)
	if s.data.validation != nil {
		sample.appendJudging(s.data.validation.X, s.data.validationY, s.data.judgment.onRows(s.data.validation))
	}
	return sample
}

// criterion returns the name of the criterion, validation or loo.
func (p *problem) criterion() string {
	if p.validation != nil {
		return "validation"
	}
	return "loo"
}
