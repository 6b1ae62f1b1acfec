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

// Estimate is the storage error of one method to compute K, measured on some of its rows and columns and extrapolated
// to n. Let K_m be the kernel matrix of m rows drawn at random, one from each of m equal parts of the rows, and E_m the
// error of the computed K_m:
//
//	‖E_n‖₂ ≲ 2·r·√n + c·n/m,   r = rms(E_m),
//	c = (N + √(N² − 4r²m))/2 if N = ‖E_m‖₂ > 2.1·r√m, else |vᵀE_m v|,
//
// where v is the leading eigenvector of K_m. The first term is the norm of a symmetric matrix of independent errors
// (Wigner's semicircle), which pure rounding has. c is the part of the error that is correlated along rows; it grows
// like ‖K_n‖₂, in proportion to n. If it exceeds the edge of the semicircle, it raises the norm to N = c + r²m/c, and
// the formula above is the inverse of that (F. Benaych-Georges and R. R. Nadakuditi, Adv. Math. 227, 2011, section
// 3.1). If it is hidden by the semicircle, it is visible along v.
//
// Errors of inner products are largest far from the origin, where there may be few points. The largestNormRows points
// of largest norm are therefore always measured too, and the bound is at least ‖E‖₂ on all measured rows. m is n/8,
// limited to the range from 512 to 1,024, and up to n = 1,152 all rows are measured. For the Laplacian m is 512, and
// for other kernels that are evaluated pair by pair it is 256, whatever n is.
//
// With weights the predicted quantity is ‖SES‖₂, S = diag(√w_i). The m rows are drawn with probabilities π_i that grow
// with the weight (kernel.DrawWeighted). E_m and K_m are scaled on both sides by √(w_i/π_i), so that their norms
// estimate those of all rows. A matrix of independent errors whose variances are proportional to w_i·w_j has a norm of
// at most 2F·√(max w_i/Σw_i), where F is its Frobenius norm (A. S. Bandeira and R. van Handel, Ann. Probab. 44, 2016).
//
// The reference K_m is computed from differences in float64. If those are expensive, it is computed from inner products
// whose proved error bound is at most a hundredth of the preferred accuracy. The bound is added to the estimate.
//
// The estimate does not include errors that occur in no measured row, such as those of a few points close together at a
// medium distance from the origin, which need differences. The true residual of an answer reveals them.
type Estimate struct {
	Arithmetic kernel.Arithmetic // precision of the inner products or distances
	Centered   bool              // the points were shifted by their mean first
	Entries    Storage           // format of the entries: Float32, Float64 or Fixed16
	Rows       int               // number of measured rows: m random ones and those of largest norm
	Rms        float64           // root mean square of the entries of E_m
	Norm       float64           // ‖E‖₂ on all measured rows, by power iteration
	NormK      float64           // ‖K_m‖₂, by power iteration
	Bound      float64           // predicted ‖E_n‖₂; +Inf if an entry is not finite
}

// Size and cost of a sample. More rows make the estimate more reliable and more expensive. The sample has to be cheap
// compared with K, which limits it for few points. The distances of the Laplacian and kernels that are evaluated pair
// by pair are slow to form, so they have smaller samples.
const (
	maxSampleRows      = 1024 // upper limit of the number of random rows
	minSampleRows      = 512  // lower limit of the number of random rows, and their number for the Laplacian
	pairwiseSampleRows = 256  // number of random rows for kernels that are evaluated pair by pair
	largestNormRows    = 128  // number of rows of largest norm that are measured in addition
	sampleBlock        = 128  // number of rows that a worker forms at once
	cheapSampleWork    = 2e8  // largest m²d for which K_m is always computed from differences
	powerIterations    = 30   // upper limit of the iterations of powerIteration
)

// sample is K on some points, in float64.
type sample struct {
	matrix      *Matrix
	random      int                   // number m of random points; they come first
	idx         []int                 // indices of the points
	x           points.Points         // the points
	entries     []float64             // lower triangle of K on the points
	errorBound  float64               // proved bound of ‖E_n‖₂ for the method that computed entries
	normK       float64               // ‖K_m‖₂
	eigenvector []float64             // leading eigenvector of K_m
	table       *kernel.DistanceTable // table of the shifted entries of float32 tiles; nil if there is none
	factors     []float64             // √(w_i/π_i), π_i = 1 for the points of largest norm; nil without weights
	weightRoots []float64             // √w_i; nil without weights
}

