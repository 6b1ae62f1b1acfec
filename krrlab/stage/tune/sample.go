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

// sample is a subsample of the rows: what two of them have in common, from which K is made for every kernel and σ.
type sample struct {
	x       points.Points
	raw     points.Points // x before stretch; nil: x
	shape   []float64
	y       *mat.Dense
	judged  judgment             // of all rows, or of those that judge
	factors []float64            // √w_i of the fit, 1 of rows that judge; nil for ones
	tables  map[string][]float64 // n×m, lower triangle: ‖x−z‖₂², ‖x−z‖₁ or xᵀz; m rows are fitted
	k       *mat.Dense           // n×m
	held    kernel.Kernel        // that k is of
	groups  *datasets.Grouping   // of the rows that are left out together
	mean    bool                 // of the targets that are fitted is taken off them
	fitted  int                  // rows, before those that judge; 0: all, and each is left out
}

// dims returns the number of rows, and that of the fitted ones, which are the first.
func (s *sample) dims() (n, m int) {
	n, _ = s.x.Dims()
	return n, cmp.Or(s.fitted, n)
}

// tile is the number of rows and columns of a block of a table.
const tile = 256

// table returns the numbers of all pairs of rows that kernel k is a function of. Points that lie far from zero beside
// their spread are moved to their mean first, or ‖a‖²+‖b‖²−2aᵀb would cancel.
func (s *sample) table(ctx context.Context, k kernel.Kernel) ([]float64, error) {
	name, form := "squares", squares
	switch kernel.ArgumentOf(k) {
	case kernel.L1Distance:
		name, form = "absolutes", points.L1Dist64
	case kernel.InnerProduct:
		name, form = "products", points.Inner64
	}
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	x := kernel.NewPlace(k, s.x).Panel.X
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
		s.tables[name] = t
	}
	return t, err
}

// squares forms ‖a−b‖² = ‖a‖²+‖b‖²−2aᵀb, or, where that cancels for some of them, all from differences: points may lie
// close together and far from zero. Products of bytes are exact, and sparse points do not lie together far from zero.
func squares(dst []float64, ld int, a, b points.Points, w *points.Workspace) {
	points.Inner64(dst, ld, a, b, w)
	_, trusted := points.SameBytes(a, b)
	if _, sparse := a.(*points.CSR); sparse {
		trusted = true
	}
	na, nb := points.SqNorms(a), points.SqNorms(b)
	for i, u := range na {
		row := dst[i*ld : i*ld+len(nb)]
		for j, v := range nb {
			row[j] = max(0, u+v-2*row[j])
			if !trusted && row[j] < cancels*(u+v) {
				points.SqDist64(dst, ld, a, b, w)
				return
			}
		}
	}
}

// cancels is the share of ‖a‖²+‖b‖² below which ‖a−b‖² is not formed from them, as it would lose six digits or more.
const cancels = 1e-6

