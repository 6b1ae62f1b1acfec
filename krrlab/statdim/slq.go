package statdim

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/estimate"
)

// slq estimates the curve λ ↦ s_λ(K) at the problem's λ and at Options.Lambdas from one
// Lanczos process of K for each probe z of signs. With T_k the tridiagonal matrix after k steps,
// zᵀ(K+λI)⁻¹z lies between the Gauss rule n·e₁ᵀ(T_k+λI)⁻¹e₁ and the Gauss–Radau rule with a node
// at −e, for every λ; the steps end when that is known closely enough at the problem's λ.
// The control variate at each λ is that of (ZZᵀ+λI)⁻¹. Work: 2kmn² flops for the
// products and 4k²mn for full orthogonalization; memory: 8kn bytes a probe, of which a batch is
// held to some 1 GB. If ctx ends it returns what the batches that are complete gave, nil if
// there is none, beside ctx's error.
func slq(ctx context.Context, p *problem, o *Options) (*Numbers, error) {
	opt := o.settled()
	c := &curve{p: p, o: &opt, lambdas: grid(p.Lambda, opt.Lambdas)}
	c.samples = make([]sample, len(c.lambdas))
	res, err := p.narrow(&opt, opt.probes, func(m int, _ float64, so *Numbers) (*Numbers, error) {
		for c.probes < m {
			if err := c.batch(ctx, min(m-c.probes, c.batchSize()), so); err != nil {
				return nil, err
			}
		}
		return c.result()
	})
	if res != nil {
		for i := range res.Curve {
			res.Curve[i].Estimate.Seconds = res.Estimate.Seconds
		}
	}
	return res, err
}

// curve is an SLQ under way.
type curve struct {
	p       *problem
	o       *Options
	lambdas []float64
	samples []sample // of each λ
	probes  int
	steps   int // most steps of a batch
	columns int
}

// batchSize keeps the Lanczos vectors of a batch within a gigabyte.
func (c *curve) batchSize() int {
	const bytes = 1 << 30
	return max(1, min(bytes/(8*c.p.K.Dim()*min(c.o.maxSteps, c.p.K.Dim())), blockColumns))
}

// result puts the curve together from the probes so far.
func (c *curve) result() (*Numbers, error) {
	res := &Numbers{Probes: c.probes, Steps: c.steps, Columns: c.columns}
	for i, l := range c.lambdas {
		var mean float64
		if c.p.Control != nil {
			w, err := c.p.Control.WithLambda(l)
			if err != nil {
				return nil, err
			}
			mean = w.StatDim()
		}
		at := Numbers{}
		var a float64
		a, at.Sampling, at.Truncation, at.Explained = c.samples[i].fit(mean, c.o.Confidence)
		at.Sampling = max(at.Sampling, c.p.unseen(a, l, c.probes, c.o.Confidence))
		at.Estimate = c.p.interval(&at, a, l, c.o, "slq")
		res.Curve = append(res.Curve, Point{l, at.Estimate})
		if l == c.p.Lambda {
			res.Estimate, res.Sampling, res.Truncation, res.Storage, res.Explained =
				at.Estimate, at.Sampling, at.Truncation, at.Storage, at.Explained
		}
	}
	return res, nil
}

// batch runs the next m probes.
func (c *curve) batch(ctx context.Context, m int, so *Numbers) error {
	z := estimate.Signs(c.p.K.Dim(), c.probes, m, c.o.stream)
	t := newTridiagonals(z)
	var e estimate.Interval
	if so != nil {
		e = so.Estimate
	}
	for k := 0; k < min(c.o.maxSteps, c.p.K.Dim()); k++ {
		if err := t.step(ctx, c.p.K); err != nil {
			return err
		}
		if k%5 == 4 {
			value, half := c.quality(t)
			enough := 0.05 * c.o.Width * value
			share := 1.0
			if half > enough {
				share = math.Log(float64(c.p.K.Dim())/half) / math.Log(float64(c.p.K.Dim())/enough)
			}
			c.o.progress(int(100*max(0, share)), 100, e)
			if half <= enough {
				break
			}
		}
	}
	for i, l := range c.lambdas {
		s := &c.samples[i]
		if c.p.Control != nil {
			w, err := c.p.Control.WithLambda(l)
			if err != nil {
				return err
			}
			if err := (&problem{K: c.p.K, Lambda: l, Control: w}).control(ctx, s, z); err != nil {
				return err
			}
		}
		for j := range m {
			y, half := t.form(j, l, c.p)
			s.y, s.half = append(s.y, y), append(s.half, half)
		}
	}
	c.probes += m
	c.steps = max(c.steps, t.k)
	c.columns += t.k * m
	return nil
}

// quality returns the mean of the probes' values and truncations at the problem's λ.
func (c *curve) quality(t *tridiagonals) (value, half float64) {
	for j := range t.m {
		y, h := t.form(j, c.p.Lambda, c.p)
		value += y / float64(t.m)
		half += h / float64(t.m)
	}
	return value, half
}

// form returns zᵀ(I−λA⁻¹)z of probe j to ± half.
func (t *tridiagonals) form(j int, lambda float64, p *problem) (y, half float64) {
	lo, hi := t.inverse(j, lambda, -min(p.Error+rounding(t.norm[j], t.n), lambda/2))
	zz := float64(t.n)
	return zz * (1 - lambda*(lo+hi)/2), zz * lambda * (hi - lo) / 2
}

// rounding returns n·2⁻⁵²·‖K‖₂: how negative rounding can make an eigenvalue of a Lanczos
// matrix of a K that is not.
func rounding(norm float64, n int) float64 { return float64(n) * 0x1p-52 * norm }

