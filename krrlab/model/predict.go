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
	// BatchRows is how many points a worker predicts together, and how many ranks are dealt together.
	BatchRows = 256
	tileCols  = 512 // training points a tile spans
	trialRows = 64  // points predicted in both precisions at first
	trialFar  = 16  // of which these have the largest norms
	// defaultAccuracy is Options.Accuracy where it is not given.
	defaultAccuracy = 1e-5
)

// Options are the options of Decision, Predict and Evaluate; nil means all defaults.
type Options struct {
	// Accuracy is the largest error, relative to the largest |F|, at which tiles may be
	// formed in float32. Default 1e-5. A quarter of the tolerance that C was solved to
	// adds little to what the solve left: AccuracyFor.
	Accuracy float64
	// Float64 forms all tiles in float64.
	Float64 bool
	// Progress, if not nil, is called after each batch with the number of points
	// done; calls do not overlap.
	Progress func(done, total int)
	// Comm is the group of ranks that the points are dealt to, in batches; all call
	// Decision together, with the same model and points, and get the whole of F. Default:
	// comm.Alone().
	Comm comm.Comm
}

// AccuracyFor returns the Options.Accuracy that goes with coefficients solved to the
// tolerance tol: a quarter of it, between 1e-6 and 2.5e-4.
func AccuracyFor(tol float64) float64 { return min(max(tol/4, 1e-6), 2.5e-4) }

// Decision returns F, m×t, with F_aj = mean_j + Σ_i C_ij k(x_i, z_a), the model's Mean, for the m points z_a of raw, to
// which the model's scaling is applied first. (Points that were scaled already are given to Predict, in a data set that
// says so: &datasets.Dataset{X: z, Scaling: m.Scaling}.) Kernel values are formed in tiles and summed in float64, so
// that beside the result only tiles are held. The tiles are formed in float32 where 64 points, the 16 of largest norm
// and others drawn at random, predicted in both precisions, differ by at most Options.Accuracy of their largest |F|, of
// each column by itself if these are not of classes, and in float64 otherwise: from differences where the certain bound
// of inner products, δ·‖c_j‖₁ with δ of kernel.EntryError, exceeds a hundredth of that. Of a kernel that decreases,
// leaves of points (package tree) that are so far apart that they change no decision value by a hundredth of it are
// left out, unless all tiles are to be in float64, as Bounds wants them. Where the training points lie far from zero,
// all points are moved by their mean first (kernel.NewPlacement).
//
// Of a kernel.Precomputed the points are the rows of K(test, train), or rows of K where the model has it.
//
// Decision returns an error if raw's dimension is not the model's or a decision value is not
// finite, or the context's error if it ends first.
func (m *Model) Decision(ctx context.Context, raw points.Points, o *Options) (*mat.Dense, error) {
	return m.decision(ctx, &datasets.Dataset{X: raw}, o)
}

