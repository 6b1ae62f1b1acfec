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

// sample is a subsample of n rows. It stores the distances or inner products of all pairs of rows, from which it forms
// K for every kernel and σ. Its first m rows are fitted; the others, the judging rows, are only predicted. If m = n,
// the loss of a fit is the leave-one-out error.
type sample struct {
	x              points.Points                 // points of the rows, stretched by shape
	unscaled       points.Points                 // points before setShape; nil: x
	shape          []float64                     // shape of the distance, as for stretch; nil: one length scale
	y              *mat.Dense                    // coded targets, n×t
	judgment       scoring                       // metric, and weights of the judging rows, or of all rows without them
	sqrtWeights    []float64                     // √w_i of the fitted rows, and 1 for judging rows; nil: all ones
	tables         map[kernel.Argument][]float64 // lower triangles, n×m, of ‖x−z‖₂², ‖x−z‖₁ or xᵀz
	k              *mat.Dense                    // n×m, lower triangle
	formedKernel   kernel.Kernel                 // kernel of k; nil: k is not valid
	groups         *datasets.Grouping            // rows that are left out together
	centersTargets bool                          // the fit subtracts the mean of its targets
	fittedRows     int                           // number m of fitted rows; 0: all rows, judged by leave-one-out
}

// dims returns the number n of rows and the number m of fitted rows.
func (s *sample) dims() (n, m int) {
	n, _ = s.x.Dims()
	return n, cmp.Or(s.fittedRows, n)
}

// tile is the number of rows and columns of a block of a table. Its points fit into a cache.
const tile = 256

// table returns the distances or inner products that the kernel is a function of, for all pairs of rows. Points that
// are far from zero compared with their spread are first shifted by their mean, to avoid cancellation in
// ‖a‖²+‖b‖²−2aᵀb.
func (s *sample) table(ctx context.Context, k kernel.Kernel) ([]float64, error) {
	argument, fill := kernel.ArgumentOf(k), squaredDistances
	switch argument {
	case kernel.L1Distance:
		fill = points.L1Dist64
	case kernel.InnerProduct:
		fill = points.Inner64
	}
	if table := s.tables[argument]; table != nil {
		return table, nil
	}
	x := kernel.NewPlacement(k, s.x).Panel.X
	n, m := s.dims()
	table := make([]float64, n*m)
	work := make([]points.Workspace, accel.Threads())
	err := accel.ForEach(ctx, (n+tile-1)/tile, func(worker, block int) {
		i0, i1 := block*tile, min((block+1)*tile, n)
		for j0 := 0; j0 < min(i1, m); j0 += tile {
			fill(table[i0*m+j0:], m, x.Slice(i0, i1), x.Slice(j0, min(j0+tile, m)), &work[worker])
		}
	})
	if err == nil {
		s.tables[argument] = table
	}
	return table, err
}

// squaredDistances sets dst, whose rows are ld apart, to ‖a−b‖² = ‖a‖²+‖b‖²−2aᵀb for all rows of a and b. If digits
// cancel for any pair, it computes all distances from differences instead, because points may be close together and far
// from zero. It does not check products of bytes, which are exact, and sparse points, which are not close together far
// from zero.
func squaredDistances(dst []float64, ld int, a, b points.Points, workspace *points.Workspace) {
	points.Inner64(dst, ld, a, b, workspace)
	_, isAccurate := points.ExactProductUnit(a, b)
	if _, isSparse := a.(*points.CSR); isSparse {
		isAccurate = true
	}
	normsA, normsB := points.SqNorms(a), points.SqNorms(b)
	for i, normA := range normsA {
		row := dst[i*ld : i*ld+len(normsB)]
		for j, normB := range normsB {
			row[j] = max(0, normA+normB-2*row[j])
			if !isAccurate && row[j] < cancellationShare*(normA+normB) {
				points.SqDist64(dst, ld, a, b, workspace)
				return
			}
		}
	}
}

// cancellationShare is the share of ‖a‖²+‖b‖² below which ‖a−b‖² is computed from differences. A share of 1e-6 is a
// loss of six digits; a larger one is more accurate and computes more distances from differences.
const cancellationShare = 1e-6

// formKernel forms the lower triangle of K, with rows and columns scaled by sqrtWeights, for the kernel k, unless it is
// formed already.
func (s *sample) formKernel(ctx context.Context, k kernel.Kernel) error {
	if reflect.DeepEqual(s.formedKernel, k) {
		return nil
	}
	table, err := s.table(ctx, k)
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
		profiler.Profile(row, table[i*m:i*m+len(row)])
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

// meanDiagonal returns the mean of the diagonal of K, the unit of the grid of λ.
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
	return s.leaveOneOutLoss(ctx, lambda, s.groups.FirstRow)
}

// leaveOneOutLoss returns the leave-one-out loss, with the rows of each group left out together. firstOfGroup[i] is the
// first row of the group of row i.
func (s *sample) leaveOneOutLoss(ctx context.Context, lambda float64, firstOfGroup []int) (*loss, error) {
	options := &leaveout.Problem{Classification: s.judgment.hasClasses(), ComputeResiduals: true,
		SubtractsMean: s.centersTargets}
	options.FirstEqual, options.Groups = s.groups.SplitByKind(firstOfGroup)
	for _, sqrtWeight := range s.sqrtWeights {
		options.Weights = append(options.Weights, sqrtWeight*sqrtWeight)
	}
	scores, err := leaveout.Dense(ctx, s.k, points.ScaleRows(s.sqrtWeights, s.y), []float64{lambda}, options)
	if err != nil {
		return nil, err
	}
	judgment := s.judgment
	judgment.groups = firstOfGroup
	return judgment.loss(s.y, scores[0].Residuals), nil
}

