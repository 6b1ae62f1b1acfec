package gram

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Estimate is the error of one way to compute K, measured on some of its rows and
// columns and extrapolated to n. With E_m = K_m as computed − K_m, K_m of m rows drawn at
// random, one from each of m equal parts of the rows:
//
//	‖E_n‖₂ ≲ 2·r·√n + c·n/m,   r = rms(E_m),
//	c = (N + √(N² − 4r²m))/2 if N = ‖E_m‖₂ > 2.1·r√m, else |vᵀE_m v|,
//
// v the leading eigenvector of K_m. The first term is the norm of a symmetric
// matrix of independent errors (Wigner's semicircle), which rounding alone gives.
// c is the part of the error that is alike along rows and grows as ‖K_n‖₂ does,
// in proportion to n. Where it stands out of the semicircle, it lifts the norm to
// N = c + r²m/c, of which the formula is the inverse (F. Benaych-Georges and R. R.
// Nadakuditi, Adv. Math. 227, 2011, section 3.1); while it is hidden, it shows
// along v. Errors of inner products are largest far from the origin, where few points may lie: the
// farRows points of largest norm are looked at in any case, and the bound is at least ‖E‖₂ on
// them and the others. m is an eighth of n, from 512 to 1,024; up to n = 1,152 all rows are looked at.
//
// With weights ‖SES‖₂ is predicted, S = diag(√w_i). The m rows are drawn with probabilities π_i that grow with the
// weight (kernel.DrawWeighted), E_m and K_m are scaled on both sides by √(w_i/π_i) so that their norms estimate those
// of all rows, and a matrix of independent errors with variances in proportion to w_i·w_j has at most the norm 2F·√(max
// w_i/Σw_i), F its Frobenius norm (A. S. Bandeira and R. van Handel, Ann. Probab. 44, 2016).
//
// K_m itself comes from differences in float64, or, where those are expensive, from inner products if the
// certain bound of their error is a hundredth of what is preferred. That bound is added.
//
// What no row that was looked at shows, such as a few points close together at a middle distance
// that need differences, is not in the estimate: the true residual of an answer is what tells.
type Estimate struct {
	Arithmetic kernel.Arithmetic
	Centred    bool
	Entries    Storage // Float32, Float64 or Fixed16
	Rows       int     // that were looked at, m and those of largest norm
	Rms        float64 // of the entries of E_m
	Norm       float64 // ‖E‖₂ on all rows looked at, by power iteration
	NormK      float64 // ‖K_m‖₂, likewise
	Bound      float64 // predicted ‖E_n‖₂; +Inf if an entry is not finite
}

// The number of rows of a sample: enough for an honest rms, cheap beside K, of which the sample of few points would be
// much. The Laplacian's distances and kernels by pairs are slow to form.
const (
	sampleRows    = 1024 // at most
	sampleRowsL1  = 512  // and at least
	sampleRowsOwn = 256
	farRows       = 128 // of largest norm
	sampleBlock   = 128 // rows formed at once by a worker
	cheapSample   = 2e8 // m²d up to which K_m comes from differences
	powerSteps    = 30
)

// sample is K on some points, in float64.
type sample struct {
	m      *Matrix
	random int           // m: the number of points drawn at random, which come first
	idx    []int         // the points
	x      points.Points // themselves
	k      []float64     // lower half
	error  float64       // certain bound of the error that K_n would have, formed as k is
	normK  float64       // ‖K_m‖₂
	v      []float64     // leading eigenvector of K_m
	less   *kernel.DistanceTable
	// With weights, else nil: √(w_i/π_i) of the rows, π_i = 1 for those of largest norm, and √w_i.
	factors, roots []float64
}

// newSample forms a sample for estimates that matter above the given ‖E‖₂.
func (m *Matrix) newSample(ctx context.Context, prefer float64, seed uint64) (*sample, error) {
	s := &sample{m: m}
	s.draw(rng.New(seed).Sub("rows of K that are looked at"))
	s.x = points.Gather(m.x, s.idx)
	n := len(s.idx)
	s.k = make([]float64, n*n)
	_, d := m.x.Dims()
	if float64(n)*float64(n)*float64(d) <= cheapSample {
		prefer = 0 // differences cost nothing
	}
	by, bound := m.accurate(prefer / 100)
	s.error = bound
	err := s.form(ctx, by, func(i int, row []float64) {
		copy(s.k[i*n:], row)
	})
	s.normK, s.v = power(s.scaled(s.k, s.factors), s.random, n)
	return s, err
}