// newSample draws a sample and computes its entries. They are accurate enough to measure errors of the size accuracy.
func (m *Matrix) newSample(ctx context.Context, accuracy float64, seed uint64) (*sample, error) {
	s := &sample{matrix: m}
	s.drawRows(rng.New(seed).Sub("rows of K that are looked at"))
	s.x = points.Gather(m.x, s.idx)
	n := len(s.idx)
	s.entries = make([]float64, n*n)
	_, d := m.x.Dims()
	if float64(n)*float64(n)*float64(d) <= cheapSampleWork {
		accuracy = 0 // differences are cheap enough
	}
	method, bound := m.certainMethod(accuracy / 100)
	s.errorBound = bound
	err := s.formRows(ctx, method, m.mean, func(i int, row []float64) {
		copy(s.entries[i*n:], row)
	})
	s.normK, s.eigenvector = powerIteration(s.scaled(s.entries, s.factors), s.random, n)
	return s, err
}

// drawRows chooses the points of the sample.
func (s *sample) drawRows(g rng.Stream) {
	m := s.matrix
	s.idx, s.random = kernel.ProbeRows(m.placement.Panel.Norms, m.sampleSize(), largestNormRows, g)
	if m.factors == nil {
		return
	}
	probabilities := slices.Repeat([]float64{1}, len(s.idx))
	if len(s.idx) < m.tiling.n {
		outliers := s.idx[s.random:]
		s.idx, probabilities = kernel.DrawWeighted(&points.Weighted{Points: m.x, Factors: m.factors}, m.sampleSize(), g)
		s.random = len(s.idx)
		for _, i := range outliers {
			if _, drawn := slices.BinarySearch(s.idx[:s.random], i); !drawn {
				s.idx, probabilities = append(s.idx, i), append(probabilities, 1)
			}
		}
	}
	for a, i := range s.idx {
		s.weightRoots = append(s.weightRoots, m.factors[i])
		s.factors = append(s.factors, m.factors[i]/math.Sqrt(probabilities[a]))
	}
}

// normGrowth returns the factors by which norms grow from the sample to all rows. A matrix of independent errors has a
// norm of at most 2·rms·noiseGrowth on all rows, and of at most 2·rms·sampleEdge on the m random rows. A norm on the m
// rows that grows like ‖K‖₂ is signalGrowth times as large on all rows.
func (s *sample) normGrowth() (noiseGrowth, sampleEdge, signalGrowth float64) {
	n, rows := float64(s.matrix.tiling.n), float64(s.random)
	if s.factors == nil {
		return math.Sqrt(n), math.Sqrt(rows), n / rows
	}
	spread := func(factors []float64) float64 { // √(max f²/Σf²)
		return slices.Max(factors) / blas64.Nrm2(blas64.Vector{N: len(factors), Inc: 1, Data: factors})
	}
	return rows * spread(s.matrix.factors), rows * spread(s.factors[:s.random]), 1
}

// scaled returns the lower triangle a scaled on both sides by factors, or a itself if factors is nil.
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

// sampleSize returns the number m of rows that are drawn at random, in addition to those of largest norm.
func (m *Matrix) sampleSize() int {
	if kernel.ArgumentOf(m.k) == kernel.L1Distance {
		return minSampleRows
	}
	if kernel.IsPairwise(m.k) {
		return pairwiseSampleRows
	}
	if n := m.tiling.n; n > maxSampleRows+largestNormRows {
		return min(maxSampleRows, max(minSampleRows, n/8))
	}
	return maxSampleRows
}

// meanEntry returns the mean of the lower triangle of K_m with its diagonal, rounded to a multiple of 2⁻¹⁰ times the
// power of two above the largest diagonal entry. The diagonal has about twice the weight that it has in the mean of all
// entries; the shift for which the mean is used need not be more accurate. It returns 0 if the mean is not finite.
func (s *sample) meanEntry() float64 {
	var sum float64
	for i := range s.random {
		for _, v := range s.entries[i*len(s.idx) : i*len(s.idx)+i+1] {
			sum += v
		}
	}
	if !(math.Abs(sum) <= math.MaxFloat64) {
		return 0
	}
	_, exp := math.Frexp(slices.Max(s.matrix.diag))
	return math.Ldexp(math.Round(math.Ldexp(sum/float64(s.random*(s.random+1)/2), 10-exp)), exp-10)
}

