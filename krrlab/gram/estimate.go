package gram

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// Estimate is the error of one way to compute K, measured on m of its rows and
// columns and extrapolated to n. With E_m = K_m as computed − K_m in float64:
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
// along v.
type Estimate struct {
	Arithmetic kernel.Arithmetic
	Centred    bool
	Entries    Storage // Float32, Float64 or Fixed16
	Rows       int     // m
	Rms        float64 // of the entries of E_m
	Norm       float64 // ‖E_m‖₂, by power iteration
	NormK      float64 // ‖K_m‖₂, likewise
	Bound      float64 // predicted ‖E_n‖₂; +Inf if an entry is not finite
}

// The number of rows of a sample: enough for an honest rms, cheap beside K.
// The Laplacian's distances and kernels of a researcher's own are slow to form.
const (
	sampleRows    = 1024
	sampleRowsL1  = 512
	sampleRowsOwn = 256
	sampleBlock   = 128 // rows formed at once by a worker
	powerSteps    = 30
)

// sample is K_m in float64 on m points taken at equal steps.
type sample struct {
	m     *Matrix
	idx   []int
	x     points.Points // of the given points
	k     []float64     // m×m, lower half
	normK float64
	v     []float64 // leading eigenvector
}

func (m *Matrix) newSample(ctx context.Context) (*sample, error) {
	n := m.tiling.n
	rows := sampleRows
	if _, ok := m.k.(kernel.Laplacian); ok {
		rows = sampleRowsL1
	}
	if isOwn(m.k) {
		rows = sampleRowsOwn
	}
	rows = min(rows, n)
	s := &sample{m: m, idx: make([]int, rows)}
	for k := range s.idx {
		s.idx[k] = int(int64(k) * int64(n) / int64(rows))
	}
	s.x = points.Gather(m.x, s.idx)
	s.k = make([]float64, rows*rows)
	err := s.form(ctx, method{wide: true, arith: kernel.Float64, centred: m.frame.far}, func(i int, row []float64) {
		copy(s.k[i*rows:], row)
	})
	s.normK, s.v = power(s.k, rows)
	return s, err
}

// form gives set the rows of the lower half of K_m computed by the given method:
// row i has i+1 entries.
func (s *sample) form(ctx context.Context, by method, set func(i int, row []float64)) error {
	n := len(s.idx)
	x := s.x
	if by.centred {
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
		t := grow(&w.t64, (hi-lo)*hi)
		if by.wide {
			kernel.Tile64(t, hi, s.m.k, p.Slice(lo, hi), p.Slice(0, hi), &w.w)
		} else {
			t32 := grow(&w.t32, (hi-lo)*hi)
			kernel.Tile32(t32, hi, s.m.k, p.Slice(lo, hi), p.Slice(0, hi), by.arith, &w.w)
			for q, v := range t32 {
				if by.fixed {
					t[q] = math.RoundToEven(float64(v)*fixedOne) / fixedOne
					continue
				}
				t[q] = float64(v)
			}
		}
		for i := lo; i < hi; i++ {
			row := t[(i-lo)*hi : (i-lo)*hi+i+1]
			row[i] = s.m.diag[s.idx[i]] // as tiles have it
			if !by.wide {
				row[i] = float64(float32(row[i]))
			}
			set(i, row)
		}
	})
}