// draw chooses the rows of the sample.
func (s *sample) draw(g rng.Stream) {
	m := s.m
	s.idx, s.random = kernel.ProbeRows(m.frame.Panel.Norms, m.sampleRows(), farRows, g)
	if m.factors == nil {
		return
	}
	probabilities := slices.Repeat([]float64{1}, len(s.idx))
	if len(s.idx) < m.tiling.n {
		far := s.idx[s.random:]
		s.idx, probabilities = kernel.DrawWeighted(&points.Weighted{Points: m.x, Factors: m.factors}, m.sampleRows(), g)
		s.random = len(s.idx)
		for _, i := range far {
			if _, drawn := slices.BinarySearch(s.idx[:s.random], i); !drawn {
				s.idx, probabilities = append(s.idx, i), append(probabilities, 1)
			}
		}
	}
	for a, i := range s.idx {
		s.roots = append(s.roots, m.factors[i])
		s.factors = append(s.factors, m.factors[i]/math.Sqrt(probabilities[a]))
	}
}

// growth returns how norms grow: that of a matrix of independent errors is at most 2·rms·noise for all rows and
// 2·rms·edge for the m rows, and one of the m rows that grows with n is ratio times as large for all rows.
func (s *sample) growth() (noise, edge, ratio float64) {
	n, rows := float64(s.m.tiling.n), float64(s.random)
	if s.factors == nil {
		return math.Sqrt(n), math.Sqrt(rows), n / rows
	}
	spread := func(factors []float64) float64 { // √(max f²/Σf²)
		return slices.Max(factors) / blas64.Nrm2(blas64.Vector{N: len(factors), Inc: 1, Data: factors})
	}
	return rows * spread(s.m.factors), rows * spread(s.factors[:s.random]), 1
}

// scaled returns a lower half scaled on both sides by factors, itself if there are none.
func (s *sample) scaled(a, factors []float64) []float64 {
	if factors == nil {
		return a
	}
	n := len(s.idx)
	out := make([]float64, len(a))
	for i := range n {
		for j, v := range a[i*n : i*n+i+1] {
			out[i*n+j] = v * factors[i] * factors[j]
		}
	}
	return out
}

// sampleRows returns how many rows are drawn at random, those of largest norm beside.
func (m *Matrix) sampleRows() int {
	if kernel.ArgumentOf(m.k) == kernel.L1Distance {
		return sampleRowsL1
	}
	if kernel.ByPairs(m.k) {
		return sampleRowsOwn
	}
	if n := m.tiling.n; n > sampleRows+farRows {
		return min(sampleRows, max(sampleRowsL1, n/8))
	}
	return sampleRows
}

// mean returns the mean entry of K_m, a multiple of 2⁻¹⁰ of the largest there is; 0 if it is not finite.
func (s *sample) mean() float64 {
	var sum float64
	for i := range s.random {
		for _, v := range s.k[i*len(s.idx) : i*len(s.idx)+i+1] {
			sum += v
		}
	}
	if !(math.Abs(sum) <= math.MaxFloat64) {
		return 0
	}
	_, exp := math.Frexp(slices.Max(s.m.diag))
	return math.Ldexp(math.Round(math.Ldexp(sum/float64(s.random*(s.random+1)/2), 10-exp)), exp-10)
}

// form gives set the rows of the lower half of K on the sample computed by the given method:
// row i has i+1 entries.
func (s *sample) form(ctx context.Context, by method, set func(i int, row []float64)) error {
	n := len(s.idx)
	x := s.x
	if by.centered {
		x = points.Shift(x, s.m.frame.mean)
	}
	p := points.NewPanel(x)
	if by.arith == kernel.Float32 {
		p = points.NewPanel32(x)
	}
	type scratch struct {
		w   kernel.Workspace
		t64 []float64
		t32 []float32
	}
	workers := make([]scratch, accel.Threads())
	return accel.ForEach(ctx, (n+sampleBlock-1)/sampleBlock, func(who, b int) {
		w := &workers[who]
		lo, hi := b*sampleBlock, min((b+1)*sampleBlock, n)
		t, of, with := buffer.Grow(&w.t64, (hi-lo)*hi), p.Slice(lo, hi), p.Slice(0, hi)
		shift := 0.0
		if by.wide {
			kernel.Tile64(t, hi, s.m.k, of, with, by.arith, &w.w)
		} else {
			t32 := buffer.Grow(&w.t32, len(t))
			if s.less != nil && !by.fixed {
				shift = s.less.Shift()
				s.less.Tile32(t32, hi, of, with, &w.w)
			} else {
				kernel.Tile32(t32, hi, s.m.k, of, with, by.arith, &w.w)
			}
			for q, v := range t32 {
				if t[q] = float64(v) + shift; by.fixed {
					t[q] = math.RoundToEven(t[q]*fixedOne) / fixedOne
				}
			}
		}
		for i := lo; i < hi; i++ {
			row := t[(i-lo)*hi : (i-lo)*hi+i+1]
			row[i] = s.m.diag[s.idx[i]] // as tiles have it
			if !by.wide {
				row[i] = float64(float32(row[i]-shift)) + shift
			}
			set(i, row)
		}
	})
}