// formRows computes the lower triangle of K on the sample by the given method, which shifts the points by mean if it is
// centered, and calls set with each of its rows. Row i has i+1 entries. Calls of set run concurrently.
func (s *sample) formRows(ctx context.Context, method method, mean []float64, set func(i int, row []float64)) error {
	n := len(s.idx)
	x := s.x
	if method.centered {
		x = points.Shift(x, mean)
	}
	panel := points.NewPanel(x)
	if method.arithmetic == kernel.Float32 {
		panel = points.NewPanel32(x)
	}
	type workerMemory struct {
		workspace kernel.Workspace
		tile64    []float64
		tile32    []float32
	}
	workers := make([]workerMemory, accel.Threads())
	return accel.ForEach(ctx, (n+sampleBlock-1)/sampleBlock, func(thread, block int) {
		scratch := &workers[thread]
		lo, hi := block*sampleBlock, min((block+1)*sampleBlock, n)
		values := buffer.Grow(&scratch.tile64, (hi-lo)*hi)
		rowPanel, columnPanel := panel.Slice(lo, hi), panel.Slice(0, hi)
		shift := 0.0
		if method.inFloat64 {
			kernel.Tile64(values, hi, s.matrix.k, rowPanel, columnPanel, method.arithmetic, &scratch.workspace)
		} else {
			tile32 := buffer.Grow(&scratch.tile32, len(values))
			if s.table != nil && !method.inFixed16 {
				shift = s.table.Shift()
				s.table.Tile32(tile32, hi, rowPanel, columnPanel, &scratch.workspace)
			} else {
				kernel.Tile32(tile32, hi, s.matrix.k, rowPanel, columnPanel, method.arithmetic, &scratch.workspace)
			}
			for k, v := range tile32 {
				if values[k] = float64(v) + shift; method.inFixed16 {
					values[k] = math.RoundToEven(values[k]*fixed16One) / fixed16One
				}
			}
		}
		for i := lo; i < hi; i++ {
			row := values[(i-lo)*hi : (i-lo)*hi+i+1]
			row[i] = s.matrix.diag[s.idx[i]] // tiles store the exact diagonal
			if !method.inFloat64 {
				row[i] = float64(float32(row[i]-shift)) + shift
			}
			set(i, row)
		}
	})
}

// measure returns the estimate for a method. Its Bound is +Inf if an entry is not finite. It returns an error only if
// ctx ends.
func (s *sample) measure(ctx context.Context, method method) (Estimate, error) {
	rows, random := len(s.idx), s.random
	entryErrors := make([]float64, rows*rows)
	err := s.formRows(ctx, method, s.matrix.tileShift, func(i int, row []float64) {
		for j, v := range row {
			entryErrors[i*rows+j] = v - s.entries[i*rows+j]
		}
	})
	if err != nil {
		return Estimate{}, err
	}
	estimate := Estimate{Arithmetic: method.arithmetic, Centered: method.centered, Entries: Float32, Rows: rows,
		NormK: s.normK, Bound: math.Inf(1)}
	switch {
	case method.inFloat64:
		estimate.Entries = Float64
	case method.inFixed16:
		estimate.Entries = Fixed16
	}

	unscaled := entryErrors
	entryErrors = s.scaled(entryErrors, s.factors)
	var sum float64 // ‖E_m‖_F²
	for i := range rows {
		for j, v := range entryErrors[i*rows : i*rows+i+1] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				estimate.Rms = v
				return estimate, nil
			}
			if j < i {
				v *= math.Sqrt2
			}
			if i < random {
				sum += v * v
			}
		}
	}
	estimate.Rms = math.Sqrt(sum) / float64(random)
	estimate.Norm, _ = powerIteration(s.scaled(unscaled, s.weightRoots), rows, rows)
	norm := estimate.Norm
	if random < rows || s.factors != nil {
		norm, _ = powerIteration(entryErrors, random, rows)
	}

	product := make([]float64, random) // E_m·v for the leading eigenvector v of K_m
	symv(product, entryErrors, s.eigenvector, rows)
	correlated := math.Abs(blas64.Dot(blas64.Vector{N: random, Inc: 1, Data: product},
		blas64.Vector{N: random, Inc: 1, Data: s.eigenvector}))
	noiseGrowth, sampleEdge, signalGrowth := s.normGrowth()
	sampleEdge *= estimate.Rms // half of the edge of the semicircle
	if norm > 2.1*sampleEdge {
		correlated = max(correlated, (norm+math.Sqrt(norm*norm-4*sampleEdge*sampleEdge))/2)
	}
	predicted := 2*estimate.Rms*noiseGrowth + correlated*signalGrowth
	rounding := 0x1p-52 * s.normK * signalGrowth // rounding of float64 entries, which Rms does not see
	// The factor 1.1 allows for a power iteration whose norm is slightly too small.
	estimate.Bound = max(predicted, 1.1*estimate.Norm, rounding) + s.errorBound
	return estimate, nil
}