// form makes K of the kernel, of which the lower triangle is set.
func (s *sample) form(ctx context.Context, k kernel.Kernel) error {
	if reflect.DeepEqual(s.held, k) {
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
	s.held = nil
	by := k.(interface{ Profile(dst, s []float64) })
	err = accel.ForEach(ctx, n, func(_, i int) {
		row := s.k.RawRowView(i)[:min(i+1, m)]
		by.Profile(row, t[i*m:i*m+len(row)])
		for j := range row {
			if s.factors != nil {
				row[j] *= s.factors[i] * s.factors[j]
			}
		}
	})
	if err == nil {
		s.held = k
	}
	return err
}

// scale returns the mean of K's diagonal, in units of which λ is searched.
func (s *sample) scale(ctx context.Context, k kernel.Kernel) (float64, error) {
	if kernel.Bounded01(k) && s.factors == nil {
		return 1, nil
	}
	if err := s.form(ctx, k); err != nil {
		return 0, err
	}
	_, m := s.dims()
	return mat.Trace(s.k.Slice(0, m, 0, m)) / float64(m), nil
}

// loss returns the loss of one kernel and one λ.
func (s *sample) loss(ctx context.Context, k kernel.Kernel, lambda float64) (*loss, error) {
	if err := s.form(ctx, k); err != nil {
		return nil, err
	}
	if s.fitted > 0 {
		return s.judge(ctx, lambda)
	}
	return s.leaveOut(ctx, lambda, s.groups.First)
}

// leaveOut returns the loss of K with the rows of each group left out together; first has their first rows.
func (s *sample) leaveOut(ctx context.Context, lambda float64, first []int) (*loss, error) {
	o := &leaveout.Problem{Classes: s.judged.classes(), Residuals: true, Mean: s.mean}
	o.Same, o.Groups = s.groups.Equal(first)
	for _, f := range s.factors {
		o.Weights = append(o.Weights, f*f)
	}
	scores, err := leaveout.Dense(ctx, s.k, s.scaled(s.y), []float64{lambda}, o)
	if err != nil {
		return nil, err
	}
	return s.judged.loss(s.y, scores[0].Residuals), nil
}

// scaled returns row i of y times the factor of row i.
func (s *sample) scaled(y *mat.Dense) *mat.Dense {
	if s.factors == nil {
		return y
	}
	out := mat.DenseCopyOf(y)
	out.Apply(func(i, _ int, v float64) float64 { return s.factors[i] * v }, out)
	return out
}

// judge returns the loss of the rows after those that are fitted.
func (s *sample) judge(ctx context.Context, lambda float64) (*loss, error) {
	n, t := s.y.Dims()
	m := s.fitted
	a, mean := make([]float64, m*m), make([]float64, t)
	for i := range m {
		copy(a[i*m:], s.k.RawRowView(i)[:i+1])
		a[i*m+i] += lambda
	}
	c := mat.DenseCopyOf(s.y.Slice(0, m, 0, t))
	var weights []float64
	for i := range min(m, len(s.factors)) {
		weights = append(weights, s.factors[i]*s.factors[i])
	}
	for j := 0; s.mean && j < t; j++ {
		mean[j] = stat.Mean(mat.Col(nil, j, c), weights)
	}
	c.Apply(func(_, j int, v float64) float64 { return v - mean[j] }, c)
	c = s.scaled(c)
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
	return s.judged.loss(y, &e), nil
}

// join puts rows that no fit sees behind the others, with their weights, nil for ones.
func (s *sample) join(x points.Points, y *mat.Dense, weights []float64) {
	n, d := s.x.Dims()
	m, t := y.Dims()
	all := points.NewDense(n+m, d, nil)
	points.Panel64To(s.x, all.Data, d)
	points.Panel64To(x, all.Data[n*d:], d)
	both := mat.NewDense(n+m, t, nil)
	both.Stack(s.y, y)
	s.x, s.y, s.fitted, s.judged.weights = all, both, n, weights
	if s.factors != nil {
		s.factors = append(s.factors, slices.Repeat([]float64{1}, m)...)
	}
}

// typical returns the scale about which a family is searched: the median of the distances, or of a polynomial that of
// ‖x‖².
func (s *sample) typical(ctx context.Context, f *family) (float64, error) {
	k := f.kernel(1)
	t, err := s.table(ctx, k)
	if err != nil {
		return 0, err
	}
	_, m := s.dims()
	var v []float64
	for i := range min(m, 1000) {
		if kernel.ArgumentOf(k) == kernel.InnerProduct {
			v = append(v, t[i*m+i])
			continue
		}
		v = append(v, t[i*m:i*m+i]...)
	}
	scale := kernel.Middle(v)
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

// stretch divides the features by their lengths, nil for 1.
func (s *sample) stretch(shape []float64) {
	if slices.Equal(shape, s.shape) {
		return
	}
	if s.raw == nil {
		s.raw = s.x
	}
	if s.x = s.raw; shape != nil {
		theta := make([]float64, len(shape))
		for j, v := range shape {
			theta[j] = math.Log(v)
		}
		s.x = stretched(dense(s.raw), theta)
	}
	s.shape = shape
	s.free()
}

// plain makes the subsample of some rows.
func (s *search) plain(rows []int) *sample {
	set := s.data.train.Subset(rows)
	_, t := s.data.y.Dims()
	y := mat.NewDense(len(rows), t, nil)
	for p, i := range rows {
		y.SetRow(p, s.data.y.RawRowView(i))
	}
	one := &sample{x: set.X, y: y, judged: s.data.judged, groups: set.Grouping(nil), mean: s.data.mean,
		tables: map[string][]float64{}}
	one.judged.weights = set.Weights
	for _, w := range set.FitWeights() {
		one.factors = append(one.factors, math.Sqrt(w))
	}
	return one
}

// sample makes the subsample of some rows with those to judge by.
func (s *search) sample(rows []int) *sample {
	one := s.plain(rows)
	if s.data.valid != nil {
		one.join(s.data.valid.X, s.data.validY, s.data.valid.Weights)
	}
	return one
}

// criterion names what the error is of.
func (p *problem) criterion() string {
	if p.valid != nil {
		return "validation"
	}
	return "loo"
}