// inverse bounds qᵀ(K+λI)⁻¹q, q = z_j/‖z_j‖₂, from both sides: the Gauss rule
//
//	e₁ᵀ(T_k+λI)⁻¹e₁ = 1/d₁,  d_k = α_k+λ,  d_i = α_i+λ−β_i²/d_{i+1},
//
// from below and, with a ≤ μ_min(K), the Gauss–Radau rule from above: T_{k+1} with the last
// diagonal entry a + β_k²·((T_k−aI)⁻¹)_kk.
func (t *tridiagonals) inverse(j int, lambda, a float64) (lo, hi float64) {
	alpha, beta := t.alpha[j], t.beta[j]
	k := len(alpha)
	lo = first(alpha, beta, alpha[k-1]+lambda, lambda)
	if t.done[j] { // K maps the space of the probe's Lanczos vectors to itself
		return lo, lo
	}
	pivot := alpha[0] - a
	for i := 1; i < k && pivot > 0; i++ {
		pivot = alpha[i] - a - beta[i-1]*beta[i-1]/pivot
	}
	if pivot <= 0 { // by rounding only
		return lo, 1 / (lambda + a)
	}
	last := a + beta[k-1]*beta[k-1]/pivot + lambda
	hi = first(alpha, beta, alpha[k-1]+lambda-beta[k-1]*beta[k-1]/last, lambda)
	return lo, max(lo, hi)
}

// first returns e₁ᵀ(T+λI)⁻¹e₁, d being the last pivot, of row k.
func first(alpha, beta []float64, d, lambda float64) float64 {
	for i := len(alpha) - 2; i >= 0; i-- {
		d = alpha[i] + lambda - beta[i]*beta[i]/d
	}
	return 1 / d
}

// tridiagonals are the Lanczos matrices T_k of K from m starts.
type tridiagonals struct {
	n, m, k     int
	alpha, beta [][]float64 // of each start
	done        []bool      // its space is invariant
	norm        []float64   // estimate of ‖K‖₂ from below
	basis       []float64   // m blocks of k vectors of n
	room        int         // vectors that a block has room for
	v, w        *mat.Dense
}

// newTridiagonals starts from the columns of z.
func newTridiagonals(z *mat.Dense) *tridiagonals {
	n, m := z.Dims()
	t := &tridiagonals{n: n, m: m, done: make([]bool, m), norm: make([]float64, m), v: mat.NewDense(n, m, nil),
		w: mat.NewDense(n, m, nil)}
	t.alpha, t.beta = make([][]float64, m), make([][]float64, m)
	for j, zz := range dots(z, z) {
		for i := range n {
			t.v.Set(i, j, z.At(i, j)/math.Sqrt(zz))
		}
	}
	return t
}

// step takes one Lanczos step for all starts, with one product and full
// orthogonalization:
//
//	w = Kv_k,  α_k = wᵀv_k,  w ← w − Σ_{i≤k} v_i(v_iᵀw),  β_k = ‖w‖₂,  v_{k+1} = w/β_k
func (t *tridiagonals) step(ctx context.Context, k matrix) error {
	t.keep()
	if err := k.KMulTo(ctx, t.w, t.v); err != nil {
		return err
	}
	cols := make([][]float64, accel.Threads())
	return accel.ForEach(ctx, t.m, func(who, j int) {
		if t.done[j] {
			return
		}
		if cols[who] == nil {
			cols[who] = make([]float64, t.n+2*t.room)
		}
		t.orthogonalise(j, cols[who][:t.n], cols[who][t.n:])
	})
}

// keep appends v_k to the basis.
func (t *tridiagonals) keep() {
	if t.k == t.room {
		room := max(16, 2*t.room)
		b := make([]float64, t.m*room*t.n)
		for j := range t.m {
			copy(b[j*room*t.n:], t.basis[j*t.room*t.n:j*t.room*t.n+t.k*t.n])
		}
		t.basis, t.room = b, room
	}
	for j := range t.m {
		v := t.basis[(j*t.room+t.k)*t.n : (j*t.room+t.k+1)*t.n]
		for i := range v {
			v[i] = t.v.At(i, j)
		}
	}
	t.k++
}

// orthogonalise completes the step of start j, w being scratch.
func (t *tridiagonals) orthogonalise(j int, w, c []float64) {
	for i := range w {
		w[i] = t.w.At(i, j)
	}
	x := blas64.Vector{N: t.n, Inc: 1, Data: w}
	basis := blas64.General{Rows: t.k, Cols: t.n, Stride: t.n, Data: t.basis[j*t.room*t.n : j*t.room*t.n+t.k*t.n]}
	coef := blas64.Vector{N: t.k, Inc: 1, Data: c[:t.k]}
	start := blas64.Nrm2(x)
	norm := start
	for pass := range 3 {
		blas64.Gemv(blas.NoTrans, 1, basis, x, 0, coef) // Vᵀw
		blas64.Gemv(blas.Trans, -1, basis, coef, 1, x)  // w ← w − V(Vᵀw)
		if pass == 0 {
			t.alpha[j] = append(t.alpha[j], c[t.k-1])
		}
		before := norm
		norm = blas64.Nrm2(x)
		if norm > before/2 { // nothing was lost to cancellation: twice is enough
			break
		}
	}
	t.norm[j] = max(t.norm[j], start)
	t.beta[j] = append(t.beta[j], norm)
	if norm <= 0x1p-50*t.norm[j]*math.Sqrt(float64(t.n)) {
		t.done[j] = true
		return
	}
	blas64.Scal(1/norm, x)
	for i, v := range w {
		t.v.Set(i, j, v)
	}
}