// decision is Decision for points that may be scaled already.
func (m *Model) decision(ctx context.Context, given *datasets.Dataset, o *Options) (*mat.Dense, error) {
	o = cmp.Or(o, &Options{})
	n, d, t := m.Dims()
	rows, dz := given.X.Dims()
	if rows == 0 {
		return nil, fmt.Errorf("model: no points to predict")
	}
	var err error
	if p := kernel.AsPrecomputed(m.Kernel); p == nil {
		given, err = m.Scaled(given)
	} else if dz != p.N() && dz != d {
		err = fmt.Errorf("model: K(test, train) has %d columns, the K of the fit had %d rows", dz, p.N())
	} else if dz != p.N() {
		err = kernel.Check(m.Kernel, given.X)
	}
	if err != nil {
		return nil, err
	}
	if x, ok := m.X.(*points.Bytes); ok { // exact products with points of its scale
		if b, ok := points.AsBytes(given.X, x.Scale); ok {
			given = &datasets.Dataset{X: b}
		}
	}
	z := given.X
	p := &predictor{m: m, n: n, t: t, f: mat.NewDense(rows, t, nil)}
	p.place = kernel.NewPlacement(m.Kernel, m.X)
	p.x, p.z = p.place.Panel, p.place.Apply(z)
	p.cut(nil)
	p.work = make([]worker, accel.Threads())
	if err = p.choose(ctx, o); err != nil {
		return nil, err
	}
	if p.arith == kernel.Differences { // of the points as they are: moving them rounds
		p.x, p.z = p.place.Original, points.NewPanel(z)
	}
	c := comm.OrAlone(o.Comm)
	parts, order, err := p.leave(ctx, o, c)
	if err != nil {
		return nil, err
	}
	if order == nil {
		first, last := comm.Rows(rows, BatchRows, c.Rank(), c.Size())
		for lo := first; lo < last; lo += BatchRows {
			parts = append(parts, part{lo, min(lo+BatchRows, last), p.all})
		}
	}
	err = p.predict(ctx, parts, order, o.Progress)
	switch {
	case err != nil:
	case order == nil:
		err = c.AllGather(ctx, p.f.RawMatrix().Data, comm.Counts(rows, BatchRows, c.Size(), t))
	case c.Size() > 1:
		err = comm.Merge(ctx, c, p.f.RawMatrix().Data)
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

// part is points lo, …, hi−1 of z, which a worker predicts together, and the blocks of x that count for them.
type part struct {
	lo, hi int
	blocks []int
}

// predict sets the rows of f of the points of the parts: row order[i] of point i, row i without an order.
func (p *predictor) predict(ctx context.Context, parts []part, order []int, progress func(done, total int)) error {
	var mu sync.Mutex
	done, total := 0, 0
	for _, q := range parts {
		total += q.hi - q.lo
	}
	return accel.ForEach(ctx, len(parts), func(w, b int) {
		q := parts[b]
		f := mat.NewDense(q.hi-q.lo, p.t, nil)
		p.batch(&p.work[w], f, p.z.Slice(q.lo, q.hi), p.arith, q.blocks)
		mu.Lock()
		defer mu.Unlock()
		for i := q.lo; i < q.hi; i++ {
			row := i
			if order != nil {
				row = order[i]
			}
			p.f.SetRow(row, f.RawRowView(i-q.lo))
		}
		if done += q.hi - q.lo; progress != nil {
			progress(done, total)
		}
	})
}

// AddMean adds the means of the columns to decision values, m×t by rows, and subtracts the threshold of two classes.
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

type predictor struct {
	m     *Model
	n, t  int
	place kernel.Placement
	z, x  points.Panel
	start []int     // first points of the blocks of x, and n
	all   []int     // the blocks
	c     []float64 // C by blocks, each by columns
	sizes []float64 // largest |F_j| of the points tried
	f     *mat.Dense
	arith kernel.Arithmetic // of tiles: Float32 ones are float32, the others float64
	work  []worker
}

type worker struct {
	kernel kernel.Workspace
	t64    []float64
	t32    []float32
	f      []float64 // decision values by columns
}

// cut cuts x into blocks, the leaves of a tree, in whose order it lies, or nil for blocks of tileCols points.
func (p *predictor) cut(leaves *tree.Tree) {
	p.start, p.all = nil, nil
	if leaves != nil {
		p.start = leaves.Start
	} else {
		for lo := 0; lo < p.n; lo += tileCols {
			p.start = append(p.start, lo)
		}
		p.start = append(p.start, p.n)
	}
	p.c = make([]float64, p.n*p.t)
	for b := range len(p.start) - 1 {
		p.all = append(p.all, b)
		lo, hi := p.start[b], p.start[b+1]
		for place := lo; place < hi; place++ {
			i := place
			if leaves != nil {
				i = leaves.Order[place]
			}
			for j, v := range p.m.C.RawRowView(i) {
				p.c[lo*p.t+j*(hi-lo)+place-lo] = v
			}
		}
	}
}

// exact is the arithmetic that predictions are compared with: nothing is certain of inner products where the slope is
// not known.
func exact(k kernel.Kernel) kernel.Arithmetic {
	if k, ok := k.(kernel.Radial); ok && math.IsInf(k.Slope(), 1) {
		return kernel.Differences
	}
	return kernel.Float64
}

// choose sets p.arith by predicting some points, and by the certain bound of float64.
func (p *predictor) choose(ctx context.Context, o *Options) error {
	idx, _ := kernel.ProbeRows(p.z.Norms, trialRows-trialFar, trialFar, rng.New(0).Sub("points predicted at first"))
	z := points.NewPanel(points.Gather(p.z.X, idx))
	f, err := p.trial(ctx, z, exact(p.m.Kernel))
	if err != nil {
		return err
	}
	sizes, ones := largest(f), make([]float64, p.t)
	p.sizes = sizes
	for j := range p.t {
		if p.m.Labels != nil { // they are compared
			sizes[j] = slices.Max(sizes)
		}
		ones[j] = mat.Norm(p.m.C.ColView(j), 1)
	}
	accuracy := cmp.Or(o.Accuracy, defaultAccuracy)
	p.arith, _ = kernel.Accurate(p.m.Kernel, p.place.SummaryWith(p.z),
		accuracy/100/max(most(ones, sizes), math.SmallestNonzeroFloat64))
	if o.Float64 || p.arith == kernel.Differences && exact(p.m.Kernel) == kernel.Float64 {
		return nil
	}
	single, err := p.trial(ctx, z, kernel.Float32)
	if err != nil {
		return err
	}
	if single.Sub(single, f); most(largest(single), sizes) <= accuracy {
		p.arith = kernel.Float32
	}
	return nil
}

// largest returns max|f_j| of each column, NaN if a number is.
func largest(f *mat.Dense) []float64 {
	_, t := f.Dims()
	v := make([]float64, t)
	for k, x := range f.RawMatrix().Data {
		v[k%t] = max(v[k%t], math.Abs(x))
	}
	return v
}

// most returns the largest a_j/b_j of those a_j that are not 0, NaN if one is.
func most(a, b []float64) (v float64) {
	for j, x := range a {
		if x != 0 {
			v = max(v, x/b[j])
		}
	}
	return v
}

// trial predicts the points z with the given arithmetic.
func (p *predictor) trial(ctx context.Context, z points.Panel, arith kernel.Arithmetic) (*mat.Dense, error) {
	rows := z.Len()
	f := mat.NewDense(rows, p.t, nil)
	const step = 32
	return f, accel.ForEach(ctx, (rows+step-1)/step, func(w, b int) {
		i, j := b*step, min((b+1)*step, rows)
		p.batch(&p.work[w], f.Slice(i, j, 0, p.t).(*mat.Dense), z.Slice(i, j), arith, p.all)
	})
}

// batch sets f to the decision values of the points z:
// f = Σ_b T_b C_b over those column blocks b of K(z, x).
func (p *predictor) batch(w *worker, f *mat.Dense, z points.Panel, arith kernel.Arithmetic, blocks []int) {
	rows := z.Len()
	buffer.Grow(&w.f, rows*p.t)
	clear(w.f)
	for _, b := range blocks {
		lo, hi := p.start[b], p.start[b+1]
		cols := hi - lo
		x, c := p.x.Slice(lo, hi), p.c[lo*p.t:hi*p.t]
		if arith == kernel.Float32 {
			buffer.Grow(&w.t32, BatchRows*tileCols)
			kernel.Tile32(w.t32, cols, p.m.Kernel, z, x, arith, &w.kernel)
			simd.Forward(rows, cols, w.t32, cols, c, cols, w.f, rows, p.t) // f += T_b C_b
			continue
		}
		buffer.Grow(&w.t64, BatchRows*tileCols)
		kernel.Tile64(w.t64, cols, p.m.Kernel, z, x, arith, &w.kernel)
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, byColumns(c, p.t, cols),
			blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: w.t64},
			1, byColumns(w.f, p.t, rows)) // fᵀ += C_bᵀ T_bᵀ
	}
	for a := range rows {
		for k := range p.t {
			f.Set(a, k, w.f[k*rows+a])
		}
	}
}

// byColumns returns columns of n numbers as the rows of a matrix.
func byColumns(v []float64, t, n int) blas64.General {
	return blas64.General{Rows: t, Cols: n, Stride: n, Data: v}
}
