package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	// BatchRows is the number of points that a goroutine predicts together. If ranks share the work, each receives a
	// multiple of it.
	BatchRows     = 256
	tileCols      = 512 // number of training points in a tile
	trialRows     = 64  // number of points that are first predicted in float32 and in float64
	trialOutliers = 16  // number of these points that have the largest norms
	// defaultAccuracy is the accuracy if Options.Accuracy is 0.
	defaultAccuracy = 1e-5
)

// Options are the options of Decision, Predict and Evaluate; nil means all defaults.
type Options struct {
	// Accuracy is the largest error, relative to the largest |F|, that is acceptable for tiles in float32. Default
	// 1e-5. A quarter of the tolerance of C adds little to the error of the solve: see AccuracyFor.
	Accuracy float64
	// Float64 computes all tiles in float64.
	Float64 bool
	// Progress, if not nil, is called after each batch with the number of completed points. Calls do not overlap.
	Progress func(done, total int)
	// Comm is the group of ranks over which the points are distributed, in batches. All ranks call Decision together,
	// with the same model and points, and all receive the complete F. Default: comm.Alone().
	Comm comm.Comm
}

// AccuracyFor returns the Options.Accuracy that suits coefficients solved to the tolerance tol: a quarter of it,
// between 1e-6 and 2.5e-4.
func AccuracyFor(tol float64) float64 { return min(max(tol/4, 1e-6), 2.5e-4) }

// Decision returns F, m×t, with F_aj = mean_j − θ + Σ_i C_ij k(x_i, z_a), where mean is the model's Mean and θ its
// Threshold, for the m points z_a of raw. It first applies the model's scaling to them. (For points that are already
// scaled, call Predict with a data set that says so: &datasets.Dataset{X: z, Scaling: m.Scaling}.)
//
// Kernel values are computed in tiles and summed in float64, so the only additional memory is for tiles. Decision tests
// whether float32 tiles are accurate enough by predicting 64 points in both precisions: the 16 of largest norm and
// others drawn at random. It uses float32 if the results differ by at most Options.Accuracy relative to the largest |F|
// of these points, or of each column separately in a regression. Otherwise it uses float64. Tiles in float64 are
// computed from differences if the certain bound for inner products, δ·‖c_j‖₁ with δ from kernel.EntryError, exceeds a
// hundredth of that accuracy. For a decreasing kernel, tiles between leaves of points (package tree) are skipped if
// they are so far apart that no decision value changes by more than a hundredth of the accuracy, unless all tiles must
// be in float64, as DecisionBounds requires. If the training points are far from zero, all points are first shifted by
// their mean (kernel.NewPlacement).
//
// For many points in one to three dimensions, a Gaussian kernel is evaluated by its Fourier series (package fourier) if
// 64 points that are also predicted without it differ by at most a quarter of the accuracy, and no tile has to be in
// float64.
//
// For a kernel.Precomputed, the points are the rows of K(test, train), or rows of K if the model contains it.
//
// Decision returns an error if the dimension of raw is not the model's, if a feature is not finite after scaling, if a
// decision value is not finite, or if an option is invalid, and the context's error if the context ends.
func (m *Model) Decision(ctx context.Context, raw points.Points, o *Options) (*mat.Dense, error) {
	return m.decision(ctx, &datasets.Dataset{X: raw}, o)
}