// measure estimates the error of one method.
func (s *sample) measure(ctx context.Context, by method) (Estimate, error) {
	m, n := len(s.idx), s.m.tiling.n
	e := make([]float64, m*m)
	err := s.form(ctx, by, func(i int, row []float64) {
		for j, v := range row {
			e[i*m+j] = v - s.k[i*m+j]
		}
	})
	if err != nil {
		return Estimate{}, err
	}
	var sum float64 // ‖E_m‖_F²
	for i := range m {
		for j, v := range e[i*m : i*m+i+1] {
			if j < i {
				v *= math.Sqrt2
			}
			sum += v * v
		}
	}
	r := Estimate{Arithmetic: by.arith, Centred: by.centred, Entries: Float32, Rows: m, NormK: s.normK, Bound: math.Inf(1)}
	switch {
	case by.wide:
		r.Entries = Float64
	case by.fixed:
		r.Entries = Fixed16
	}
	r.Rms = math.Sqrt(sum) / float64(m)
	if math.IsNaN(r.Rms) || math.IsInf(r.Rms, 0) {
		return r, nil
	}
	r.Norm, _ = power(e, m)
	ev := make([]float64, m)
	symv(ev, e, s.v)
	vev := math.Abs(blas64.Dot(blas64.Vector{N: m, Inc: 1, Data: ev}, blas64.Vector{N: m, Inc: 1, Data: s.v}))
	c := vev
	if edge := r.Rms * math.Sqrt(float64(m)); r.Norm > 2.1*edge {
		c = max(c, (r.Norm+math.Sqrt(r.Norm*r.Norm-4*edge*edge))/2)
	}
	r.Bound = 2*r.Rms*math.Sqrt(float64(n)) + c*float64(n)/float64(m)
	r.Bound = max(r.Bound, s.floor())
	return r, nil
}

// floor is the rounding of float64 itself, which the sample cannot see,
//
//	ε(1 + s·max‖x‖²)‖K_n‖₂,  ε = 2⁻⁵²,  ‖K_n‖₂ ≈ (n/m)‖K_m‖₂,
//
// with the points where float64 has them. The second term is what distances lose that are
// formed from inner products: s ≥ |∂k/∂r²|/k.
func (s *sample) floor() float64 {
	f := &s.m.frame
	return 0x1p-52 * (1 + slope(s.m.k)*f.maxSq64) * s.normK * float64(s.m.tiling.n) / float64(len(s.idx))
}

// slope bounds |∂k/∂r²|/k for a kernel of r = ‖x−z‖₂; 0 for others.
func slope(k kernel.Kernel) float64 {
	switch k := k.(type) {
	case kernel.Gaussian:
		return 1 / (2 * k.Sigma * k.Sigma)
	case kernel.Matern32:
		return 3 / (2 * k.Sigma * k.Sigma) // of (1+u)e^−u, u = √3r/σ: 3/(2σ²)·1/(1+u)
	case kernel.Matern52:
		return 5 / (6 * k.Sigma * k.Sigma) // of (1+u+u²/3)e^−u, u = √5r/σ: 5/(6σ²)·(1+u)/(1+u+u²/3)
	}
	return 0
}

// best measures methods in turn until ‖E‖₂ is at most enough, and returns that
// method's estimate, or the most exact one. What it measures is added to c.Tried.
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

// power returns ‖A‖₂ of the symmetric m×m matrix whose lower half is a, from
// below, by power iteration from a fixed start, and the vector reached.
func power(a []float64, m int) (norm float64, v []float64) {
	v, w := make([]float64, m), make([]float64, m)
	h := uint64(1)
	for i := range v { // a fixed vector without structure
		h = h*6364136223846793005 + 1442695040888963407
		v[i] = 0.5 + float64(h>>40)/(1<<24)
		if h>>39&1 == 1 {
			v[i] = -v[i]
		}
	}
	scale(v)
	for range powerSteps {
		symv(w, a, v)
		norm = scale(w)
		if norm == 0 {
			return 0, v
		}
		v, w = w, v
	}
	return norm, v
}

// symv sets y = A·x.
func symv(y, a, x []float64) {
	m := len(x)
	blas64.Symv(1, blas64.Symmetric{Uplo: blas.Lower, N: m, Stride: m, Data: a}, blas64.Vector{N: m, Inc: 1, Data: x}, 0, blas64.Vector{N: m, Inc: 1, Data: y})
}

// scale divides v by its norm, which it returns.
func scale(v []float64) float64 {
	x := blas64.Vector{N: len(v), Inc: 1, Data: v}
	norm := blas64.Nrm2(x)
	if norm > 0 {
		blas64.Scal(1/norm, x)
	}
	return norm
}