// bestEstimate measures the methods in turn until the predicted ‖E‖₂ is at most target. It returns the estimate of that
// method, or the smallest one if no method reaches the target. All estimates are appended to c.Tried.
func (s *sample) bestEstimate(ctx context.Context, c *Choice, methods []method, target float64) (Estimate, error) {
	var best Estimate
	for i, method := range methods {
		estimate, err := s.measure(ctx, method)
		if err != nil {
			return best, err
		}
		c.Tried = append(c.Tried, estimate)
		if i == 0 || estimate.Bound < best.Bound {
			best = estimate
		}
		if estimate.Bound <= target {
			break
		}
	}
	return best, nil
}

// powerIteration returns ‖A‖₂ of a symmetric m×m matrix, slightly too small, and the last vector, by power iteration
// from a fixed start. a holds the lower triangle of A in rows of the given stride. The iteration ends when a step
// changes the norm by at most the relative amount 10⁻¹², or after powerIterations steps.
func powerIteration(a []float64, m, stride int) (norm float64, v []float64) {
	v, w := make([]float64, m), make([]float64, m)
	state := uint64(1)
	for i := range v { // pseudorandom numbers by the linear congruential generator of D. E. Knuth's MMIX
		state = state*6364136223846793005 + 1442695040888963407
		v[i] = 0.5 + float64(state>>40)/(1<<24)
		if state>>39&1 == 1 {
			v[i] = -v[i]
		}
	}
	normalize(v)
	for range powerIterations {
		previous := norm
		symv(w, a, v, stride)
		norm = normalize(w)
		if norm == 0 {
			return 0, v
		}
		if v, w = w, v; math.Abs(norm-previous) <= 1e-12*norm {
			break
		}
	}
	return norm, v
}

// symv sets y = A·x for a symmetric A, given by its lower triangle a in rows of the given stride. Each worker handles a
// block of rows. It reads the entries left of the diagonal block once and multiplies by them and by their transpose.
func symv(y, a, x []float64, stride int) {
	m := len(x)
	blocks := (m + sampleBlock - 1) / sampleBlock
	// above[block*m+i] is the contribution of a block to row i above the block.
	above, work := make([]float64, blocks*m), make([]simd.Workspace, accel.Threads())
	accel.Each(blocks, func(thread, block int) {
		block = blocks - 1 - block // the longest blocks come first
		lo, hi := block*sampleBlock, min((block+1)*sampleBlock, m)
		diagonalBlock := blas64.Symmetric{Uplo: blas.Lower, N: hi - lo, Stride: stride, Data: a[lo*stride+lo:]}
		blas64.Symv(1, diagonalBlock, blas64.Vector{N: hi - lo, Inc: 1, Data: x[lo:]}, 0,
			blas64.Vector{N: hi - lo, Inc: 1, Data: y[lo:]})
		if lo > 0 {
			simd.AddBothProducts(hi-lo, lo, a[lo*stride:], stride, x[:lo],
				above[block*m:block*m+lo], x[lo:hi], y[lo:hi], 1, &work[thread])
		}
	})
	for block := range blocks {
		floats.Add(y[:block*sampleBlock], above[block*m:block*m+block*sampleBlock])
	}
}

// normalize divides v by its norm and returns the norm. A zero vector becomes NaN.
func normalize(v []float64) float64 {
	vector := blas64.Vector{N: len(v), Inc: 1, Data: v}
	norm := blas64.Nrm2(vector)
	blas64.Scal(1/norm, vector)
	return norm
}