// decision is like Decision for points that may already be scaled.
func (m *Model) decision(ctx context.Context, data *datasets.Dataset, o *Options) (*mat.Dense, error) {
	o = cmp.Or(o, &Options{})
	if !(o.Accuracy >= 0) {
		return nil, fmt.Errorf("model: Accuracy %g: want a number above 0, or 0 for the default", o.Accuracy)
	}
	z, err := m.scaledPoints(data)
	if err != nil {
		return nil, err
	}
	n, _, t := m.Dims()
	rows, _ := z.Dims()
	if f, err := m.fourierDecision(ctx, z, o); f != nil || err != nil {
		if err == nil {
			err = CheckDecision(f)
		}
		return f, err
	}
	p := &predictor{m: m, n: n, t: t, f: mat.NewDense(rows, t, nil)}
	p.placement = kernel.NewPlacement(m.Kernel, m.X)
	p.x, p.z = p.placement.Panel, p.placement.Apply(z)
	p.setBlocks(nil)
	p.scratch = make([]scratchMemory, accel.Threads())
	if err = p.chooseArithmetic(ctx, o); err != nil {
		return nil, err
	}
	if p.arith == kernel.Differences { // use the original points, because shifting them rounds
		p.x, p.z = p.placement.Original, points.NewPanel(z)
	}
	c := comm.OrAlone(o.Comm)
	batches, order, err := p.skipFarTiles(ctx, o, c)
	if err != nil {
		return nil, err
	}
	if order == nil {
		startRow, endRow := comm.RowRange(rows, BatchRows, c.Rank(), c.Size())
		for lo := startRow; lo < endRow; lo += BatchRows {
			batches = append(batches, batch{lo, min(lo+BatchRows, endRow), p.allBlocks})
		}
	}
	err = p.predict(ctx, batches, order, o.Progress)
	switch {
	case err != nil:
	case order == nil:
		err = c.AllGather(ctx, p.f.RawMatrix().Data, comm.RowCounts(rows, BatchRows, c.Size(), t))
	case c.Size() > 1:
		err = comm.MergeDisjoint(ctx, c, p.f.RawMatrix().Data)
	}
	if err == nil {
		m.AddMean(p.f.RawMatrix().Data)
		err = CheckDecision(p.f)
	}
	if err != nil {
		return nil, err
	}
	return p.f, nil
}

// scaledPoints returns the points of data with the scaling of the model's points. It returns an error if there are
// none, if they do not match the model, or if a feature is not finite.
func (m *Model) scaledPoints(data *datasets.Dataset) (points.Points, error) {
	if err := data.Check(); err != nil {
		return nil, err
	}
	if err := data.CheckColumns(m.Columns, "the model"); err != nil {
		return nil, err
	}
	rows, columns := data.X.Dims()
	if rows == 0 {
		return nil, fmt.Errorf("model: no points to predict")
	}
	var err error
	_, d, _ := m.Dims()
	if p := kernel.AsPrecomputed(m.Kernel); p == nil {
		data, err = m.Scaled(data)
	} else if columns != p.N() && columns != d {
		err = fmt.Errorf("model: K(test, train) has %d columns, the K of the fit had %d rows", columns, p.N())
	} else if columns != p.N() {
		err = kernel.Check(m.Kernel, data.X)
	}
	if err != nil {
		return nil, err
	}
	if err := points.CheckFinite(data.X); err != nil {
		return nil, err
	}
	if x, ok := m.X.(*points.Bytes); ok { // products of points in bytes with the same scale are exact
		if bytePoints, ok := points.AsBytes(data.X, x.Scale); ok {
			return bytePoints, nil
		}
	}
	return data.X, nil
}

// batch is a range lo, …, hi−1 of points of z that a goroutine predicts together, and the blocks of x that contribute
// to their predictions.
type batch struct {
	lo, hi int
	blocks []int
}

// predict sets the rows of p.f for the points of the batches. Point i belongs to row order[i], or to row i if order is
// nil.
func (p *predictor) predict(ctx context.Context, batches []batch, order []int, progress func(done, total int)) error {
	var mu sync.Mutex
	done, total := 0, 0
	for _, batch := range batches {
		total += batch.hi - batch.lo
	}
	return accel.ForEach(ctx, len(batches), func(goroutine, b int) {
		batch := batches[b]
		f := mat.NewDense(batch.hi-batch.lo, p.t, nil)
		p.predictBatch(&p.scratch[goroutine], f, p.z.Slice(batch.lo, batch.hi), p.arith, batch.blocks)
		mu.Lock()
		defer mu.Unlock()
		for i := batch.lo; i < batch.hi; i++ {
			row := i
			if order != nil {
				row = order[i]
			}
			p.f.SetRow(row, f.RawRowView(i-batch.lo))
		}
		if done += batch.hi - batch.lo; progress != nil {
			progress(done, total)
		}
	})
}