func (s *sample) measure(ctx context.Context, by method) (Estimate, error) {
	rows, m := len(s.idx), s.random
	e := make([]float64, rows*rows)
	err := s.form(ctx, by, func(i int, row []float64) {
		for j, v := range row {
			e[i*rows+j] = v - s.k[i*rows+j]
		}
	})
	if err != nil {
		return Estimate{}, err
	}
	r := Estimate{Arithmetic: by.arith, Centred: by.centered, Entries: Float32, Rows: rows, NormK: s.normK,
		Bound: math.Inf(1)}
	switch {
	case by.wide:
		r.Entries = Float64
	case by.fixed:
		r.Entries = Fixed16
	}
	unscaled := e
	e = s.scaled(e, s.factors)
	var sum float64 // ‖E_m‖_F²
	for i := range rows {
		for j, v := range e[i*rows : i*rows+i+1] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				r.Rms = v
				return r, nil
			}
			if j < i {
				v *= math.Sqrt2
			}
			if i < m {
				sum += v * v
			}
		}
	}
	r.Rms = math.Sqrt(sum) / float64(m)
	r.Norm, _ = power(s.scaled(unscaled, s.roots), rows, rows)
	norm := r.Norm
	if m < rows || s.factors != nil {
		norm, _ = power(e, m, rows)
	}
	ev := make([]float64, m)
	symv(ev, e, s.v, rows)
	vev := math.Abs(blas64.Dot(blas64.Vector{N: m, Inc: 1, Data: ev}, blas64.Vector{N: m, Inc: 1, Data: s.v}))
	c := vev
	noise, edge, ratio := s.growth()
	if edge *= r.Rms; norm > 2.1*edge {
		c = max(c, (norm+math.Sqrt(norm*norm-4*edge*edge))/2)
	}
	grown := 2*r.Rms*noise + c*ratio
	rounding := 0x1p-52 * s.normK * ratio                // of entries in float64, which rms may not see
	r.Bound = max(grown, 1.1*r.Norm, rounding) + s.error // power iteration stays a little below
	return r, nil
}

// best measures methods in turn until ‖E‖₂ is at most enough, and returns that
// method's estimate, or the most accurate one. What it measures is added to c.Tried.
func (s *sample) best(ctx context.Context, c *Choice, list []method, enough float64) (Estimate, error) {
	var best Estimate
	for i, by := range list {
		e, err := s.measure(ctx, by)
		if err != nil {
			return best, err
		}
		c.Tried = append(c.Tried, e)
		if i == 0 || e.Bound < best.Bound {
			best = e
		}
		if e.Bound <= enough {
			break
		}
	}
	return best, nil
}

// power returns ‖A‖₂ of the symmetric m×m matrix whose lower half is a, of rows with the
// given stride, from below, by power iteration from a fixed start, until a step adds 10⁻¹² of it at most, and the
// vector reached.
func power(a []float64, m, stride int) (norm float64, v []float64) {
	v, w := make([]float64, m), make([]float64, m)
	h := uint64(1)
	for i := range v { // a fixed vector without structure
		h = h*6364136223846793005 + 1442695040888963407
		v[i] = 0.5 + float64(h>>40)/(1<<24)
		if h>>39&1 == 1 {
			v[i] = -v[i]
		}
	}
	normalize(v)
	for range powerSteps {
		before := norm
		symv(w, a, v, stride)
		norm = normalize(w)
		if norm == 0 {
			return 0, v
		}
		if v, w = w, v; math.Abs(norm-before) <= 1e-12*norm {
			break
		}
	}
	return norm, v
}

// symv sets y = A·x, a block of rows by each worker: what is left of the diagonal both ways, each time it is read.
func symv(y, a, x []float64, stride int) {
	m := len(x)
	blocks := (m + sampleBlock - 1) / sampleBlock
	above, work := make([]float64, blocks*m), make([]simd.Workspace, accel.Threads())
	accel.Each(blocks, func(who, b int) {
		b = blocks - 1 - b // the long ones first
		lo, hi := b*sampleBlock, min((b+1)*sampleBlock, m)
		d := blas64.Symmetric{Uplo: blas.Lower, N: hi - lo, Stride: stride, Data: a[lo*stride+lo:]}
		blas64.Symv(1, d, blas64.Vector{N: hi - lo, Inc: 1, Data: x[lo:]}, 0,
			blas64.Vector{N: hi - lo, Inc: 1, Data: y[lo:]})
		if lo > 0 {
			simd.Both(hi-lo, lo, a[lo*stride:], stride, x[:lo], above[b*m:b*m+lo], x[lo:hi], y[lo:hi], 1, &work[who])
		}
	})
	for b := range blocks {
		floats.Add(y[:b*sampleBlock], above[b*m:b*m+b*sampleBlock])
	}
}

// normalize divides v by its norm, which it returns; zeros become NaN.
func normalize(v []float64) float64 {
	x := blas64.Vector{N: len(v), Inc: 1, Data: v}
	norm := blas64.Nrm2(x)
	blas64.Scal(1/norm, x)
	return norm
}