// predictionLoss returns the loss of the judging rows, predicted from the fitted rows. It returns errNoLoss if K+λI is
// not positive definite in float64.
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
	factor := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m, Stride: m, Data: a}
	blas64.Trsm(blas.Left, blas.NoTrans, 1, factor, c.RawMatrix())
	blas64.Trsm(blas.Left, blas.Trans, 1, factor, c.RawMatrix()) // c ← A⁻¹y
	var residuals mat.Dense
	residuals.Mul(s.k.Slice(m, n, 0, m), c)
	y := s.y.Slice(m, n, 0, t).(*mat.Dense)
	residuals.Apply(func(i, j int, v float64) float64 { return y.At(i, j) - mean[j] - v }, &residuals)
	if sum := mat.Sum(&residuals); math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, errors.New("the predictions have a number that is not finite")
	}
	return s.judgment.loss(y, &residuals), nil
}

// appendJudging appends judging rows with the points x and the coded targets y. From then on, the loss of the sample is
// that of the predictions of these rows according to judgment.
func (s *sample) appendJudging(x points.Points, y *mat.Dense, judgment scoring) {
	n, d := s.x.Dims()
	m, t := y.Dims()
	stackedX := points.NewDense(n+m, d, nil)
	points.RowsTo(s.x, stackedX.Data, d)
	points.RowsTo(x, stackedX.Data[n*d:], d)
	stackedY := mat.NewDense(n+m, t, nil)
	stackedY.Stack(s.y, y)
	s.x, s.y, s.fittedRows, s.judgment = stackedX, stackedY, n, judgment
	if s.sqrtWeights != nil {
		s.sqrtWeights = append(s.sqrtWeights, slices.Repeat([]float64{1}, m)...)
	}
}

// typicalScale returns the center of the grid of a family's scale: the median distance of rows, or the median of ‖x‖²
// for a kernel of inner products. It returns an error if the scale is not between 1e-100 and 1e100.
func (s *sample) typicalScale(ctx context.Context, family *family) (float64, error) {
	k := family.kernel(1)
	table, err := s.table(ctx, k)
	if err != nil {
		return 0, err
	}
	_, m := s.dims()
	var values []float64
	for i := range min(m, 1000) { // half a million pairs are enough for a median
		if kernel.ArgumentOf(k) == kernel.InnerProduct {
			values = append(values, table[i*m+i])
			continue
		}
		values = append(values, table[i*m:i*m+i]...)
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

// setShape stretches the points by shape, or restores the original points if shape is nil. It frees the matrices of the
// previous shape.
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

// addRareClasses returns the first count rows in random order, followed by further rows of the classes of which the
// first rows have fewer than minClassRows. It adds at most count/2 rows. If it adds any, it sets s.classFactors, for
// each class, to the ratio of its share of all rows to its share of the sample, so that the weighted losses are
// estimates of those of a random sample.
func (s *search) addRareClasses(count int) []int {
	rows, classes := s.order[:count:count], s.data.train.Class
	if classes == nil {
		return rows
	}
	sampledCounts, totalCounts := make([]float64, len(s.data.train.Labels)), make([]float64, len(s.data.train.Labels))
	quota := float64(min(minClassRows, count/(2*len(totalCounts))))
	for k, i := range s.order {
		class := classes[i]
		if totalCounts[class]++; k < count {
			sampledCounts[class]++
		} else if sampledCounts[class] < quota {
			sampledCounts[class]++
			rows = append(rows, i)
		}
	}
	if len(rows) > count {
		s.classFactors = make([]float64, len(totalCounts))
		for class := range totalCounts {
			s.classFactors[class] = totalCounts[class] * float64(count) /
				(float64(len(classes)) * max(1, sampledCounts[class]))
		}
	}
	return rows
}

// trainingSample returns a sample of the training rows with the given indices.
func (s *search) trainingSample(rows []int) *sample {
	subset := s.data.train.Subset(rows)
	if s.classFactors != nil {
		weights := make([]float64, len(rows))
		for p, class := range subset.Class {
			weights[p] = s.classFactors[class] * subset.Weight(p)
		}
		subset.Weights = weights
	}
	sample := &sample{x: subset.X, y: rowsOf(s.data.y, rows), judgment: s.data.judgment, groups: subset.Grouping(nil),
		centersTargets: s.data.centersTargets, tables: map[kernel.Argument][]float64{}}
	sample.judgment.weights = subset.Weights
	for _, weight := range subset.FitWeights() {
		sample.sqrtWeights = append(sample.sqrtWeights, math.Sqrt(weight))
	}
	return sample
}

// rowsOf returns the rows of y with the given indices.
func rowsOf(y *mat.Dense, rows []int) *mat.Dense {
	_, t := y.Dims()
	selected := mat.NewDense(len(rows), t, nil)
	for p, i := range rows {
		selected.SetRow(p, y.RawRowView(i))
	}
	return selected
}

// newSample returns a sample of the training rows with the given indices, and of the validation rows as judging rows,
// if there are any.
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