// AddMean adds the means of the columns to decision values, m×t by rows, and subtracts the threshold for two classes.
func (m *Model) AddMean(f []float64) {
	if m.Threshold != 0 {
		floats.AddConst(-m.Threshold, f)
	}
	for j, v := range m.Mean {
		for k := j; k < len(f); k += len(m.Mean) {
			f[k] += v
		}
	}
}

// predictor is the state of one call of decision.
type predictor struct {
	m          *Model
	n, t       int
	placement  kernel.Placement
	z, x       points.Panel      // points to predict, and training points
	blockStart []int             // index of the first point of each block of x, and n
	allBlocks  []int             // indices of all blocks
	c          []float64         // C in blocks, each stored by columns
	scale      []float64         // largest |F_j| of the trial points
	f          *mat.Dense        // result F
	arith      kernel.Arithmetic // arithmetic of the tiles: Float32 in float32, the others in float64
	scratch    []scratchMemory   // one element for each goroutine
}

// scratchMemory is the scratch memory of one goroutine.
type scratchMemory struct {
	kernel kernel.Workspace
	t64    []float64 // tile in float64
	t32    []float32 // tile in float32
	f      []float64 // decision values by columns
}

// setBlocks divides x into blocks: the leaves of a tree, if x is in the order of this tree, or blocks of tileCols
// points for nil.
func (p *predictor) setBlocks(leaves *tree.Tree) {
	p.blockStart, p.allBlocks = nil, nil
	if leaves != nil {
		p.blockStart = leaves.Start
	} else {
		for lo := 0; lo < p.n; lo += tileCols {
			p.blockStart = append(p.blockStart, lo)
		}
		p.blockStart = append(p.blockStart, p.n)
	}
	p.c = make([]float64, p.n*p.t)
	for b := range len(p.blockStart) - 1 {
		p.allBlocks = append(p.allBlocks, b)
		lo, hi := p.blockStart[b], p.blockStart[b+1]
		for pos := lo; pos < hi; pos++ {
			i := pos
			if leaves != nil {
				i = leaves.Order[pos]
			}
			for j, v := range p.m.C.RawRowView(i) {
				p.c[lo*p.t+j*(hi-lo)+pos-lo] = v
			}
		}
	}
}

// referenceArithmetic returns the arithmetic to which predictions are compared. If the slope of the kernel is infinite,
// inner products have no certain error bound, so differences are used.
func referenceArithmetic(k kernel.Kernel) kernel.Arithmetic {
	if k, ok := k.(kernel.Radial); ok && math.IsInf(k.Slope(), 1) {
		return kernel.Differences
	}
	return kernel.Float64
}

// chooseArithmetic sets p.arith from the trial predictions and from the certain error bound of float64.
func (p *predictor) chooseArithmetic(ctx context.Context, o *Options) error {
	trial, _ := kernel.ProbeRows(p.z.Norms, trialRows-trialOutliers, trialOutliers,
		rng.New(0).Sub("points predicted at first"))
	z := points.NewPanel(points.Gather(p.z.X, trial))
	trialValues, err := p.predictTrial(ctx, z, referenceArithmetic(p.m.Kernel))
	if err != nil {
		return err
	}
	scale, norm1 := columnMaxima(trialValues), make([]float64, p.t)
	p.scale = scale
	for j := range p.t {
		if p.m.Labels != nil { // columns of classes are compared with each other, so all have the same scale
			scale[j] = slices.Max(scale)
		}
		norm1[j] = mat.Norm(p.m.C.ColView(j), 1)
	}
	accuracy := cmp.Or(o.Accuracy, defaultAccuracy)
	p.arith, _ = kernel.ChooseArithmetic(p.m.Kernel, p.placement.SummaryWith(p.z),
		accuracy/100/max(maxRatio(norm1, scale), math.SmallestNonzeroFloat64))
	if o.Float64 || p.arith == kernel.Differences && referenceArithmetic(p.m.Kernel) == kernel.Float64 {
		return nil
	}
	float32Values, err := p.predictTrial(ctx, z, kernel.Float32)
	if err != nil {
		return err
	}
	if float32Values.Sub(float32Values, trialValues); maxRatio(columnMaxima(float32Values), scale) <= accuracy {
		p.arith = kernel.Float32
	}
	return nil
}

// columnMaxima returns max|f_j| of each column, or NaN if an entry is NaN.
func columnMaxima(f *mat.Dense) []float64 {
	_, t := f.Dims()
	maxima := make([]float64, t)
	for k, value := range f.RawMatrix().Data {
		maxima[k%t] = max(maxima[k%t], math.Abs(value))
	}
	return maxima
}

// maxRatio returns the largest a_j/b_j over the nonzero a_j, or NaN if one of them is NaN.
func maxRatio(a, b []float64) (v float64) {
	for j, x := range a {
		if x != 0 {
			v = max(v, x/b[j])
		}
	}
	return v
}

// predictTrial predicts the points z with the given arithmetic.
func (p *predictor) predictTrial(ctx context.Context, z points.Panel, arith kernel.Arithmetic) (*mat.Dense, error) {
	rows := z.Len()
	f := mat.NewDense(rows, p.t, nil)
	const step = 32 // points that a goroutine predicts together; more would leave goroutines without work
	return f, accel.ForEach(ctx, (rows+step-1)/step, func(goroutine, b int) {
		lo, hi := b*step, min((b+1)*step, rows)
		p.predictBatch(&p.scratch[goroutine], f.Slice(lo, hi, 0, p.t).(*mat.Dense), z.Slice(lo, hi), arith, p.allBlocks)
	})
}

// predictBatch sets f to the decision values of the points z without the mean: f = Σ_b T_b C_b, where T_b are the given
// column blocks b of K(z, x).
func (p *predictor) predictBatch(s *scratchMemory, f *mat.Dense, z points.Panel, arith kernel.Arithmetic,
	blocks []int) {
	rows := z.Len()
	buffer.Grow(&s.f, rows*p.t)
	clear(s.f)
	for _, b := range blocks {
		lo, hi := p.blockStart[b], p.blockStart[b+1]
		cols := hi - lo
		x, c := p.x.Slice(lo, hi), p.c[lo*p.t:hi*p.t]
		if arith == kernel.Float32 {
			buffer.Grow(&s.t32, BatchRows*tileCols)
			kernel.Tile32(s.t32, cols, p.m.Kernel, z, x, arith, &s.kernel)
			simd.AddProduct(s.t32, cols, byColumns(c, p.t, cols), byColumns(s.f, p.t, rows)) // f += T_b C_b
			continue
		}
		buffer.Grow(&s.t64, BatchRows*tileCols)
		kernel.Tile64(s.t64, cols, p.m.Kernel, z, x, arith, &s.kernel)
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, byColumns(c, p.t, cols),
			blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: s.t64},
			1, byColumns(s.f, p.t, rows)) // fᵀ += C_bᵀ T_bᵀ
	}
	for a := range rows {
		for k := range p.t {
			f.Set(a, k, s.f[k*rows+a])
		}
	}
}

// byColumns returns the transpose, t×n, of an n×t matrix that is stored in v by columns.
func byColumns(v []float64, t, n int) blas64.General {
	return blas64.General{Rows: t, Cols: n, Stride: n, Data: v}
}
